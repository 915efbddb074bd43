"""Cache of the latest answer about a pod, for the extension points of one attempt.

An answer is valid while neither the pod nor any object beside pods and nodes has changed. Only one
pod is cached, because attempts run one after the other.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo

T = TypeVar("T")


class Latest(Generic[T]):
    """`latest(pod)` is `derive(pod)`, derived once per pod and epoch of the cluster."""

    def __init__(self, cluster: Cluster, derive: Callable[[PodInfo], T]) -> None:
        self._cluster = cluster
        self._derive = derive
        self._pod: PodInfo | None = None
        self._epoch = -1
        self._found: T

    def __call__(self, pod: PodInfo) -> T:
        epoch = self._cluster.epoch
        if pod is not self._pod or epoch != self._epoch:
            self._found = self._derive(pod)
            self._pod, self._epoch = pod, epoch
        return self._found
