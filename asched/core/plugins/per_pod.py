"""Cache of what a hint derives from a waiting pod, one entry per version of the pod.

Hints are asked about every unschedulable pod for every change, so compiling a pod's selectors each
time would be most of the cost.

Bounds   twice the existing pods, or PODS_MIN: then entries of deleted pods are dropped.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from asched.core.cluster.cluster import Cluster
from asched.core.model.pod import Pod

T = TypeVar("T")

#: Below this number, entries of deleted pods are not searched for.
PODS_MIN: Final = 1_024


class PerPod(Generic[T]):
    """`memory(pod)` is `derive(pod)`, derived once for each version of the pod."""

    def __init__(self, cluster: Cluster, derive: Callable[[Pod], T]) -> None:
        self._cluster = cluster
        self._derive = derive
        self._known: dict[str, tuple[Pod, T]] = {}
        self._sweep_at = PODS_MIN

    def __call__(self, pod: Pod) -> T:
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        made = self._derive(pod)
        if len(self._known) >= self._sweep_at:
            self._sweep()
        self._known[pod.uid] = (pod, made)
        return made

    def _sweep(self) -> None:
        seen = self._cluster.pods_seen
        self._known = {
            uid: kept for uid, kept in self._known.items() if seen.get(kept[0].key) is kept[0]
        }
        self._sweep_at = max(PODS_MIN, 2 * len(self._known))
