"""What nodes use, as metrics.k8s.io tells it, and has told it.

The API has no watch, no resourceVersion and no past, so it is listed again and again, and each
object carries the samples of those before it. metrics-server looks at the kubelets every 15 s by
default.

Source  k8s.io/metrics v1beta1 NodeMetrics: the usage is that of the `window` before `timestamp`
Bounds  SAMPLES a node
"""

from typing import Final, Self

from msgspec.structs import replace

from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectMeta, Record
from asched.core.model.pod import ResourceList
from asched.core.model.quantity import check, parse
from asched.core.model.timestamp import microseconds

POLL_S: Final = 15.0
SAMPLES: Final = 16


class Sample(Record, frozen=True, gc=False):
    """`end_s` in seconds since 1970; milli-CPU and bytes."""

    end_s: float
    cpu: float
    memory: float


class NodeMetrics(Record, frozen=True, gc=False):
    """`usage` of cpu and memory (the working set), a mean over a window up to `timestamp`;
    `samples` newest first, this one included.
    """

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    usage: ResourceList | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        if self.usage is not None:
            check(self.usage.values())

    def following(self, earlier: Self | None) -> Self:
        """With its own sample, and those of the object that was listed before. What tells of no
        time, of not both resources, or of nothing newer has no sample of its own.
        """
        before = earlier.samples if earlier is not None else ()
        mine = self._sample()
        if mine is None or (before and mine.end_s <= before[0].end_s):
            return replace(self, samples=before)
        return replace(self, samples=(mine, *before[: SAMPLES - 1]))

    def _sample(self) -> Sample | None:
        usage = self.usage or {}
        if "cpu" not in usage or "memory" not in usage:
            return None
        try:
            end_s = microseconds(self.timestamp) / 1e6
        except ValueError:
            return None
        return Sample(end_s, float(parse(usage["cpu"]) * 1000), float(parse(usage["memory"])))


#: Its plural is that of nodes themselves: kinds are told apart by `resource`.
NODE_METRICS: Final = Kind(
    "NodeMetrics",
    "nodes",
    "metrics.k8s.io/v1beta1",
    NodeMetrics,
    False,
    "metrics.k8s.io/NodeMetrics",
    poll_s=POLL_S,
)
