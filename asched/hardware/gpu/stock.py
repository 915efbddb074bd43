"""Devices as a cutting-stock problem: the value of a piece, and the loss of cutting it from a
device.

Fractions are pieces of given lengths, devices are bars. The frequencies of the lengths determine
the plan with the fewest bars; its prices give the value of every rest of a bar: that of the best
pieces that can still be cut from it. A cut costs nothing if the rest loses no more than the price
of the piece.

Bounds  GRAIN: lengths are rounded up, rests down. LENGTHS_MAX: the most frequent lengths count.
Source  Gilmore and Gomory, A Linear Programming Approach to the Cutting-Stock Problem, Operations
        Research 9 (1961)
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from asched.hardware.gpu.shares import WHOLE, GpuDemand, GpuShares, Placements
from asched.hardware.rows import F64
from asched.plugin import I64

GRAIN: Final = 10
CELLS: Final = WHOLE // GRAIN
LENGTHS_MAX: Final = 32
#: Plans tried before the last one is used; a few dozen find the best.
PLANS_MAX: Final = 200
#: Weight of a device's rest relative to the loss: among equals the tightest device wins.
TIGHT: Final = 0.1
_NOTHING: Final = 1e-9


def _rest_values(counts: Iterable[tuple[GpuDemand, float]]) -> F64:
    """Values of rests from the frequency of each length."""
    by_cells = defaultdict[int, float](float, {CELLS: 1.0})
    for demand, count in counts:
        if demand.number == 1:
            by_cells[_cells(demand.milli)] += count
    frequent = sorted(by_cells, key=lambda cells: (-by_cells[cells], cells))[:LENGTHS_MAX]
    lengths = sorted({*frequent, CELLS})
    need = np.array([by_cells[cells] for cells in lengths])
    need /= need.sum()
    plan = np.diag([float(CELLS // cells) for cells in lengths])
    for _ in range(PLANS_MAX):
        inverse = np.linalg.inv(plan)
        values, pattern = _best_pattern(lengths, inverse.sum(axis=0).tolist())
        if values[CELLS] <= 1 + _NOTHING:
            break
        entering = inverse @ pattern
        grows = entering > _NOTHING
        ratio = np.where(grows, inverse @ need / np.where(grows, entering, 1.0), np.inf)
        plan[:, int(ratio.argmin())] = pattern
    return np.array(values) / values[CELLS]


def _cells(milli: int) -> int:
    return -(-milli // GRAIN)


def _best_pattern(lengths: Sequence[int], prices: Sequence[float]) -> tuple[list[float], F64]:
    """(the best value that can be cut from every rest, how many of each length from a whole)."""
    pieces = list(enumerate(zip(lengths, prices, strict=True)))
    values = [0.0] * (CELLS + 1)
    chosen = [-1] * (CELLS + 1)
    for cells in range(1, CELLS + 1):
        values[cells] = values[cells - 1]
        for piece, (length, price) in pieces:
            if length > cells:
                break
            value = values[cells - length] + price
            if value > values[cells] + _NOTHING:
                values[cells], chosen[cells] = value, piece
    pattern = np.zeros(len(lengths))
    cells = CELLS
    while cells:
        piece = chosen[cells]
        cells -= lengths[piece] if piece >= 0 else 1
        if piece >= 0:
            pattern[piece] += 1
    return values, pattern


class Stock:
    """An expected workload, and the cost of placing a pod under it."""

    def __init__(self, counts: Sequence[tuple[GpuDemand, float]]) -> None:
        """Pods with their frequencies."""
        #: values of rests in steps of GRAIN, float64[CELLS + 1]; a whole device has the value 1
        self._rest = _rest_values(counts)
        using = [(demand, count) for demand, count in counts if demand.number]
        devices = sum(demand.total * count for demand, count in using)
        #: milli-CPU that pods use along with a thousandth of a device
        self.cpu_per_milli = sum(demand.cpu * count for demand, count in using) / (devices or 1)

    def price(self, milli: int) -> float:
        return float(self._rest[_cells(milli)])

    def loss(self, free: I64, milli: int) -> F64:
        """Loss of a device's value by giving `milli`, beyond the price of the piece."""
        after = self._rest[(free - milli) // GRAIN]
        return self._rest[free // GRAIN] - after - self.price(milli)

    def stranded(self, shares: GpuShares) -> F64:
        """float64[M] devices that stay idle for lack of CPU if pods come as expected."""
        total = shares.free.sum(axis=1)
        if not self.cpu_per_milli:
            return np.zeros(len(total))
        idle: F64 = np.maximum(0.0, total - shares.cpu / self.cpu_per_milli) / WHOLE
        return idle

    def costs(self, shares: GpuShares, demand: GpuDemand, ways: Placements) -> F64:
        """float64[X] devices lost by each way to place a pod; may be negative."""
        cost: F64 = self.stranded(ways.after) - self.stranded(shares)[ways.position]
        if 0 < demand.milli < WHOLE:
            free = shares.free[ways.position, ways.device]
            cost += self.loss(free, demand.milli) + TIGHT * (free - demand.milli) / WHOLE
        return cost
