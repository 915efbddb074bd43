"""TargetLoadPacking: fill nodes up to a target of measured CPU use.

Prefers   nodes whose CPU use, with the pod on them, is nearest to the target, from below rather
          than from above. Use of pods is estimated: a container's limit, or its request times a
          factor, or a default; pods scheduled less than a minute before the last measurement ended
          are counted in this way, too. A node that was not measured gets 0.
Retry     nothing: it rejects no pod.
Cost      a few passes over the rows at each measurement; a placement updates its row.
Source    kubernetes-sigs/scheduler-plugins pkg/trimaran/targetloadpacking. Deliberate difference: a
          pod counts from the time it was scheduled, not from its watch event; metrics older than
          180 s are ignored.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asched.core.model.pod import Container
from asched.core.model.quantity import QuantityError, milli
from asched.hardware.load.args import LoadArgs
from asched.hardware.load.expected_use import ExpectedUse
from asched.hardware.load.scorer import LoadScorer, rounded
from asched.hardware.load.usage import CPU
from asched.hardware.rows import F64
from asched.plugin import I64, Aspect, Cluster, NodeView, PerClass, PodClass, PodInfo


@dataclass(frozen=True, slots=True)
class TargetLoadPackingArgs(LoadArgs):
    """The target, and what new pods are expected to use.

    target_utilization: percent of a node's CPU, 1 to 99, up to which pods are packed
    default_requests: CPU of a container with neither request nor limit
    default_requests_multiplier: factor of the request of a container without a limit, from 0, in
        quotes
    """

    target_utilization: int = 40
    default_requests: dict[str, str | int] = field(default_factory=lambda: {"cpu": "1000m"})
    default_requests_multiplier: str = "1.5"

    def __post_init__(self) -> None:
        LoadArgs.__post_init__(self)
        if not 0 < self.target_utilization < 100:
            raise ValueError(f"targetUtilization {self.target_utilization} is not in 1..99")
        try:
            milli(self.default_requests.get("cpu", 0))
        except QuantityError as error:
            raise ValueError(f"defaultRequests.cpu: {error}") from error
        _ = self.multiplier

    @property
    def multiplier(self) -> float:
        """Raises ValueError if it is no number from 0 on."""
        text = self.default_requests_multiplier
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not 0 <= found < math.inf:
            raise ValueError(f'defaultRequestsMultiplier "{text}" is not a number from 0 on')
        return found


class TargetLoadPacking(LoadScorer):
    """See the module's documentation."""

    name = "TargetLoadPacking"
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE

    def __init__(self, args: TargetLoadPackingArgs, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._args = args
        self._factor = args.multiplier
        self._default = milli(args.default_requests.get("cpu", 0))
        self._predicted = PerClass(self._predict, 0)
        self._expected = ExpectedUse(cluster, self._usage, self._predicted)

    def share_key(self, pod: PodInfo) -> int:
        return self._predicted(pod.cls)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        self._usage.refresh()
        capacity = nodes.gather(self._usage.capacity)
        used = nodes.gather(self._usage.latest[CPU])
        more = nodes.gather(self._expected.by_row()) + self._predicted(pod.cls)
        points = packed(used + more, capacity, self._args.target_utilization)
        points[~nodes.gather(self._usage.is_valid)] = 0
        return points

    def _predict(self, cls: PodClass) -> int:
        """Milli-CPU of containers and overhead."""
        spec = cls.example.spec
        total = sum(self._of_container(container) for container in spec.containers or ())
        return total + milli((spec.overhead or {}).get("cpu", 0))

    def _of_container(self, container: Container) -> int:
        limits, requests = container.resources.limits or {}, container.resources.requests or {}
        if "cpu" in limits:
            return milli(limits["cpu"])
        if "cpu" in requests:
            return math.floor(milli(requests["cpu"]) * self._factor + 0.5)
        return self._default


def packed(used: F64, capacity: F64, target: int) -> I64:
    """int64[N], 0..100: rising up to the target, falling from there on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = np.where(capacity > 0, 100 * used / capacity, 0.0)
    below = (100 - target) * percent / target + target
    above = target * (100 - percent) / (100 - target)
    points = np.where(percent > target, above, below)
    points[~(percent <= 100)] = 0  # NaN included
    return rounded(points).astype(np.int64)
