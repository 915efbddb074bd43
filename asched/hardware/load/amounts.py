"""Requests and limits of pods, CPU and memory, as the load plugins add them up.

Containers together, or the largest init container alone, and overhead. Sidecars count as init
containers.

Source  kubernetes-sigs/scheduler-plugins pkg/trimaran/resourcestats.go (GetEffectiveResource,
        SetMaxLimits)
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.model.pod import Container, Pod
from asched.core.model.quantity import Quantity, milli, whole
from asched.plugin import Aspect, ByRow, Cluster, PerClass, PodClass

I64 = npt.NDArray[np.int64]
Pair = tuple[int, int]


class Amounts(NamedTuple):
    """Each (milli-CPU, bytes); a limit is never below the request."""

    requests: Pair
    limits: Pair


def amounts_of(pod: Pod) -> Amounts:
    """Amounts of the spec alone."""
    requests = _effective(pod, limits=False)
    limits = _effective(pod, limits=True)
    return Amounts(requests, (max(requests[0], limits[0]), max(requests[1], limits[1])))


def _effective(pod: Pod, *, limits: bool) -> Pair:
    spec = pod.spec
    each = [_of_container(c, limits=limits) for c in spec.containers or ()]
    first = [_of_container(c, limits=limits) for c in spec.init_containers or ()]
    cpu = max(sum(pair[0] for pair in each), max((pair[0] for pair in first), default=0))
    memory = max(sum(pair[1] for pair in each), max((pair[1] for pair in first), default=0))
    overhead = _pair(spec.overhead)
    return cpu + overhead[0], memory + overhead[1]


def _of_container(container: Container, *, limits: bool) -> Pair:
    return _pair(container.resources.limits if limits else container.resources.requests)


def _pair(amounts: Mapping[str, Quantity] | None) -> Pair:
    amounts = amounts or {}
    return milli(amounts.get("cpu", 0)), whole(amounts.get("memory", 0))


class PlacedAmounts(ByRow[None]):
    """Sums over the pods on each row."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes, int(Aspect.POD_AMOUNTS | Aspect.LIVE))
        self._cluster = cluster
        self._sums: I64 = np.zeros((4, 0), dtype=np.int64)
        self.of = PerClass(_of_class, Amounts((0, 0), (0, 0)))

    def by_row(self) -> I64:
        """int64[4, N]: requests of CPU and memory, then limits."""
        self.update(None)
        return self._sums

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        self._sums = np.zeros((4, height), dtype=np.int64)
        self._make_rows(None, tuple(range(height)))

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            placed = [self.of(info.cls) for info in self._cluster.pods_on(row).values()]
            held = [(*amounts.requests, *amounts.limits) for amounts in placed]
            self._sums[:, row] = np.array(held, dtype=np.int64).reshape(-1, 4).sum(axis=0)
        return True


def _of_class(cls: PodClass) -> Amounts:
    return amounts_of(cls.example)
