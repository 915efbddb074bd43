"""Fragmentation: how much of a node's free devices the expected pods cannot use.

For a node with CPU c and device shares g left, S their sum, and one expected pod: all of S if the
pod asks for no device, may not use this model, or does not fit by CPU or devices; otherwise what
lies on devices too full for it. Over all expected pods it is the mean by their frequency.

Source  Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
        Gradient Descent, USENIX ATC 2023, and the simulator published with it
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from asched.hardware.gpu.points import MAX_SCORE
from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, Placements, accepts, placements
from asched.hardware.rows import F64, Mask
from asched.plugin import I64

#: Of all pods seen, the most frequent shapes are expected, until they cover this share.
COVERED: Final = 0.95


def expected(counts: Sequence[tuple[GpuDemand, int]]) -> list[tuple[GpuDemand, float]]:
    """The expected shapes with their frequencies, the most frequent first."""
    ordered = sorted(counts, key=lambda entry: (entry[1], *entry[0][:3], "|".join(entry[0].models)))
    total = float(sum(count for _, count in counts))
    kept: list[tuple[GpuDemand, int]] = []
    covered = 0.0
    for demand, count in reversed(ordered):
        if covered >= COVERED * total:
            break
        kept.append((demand, count))
        covered += count
    return [(demand, (count / total) / (covered / total)) for demand, count in kept]


class Fragmentation:
    """An expected workload, and the device shares that it could not use."""

    def __init__(self, workload: Sequence[tuple[GpuDemand, float]]) -> None:
        """Pods with their frequencies, which sum up to 1."""
        self.workload = tuple(workload)
        demands = [demand for demand, _ in workload]
        self._weights = np.array([weight for _, weight in workload]).reshape(-1, 1)
        self._cpu = np.array([demand.cpu for demand in demands], dtype=np.int64).reshape(-1, 1)
        self._count = np.array([demand.number for demand in demands]).reshape(-1, 1)
        millis = np.array([demand.milli for demand in demands], dtype=np.int64)
        self._millis, self._milli_of = np.unique(millis, return_inverse=True)
        self._plain = (millis == 0).reshape(-1, 1)
        self._models: tuple[str, ...] = ()
        self._access: Mask = np.ones((len(demands), 0), dtype=np.bool_)

    def of(self, shares: GpuShares) -> F64:
        """float64[M], thousandths of a device.

        The order of summation is fixed: by workload, separately for each kind of shortage. Scores
        are cut to whole points, so that another order may change them.
        """
        free = shares.free
        total = free.sum(axis=1)
        if not self.workload:
            return np.zeros(len(total))
        enough = free[None, :, :] >= self._millis[:, None, None]  # [U, M, D]
        missed = total - np.where(enough, free, 0).sum(axis=2)  # [U, M]
        has_devices = enough.sum(axis=2)[self._milli_of] >= self._count  # [m, M]
        has_cpu = shares.cpu >= self._cpu
        if shares.models != self._models:
            self._models = shares.models
            self._access = np.array([accepts(demand, self._models) for demand, _ in self.workload])
        access = self._access[:, shares.model]
        usable = has_devices & access & ~self._plain
        amounts = np.where(usable & has_cpu, missed[self._milli_of], total) * self._weights
        plain = np.broadcast_to(self._plain, has_cpu.shape)
        can_serve = access & ~plain
        parts = (
            can_serve & ~has_devices & ~has_cpu,
            can_serve & has_cpu,
            can_serve & has_devices & ~has_cpu,
            plain & has_cpu,
            plain & ~has_cpu,
            ~access & ~plain,
        )
        found: F64 = np.zeros(len(total))
        for part in parts:
            found += np.add.accumulate(np.where(part, amounts, 0.0))[-1]
        return found

    def gradient(self, shares: GpuShares, demand: GpuDemand) -> tuple[Placements, F64]:
        """The ways to place a pod on nodes where it fits, and by how much each reduces
        fragmentation, float64[X].
        """
        ways = placements(shares, demand)
        return ways, self.of(shares)[ways.position] - self.of(ways.after)


def descent_points(gradient: F64) -> I64:
    """int64[X] in 0..100; 50 where nothing changes. Cut, not rounded."""
    return (MAX_SCORE / (1.0 + np.exp(-gradient / WHOLE))).astype(np.int64)
