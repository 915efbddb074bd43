"""Requests and limits of pods, CPU and memory, as the load plugins add them up.

Containers together, or the largest init container alone, and overhead. Sidecars count as init
containers.

Source  kubernetes-sigs/scheduler-plugins pkg/trimaran/resourcestats.go (GetEffectiveResource,
        SetMaxLimits)
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from asched.core.model.pod import Pod
from asched.core.model.quantity import Quantity, milli, whole
from asched.hardware.rows import (
    ByNode,
)
from asched.plugin import (
    I64,
    Aspect,
    Cluster,
    PerClass,
    PodClass,
)

Pair = tuple[int, int]


class Amounts(NamedTuple):
    """Each (milli-CPU, bytes); a limit is never below the request."""

    requests: Pair
    limits: Pair


def _effective(pod: Pod, *, limits: bool) -> Pair:
    spec = pod.spec
    each, first = (
        [_pair(c.resources.limits if limits else c.resources.requests) for c in containers or ()]
        for containers in (spec.containers, spec.init_containers)
    )
    overhead = _pair(spec.overhead)
    cpu, memory = (
        max(sum(pair[at] for pair in each), max((pair[at] for pair in first), default=0))
        + overhead[at]
        for at in range(2)
    )
    return cpu, memory


def _pair(amounts: Mapping[str, Quantity] | None) -> Pair:
    amounts = amounts or {}
    return milli(amounts.get("cpu", 0)), whole(amounts.get("memory", 0))


class PlacedAmounts(ByNode):
    """Sums over the pods on each row."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, Aspect.POD_AMOUNTS | Aspect.LIVE)
        self._sums: I64 = np.zeros((4, 0), dtype=np.int64)
        self.of = PerClass(amounts_of_class, Amounts((0, 0), (0, 0)))

    def by_row(self) -> I64:
        """int64[4, N]: requests of CPU and memory, then limits."""
        self.update(None)
        return self._sums

    def _reset(self, height: int) -> None:
        self._sums = np.zeros((4, height), dtype=np.int64)

    def _read(self, row: int) -> None:
        placed = [self.of(info.cls) for info in self._cluster.pods_on(row).values()]
        held = [(*amounts.requests, *amounts.limits) for amounts in placed]
        self._sums[:, row] = np.array(held, dtype=np.int64).reshape(-1, 4).sum(axis=0)


def amounts_of_class(cls: PodClass) -> Amounts:
    """Amounts of the spec alone."""
    requests, limits = _effective(cls.example, limits=False), _effective(cls.example, limits=True)
    return Amounts(requests, (max(requests[0], limits[0]), max(requests[1], limits[1])))
