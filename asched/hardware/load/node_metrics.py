"""Use of nodes from metrics.k8s.io, with earlier samples.

The API has no watch, no resourceVersion and no history, so it is listed regularly, and each
object gets the samples of the objects before it. metrics-server scrapes the kubelets every 15 s
by default.

Source  k8s.io/metrics v1beta1 NodeMetrics: the usage is that of the `window` before `timestamp`
Bounds  SAMPLES a node
"""

from typing import Final, Self

import numpy as np
from msgspec.structs import replace

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import ResourceList
from asched.core.model.quantity import check, parse
from asched.core.model.timestamp import seconds

POLL_S: Final = 15.0
SAMPLES: Final = 16


class Sample(Record, frozen=True, gc=False):
    """`end_s` in seconds since 1970; milli-CPU and bytes."""

    end_s: float
    cpu: float
    memory: float


class NodeMetrics(ApiObject, frozen=True, gc=False):
    """`usage` of cpu and memory (the working set), a mean over a window up to `timestamp`;
    `samples` newest first, including this one.
    """

    timestamp: str = ""
    usage: ResourceList | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        if self.usage is not None:
            check(self.usage.values())

    def following(self, earlier: Self | None) -> Self:
        """Return the object with its own sample, and those of the object listed before. An object
        without a time, without both resources, or not newer has no sample of its own.
        """
        before = earlier.samples if earlier is not None else ()
        usage, end_s = self.usage or {}, seconds(self.timestamp, -np.inf)
        is_newer = end_s > (before[0].end_s if before else -np.inf)
        if not is_newer or "cpu" not in usage or "memory" not in usage:
            return replace(self, samples=before)
        sample = Sample(end_s, float(parse(usage["cpu"]) * 1000), float(parse(usage["memory"])))
        return replace(self, samples=(sample, *before[: SAMPLES - 1]))


#: Its plural is that of nodes themselves: kinds are distinguished by `resource`.
NODE_METRICS: Final = Kind.of(
    NodeMetrics, "metrics.k8s.io/v1beta1", plural="nodes", namespaced=False, poll_s=POLL_S
)
