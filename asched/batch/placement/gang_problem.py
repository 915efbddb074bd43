"""A gang in numbers: classes of equal pods, and rows with their free amounts.

It has fewer restrictions than the rules. A gang without places here has none; places that are found
here have still to be checked by the filters.
"""

from functools import cached_property

import msgspec
import numpy as np

from asched.core.framework.order_free import slots_of
from asched.core.model.arrays import I64, Mask

#: (class, row, how many pods), in the order in which they are to be placed.
Plan = list[tuple[int, int, int]]


class GangProblem(msgspec.Struct, frozen=True, dict=True):
    """C classes of pods, N rows, R amounts (the last one counts pods).

    counts   how many pods a class has
    needs    int64[C, R] of one pod
    free     int64[R, N], never below zero
    rows     bool[C, N]: where a pod of the class may go at all
    caps     how many pods of a class one row takes at most
    apart    bool[C, C]: pairs of different classes whose pods must not share a row
    needed   how many pods must get places, of any classes
    """

    counts: tuple[int, ...]
    needs: I64
    free: I64
    rows: Mask
    caps: tuple[int, ...]
    apart: Mask
    needed: int

    @cached_property
    def slots(self) -> I64:
        """int64[C, N]: how many pods of a class alone a row takes, no more than there are."""
        found = np.zeros(self.rows.shape, dtype=np.int64)
        for at, count in enumerate(self.counts):
            most = np.full(self.free.shape[1], min(count, self.caps[at]), dtype=np.int64)
            slots = slots_of(most, self.needs[at].tolist(), self.free)
            found[at] = np.where(self.rows[at], slots, 0)
        return found

    def cheapest(self, prices: I64) -> tuple[int, tuple[int, ...]]:
        """(the lowest price of `needed` pods, the number of these pods by class)."""
        remaining, total = self.needed, 0
        taken = [0] * len(self.counts)
        for at in np.argsort(prices, kind="stable").tolist():
            taken[at] = min(remaining, self.counts[at])
            remaining -= taken[at]
            total += taken[at] * int(prices[at])
        return total, tuple(taken)


class Infeasible(msgspec.Struct, frozen=True):
    """Proved: there is no place for the gang. `why` is the certificate, in words."""

    why: str


class Unproven(msgspec.Struct, frozen=True):
    """Nothing was found, nothing was proved."""

    why: str
