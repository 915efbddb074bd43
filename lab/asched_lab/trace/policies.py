"""The policies of trace runs: the kernels of the GPU score plugins, and which device gives a
fraction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from asched.hardware.gpu import points
from asched.hardware.gpu.fragmentation import Fragmentation, descent_points, expected
from asched.hardware.gpu.shares import (
    F64,
    I64,
    WHOLE,
    GpuDemand,
    GpuShares,
    Mask,
    Placements,
    best_of,
    placements,
    tightest,
)
from asched.hardware.gpu.stock import Stock
from asched_lab.trace.fleet import Fleet

#: With the policy of that name: a fraction that would waste more than this of a device opens none
#: of the last free ones, while they are fewer than this share of all.
RESERVED_WASTE: Final = 0.1
RESERVED_SHARE: Final = 0.05

Counts = Sequence[tuple[GpuDemand, int]]


class Scored(NamedTuple):
    """By row asked about: points float64[M], -inf for never; the device that gives a fraction."""

    points: F64
    device: I64


class Policy(ABC):
    """Points for rows where a pod fits; what was said holds until the row changes."""

    def mood(self, fleet: Fleet, demand: GpuDemand) -> bool:  # noqa: ARG002
        """What was said in another mood does not hold."""
        return False

    @abstractmethod
    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, mood: bool) -> Scored: ...

    def choose(self, found: F64) -> int:
        """The row with most points, the first of equals."""
        return int(found.argmax())


class Simple(Policy):
    """Points by a kernel; the device with least left gives a fraction."""

    def __init__(self, kernel: Callable[[Fleet, I64, GpuShares, GpuDemand], I64]) -> None:
        self._kernel = kernel

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, mood: bool) -> Scored:  # noqa: ARG002
        shares = fleet.shares.take(rows)
        found = self._kernel(fleet, rows, shares, demand)
        return Scored(found.astype(np.float64), tightest(shares.left, demand.milli))


class Random(Policy):
    """Any node, any device, as our own seeded numbers have it."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, mood: bool) -> Scored:  # noqa: ARG002
        offered = fleet.shares.left[rows] >= demand.milli
        drawn = np.where(offered, self._random.random(offered.shape), -1.0)
        return Scored(np.zeros(len(rows)), drawn.argmax(axis=1))

    def choose(self, found: F64) -> int:
        fitting = np.flatnonzero(found == 0.0)
        return int(self._random.choice(fitting)) if len(fitting) else 0


class _ByWays(Policy):
    """Every way to place a pod is looked at, once for all rows that offer the same."""

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, mood: bool) -> Scored:
        _, first, where = np.unique(fleet.state[rows], return_index=True, return_inverse=True)
        ways, found = self._points(fleet.shares.take(rows[first]), demand, mood=mood)
        index, device = best_of(ways, found, len(first))
        return Scored(found[index][where], device[where])

    @abstractmethod
    def _points(
        self,
        shares: GpuShares,
        demand: GpuDemand,
        *,
        mood: bool,
    ) -> tuple[Placements, F64]: ...


class Descent(_ByWays):
    """Fragmentation gradient descent."""

    def __init__(self, counts: Counts) -> None:
        self._fragmentation = Fragmentation(expected(counts))

    def _points(
        self,
        shares: GpuShares,
        demand: GpuDemand,
        *,
        mood: bool,  # noqa: ARG002
    ) -> tuple[Placements, F64]:
        ways, gradient = self._fragmentation.gradient(shares, demand)
        return ways, descent_points(gradient).astype(np.float64)


class CuttingStock(_ByWays):
    """Our own: as little as possible of what devices are worth is lost.

    `share`: of all devices the last ones kept for pods that waste little of them, 0 for none.
    """

    def __init__(self, counts: Counts, share: float = 0.0) -> None:
        self._stock = Stock(counts)
        self._share = share

    def mood(self, fleet: Fleet, demand: GpuDemand) -> bool:
        """Whether the last devices are closed to such a pod."""
        if not 0 < demand.milli < WHOLE or fleet.free >= self._share * fleet.devices:
            return False
        return self._stock.worth.waste(demand.milli) > RESERVED_WASTE

    def _points(
        self,
        shares: GpuShares,
        demand: GpuDemand,
        *,
        mood: bool,
    ) -> tuple[Placements, F64]:
        ways = placements(shares, demand)
        found = -self._stock.costs(shares, demand, ways)
        if mood:
            closed: Mask = self._stock.opens(shares, demand, ways)
            found[closed] = -np.inf
        return ways, found


def _clustering(fleet: Fleet, rows: I64, shares: GpuShares, demand: GpuDemand) -> I64:
    return points.clustering(shares, demand, *fleet.kinds(rows, demand))


#: Name -> (what it is, policy from the pods of the trace and the seed).
POLICIES: Final[dict[str, tuple[str, Callable[[Counts, int], Policy]]]] = {
    "random": ("any node that fits", lambda _counts, seed: Random(seed)),
    "dotprod": (
        "little of what the pod asks much of is left",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: points.dot_product(shares, pod)),
    ),
    "gpuclustering": ("pods of one kind together", lambda _counts, _seed: Simple(_clustering)),
    "gpupacking": (
        "devices in use first, free nodes last",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: points.packing(shares, pod)),
    ),
    "bestfit": (
        "least is left with the pod",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: points.best_fit(shares, pod)),
    ),
    "fgd": ("fragmentation gradient descent", lambda counts, _seed: Descent(counts)),
    "stock": (
        "ours: the least of what devices are worth as stock to be cut is lost",
        lambda counts, _seed: CuttingStock(counts),
    ),
    "stock-reserve": (
        "the same, and the last 5 % of the devices are kept from fractions that waste them",
        lambda counts, _seed: CuttingStock(counts, RESERVED_SHARE),
    ),
}


def policy_named(word: str) -> str | None:
    """The policy by its name here or as published, in any case: `GpuPacking`, `gpu-packing`."""
    wanted = word.lower().replace("-", "").removeprefix("gpu")
    return next(
        (name for name in POLICIES if name.replace("-", "").removeprefix("gpu") == wanted), None
    )
