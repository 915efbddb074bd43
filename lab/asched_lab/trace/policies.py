"""The policies of trace runs: the kernels of the GPU score plugins, and the choice of the device
that serves a fraction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.hardware.gpu.fragmentation import Fragmentation, descent_points, expected
from asched.hardware.gpu.points import best_fit, clustering, dot_product, packing
from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, Placements, best_of, placements
from asched.hardware.gpu.stock import Stock
from asched.plugin import I64
from asched_lab.trace.fleet import Fleet

#: With the policy of that name: a fraction that would waste more than this of a device does not
#: open a free device, while fewer than this share of all devices are free.
RESERVED_WASTE: Final = 0.1
RESERVED_SHARE: Final = 0.05

F64 = npt.NDArray[np.float64]
Counts = Sequence[tuple[GpuDemand, int]]


class Scored(NamedTuple):
    """Per row: points float64[M], -inf for never; the device that serves a fraction."""

    points: F64
    device: I64


class Policy(ABC):
    """Points for rows where a pod fits; they are valid until the row or the mode changes."""

    def is_scarce(self, fleet: Fleet, demand: GpuDemand) -> bool:  # noqa: ARG002
        """The mode; points of another mode are not valid."""
        return False

    @abstractmethod
    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, is_scarce: bool) -> Scored: ...

    def choose(self, found: F64) -> int:
        """The row with most points, the first of equal ones."""
        return int(found.argmax())


class Simple(Policy):
    """Points by a kernel; the device with the least free share serves a fraction."""

    def __init__(self, kernel: Callable[[Fleet, I64, GpuShares, GpuDemand], I64]) -> None:
        self._kernel = kernel

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, is_scarce: bool) -> Scored:  # noqa: ARG002
        shares = fleet.shares.take(rows)
        found = self._kernel(fleet, rows, shares, demand)
        free = shares.free
        device: I64 = np.where(free >= demand.milli, free, np.iinfo(np.int64).max).argmin(axis=1)
        return Scored(found.astype(np.float64), device)


class Random(Policy):
    """Any node, any device, by a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, is_scarce: bool) -> Scored:  # noqa: ARG002
        offered = fleet.shares.free[rows] >= demand.milli
        drawn = np.where(offered, self._random.random(offered.shape), -1.0)
        return Scored(np.zeros(len(rows)), drawn.argmax(axis=1))

    def choose(self, found: F64) -> int:
        fitting = np.flatnonzero(found == 0.0)
        return int(self._random.choice(fitting)) if len(fitting) else 0


class _ByWays(Policy):
    """Scores every way to place a pod, once for all rows with the same free devices."""

    def score(self, fleet: Fleet, rows: I64, demand: GpuDemand, *, is_scarce: bool) -> Scored:
        _, first, where = np.unique(fleet.state[rows], return_index=True, return_inverse=True)
        ways, found = self._points(fleet.shares.take(rows[first]), demand, is_scarce=is_scarce)
        index, device = best_of(ways, found, len(first))
        return Scored(found[index][where], device[where])

    @abstractmethod
    def _points(
        self,
        shares: GpuShares,
        demand: GpuDemand,
        *,
        is_scarce: bool,
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
        is_scarce: bool,  # noqa: ARG002
    ) -> tuple[Placements, F64]:
        ways, gradient = self._fragmentation.gradient(shares, demand)
        return ways, descent_points(gradient).astype(np.float64)


class CuttingStock(_ByWays):
    """A policy of asched: lose as little as possible of the devices' value.

    `share`: the last share of all devices, reserved for pods that waste little of them, 0 for none.
    """

    def __init__(self, counts: Counts, share: float = 0.0) -> None:
        self._stock = Stock(counts)
        self._share = share
        self._whole_cpu = _quarter(
            [entry for entry in counts if entry[0].number and entry[0].milli == WHOLE]
        )

    def is_scarce(self, fleet: Fleet, demand: GpuDemand) -> bool:
        """Whether the last devices are closed to such a pod."""
        if not 0 < demand.milli < WHOLE or fleet.free >= self._share * fleet.devices:
            return False
        return self._stock.price(demand.milli) - demand.milli / WHOLE > RESERVED_WASTE

    def _points(
        self,
        shares: GpuShares,
        demand: GpuDemand,
        *,
        is_scarce: bool,
    ) -> tuple[Placements, F64]:
        ways = placements(shares, demand)
        found = -self._stock.costs(shares, demand, ways)
        if is_scarce:  # a device that a whole pod could still use is not opened
            untouched = shares.free[ways.position, ways.device] == WHOLE
            usable = shares.cpu[ways.position] >= self._whole_cpu
            found[untouched & usable] = -np.inf
        return ways, found


def _quarter(counts: Counts) -> int:
    """The CPU that suffices for a quarter of the pods."""
    total, seen = sum(count for _, count in counts), 0.0
    for demand, count in sorted(counts):
        seen += count
        if seen > total / 4:
            return demand.cpu
    return 0


def _clustering(fleet: Fleet, rows: I64, shares: GpuShares, demand: GpuDemand) -> I64:
    return clustering(shares, demand, *fleet.kinds(rows, demand))


#: Name -> (what it is, policy from the pods of the trace and the seed).
POLICIES: Final[dict[str, tuple[str, Callable[[Counts, int], Policy]]]] = {
    "random": ("any node that fits", lambda _counts, seed: Random(seed)),
    "dotprod": (
        "little is left of what the pod requests most",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: dot_product(shares, pod)),
    ),
    "gpuclustering": ("pods of one kind together", lambda _counts, _seed: Simple(_clustering)),
    "gpupacking": (
        "devices in use first, free nodes last",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: packing(shares, pod)),
    ),
    "bestfit": (
        "the node with the least left",
        lambda _counts, _seed: Simple(lambda _f, _r, shares, pod: best_fit(shares, pod)),
    ),
    "fgd": ("fragmentation gradient descent", lambda counts, _seed: Descent(counts)),
    "stock": (
        "asched's: the least loss of the devices' value as stock to be cut",
        lambda counts, _seed: CuttingStock(counts),
    ),
    "stock-reserve": (
        "the same, with the last 5 % of the devices closed to fractions that waste them",
        lambda counts, _seed: CuttingStock(counts, RESERVED_SHARE),
    ),
}


def policy_named(word: str) -> str | None:
    """The policy by its name, own or published, in any case: `GpuPacking`, `gpu-packing`."""
    wanted = word.lower().replace("-", "").removeprefix("gpu")
    return next(
        (name for name in POLICIES if name.replace("-", "").removeprefix("gpu") == wanted), None
    )
