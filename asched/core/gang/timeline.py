"""Room over time: what is free on each row from some moment on, by the ends that are known.

    free now + those who have ended by t - those to whom room is promised at t

Nothing here knows a rule: what fits by these amounts is tried by all rules afterwards.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Who did not fit just now, and would by amounts, is not promised the very same moment.
SOON_S: Final = 30.0


class Ending(NamedTuple):
    """Who gives `amounts` int64[R+1] on a row back at `at_s`."""

    at_s: float
    row: int
    amounts: I64


class Promised(NamedTuple):
    """Room that somebody has from `start_s` to `end_s`: `amounts` int64[R+1, n] on `rows`."""

    start_s: float
    end_s: float
    rows: npt.NDArray[np.intp]
    amounts: I64

    def is_active(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


class Demand(msgspec.Struct, frozen=True):
    """`count` equal pods that need `amounts` int64[R+1] each, on rows of `within` bool[N]."""

    amounts: I64
    count: int
    within: Mask

    def slots(self, room: I64) -> I64:
        """int64[N]: how many of them each row takes by amounts, `count` at most."""
        asked = self.amounts > 0
        by_resource = room[asked] // self.amounts[asked, None]
        found: I64 = np.clip(by_resource.min(axis=0, initial=self.count), 0, self.count)
        return np.where(self.within, found, 0)


class Timeline:
    """`free` int64[R+1, N] is what is left now, less than nothing where others wait for room."""

    def __init__(
        self, now_s: float, free: I64, endings: Sequence[Ending], promised: Sequence[Promised]
    ) -> None:
        endings = sorted(endings, key=lambda one: one.at_s)
        self._now_s = now_s
        self._free = free
        self._at_s: F64 = np.array([one.at_s for one in endings], dtype=np.float64)
        self._rows = np.array([one.row for one in endings], dtype=np.intp)
        shape = (len(endings), len(free))
        self._amounts: I64 = np.array([one.amounts for one in endings], dtype=np.int64)
        self._amounts = self._amounts.reshape(shape).T
        self.promised = promised

    def times(self, horizon_s: float) -> list[float]:
        """Moments at which room comes free, up to the horizon, and one soon; in order."""
        ends = [one.end_s for one in self.promised]
        every = {self._now_s + SOON_S, *self._at_s.tolist(), *ends}
        return sorted(at for at in every if self._now_s < at <= horizon_s)

    def free_at(self, at_s: float) -> I64:
        """int64[R+1, N]: without those who have ended, promises left aside."""
        ended = int(np.searchsorted(self._at_s, at_s, side="right"))
        rows, found = self._rows[:ended], self._free.copy()
        for axis in range(len(found)):
            np.add.at(found[axis], rows, self._amounts[axis, :ended])
        return found

    def room(self, at_s: float, until_s: float) -> I64:
        """int64[R+1, N]: the least that is left at any time from `at_s` on, before `until_s`."""
        found = self._beside_promised(at_s, None)
        for one in self.promised:
            if at_s < one.start_s < until_s:
                then = self._beside_promised(one.start_s, one.rows)
                found[:, one.rows] = np.minimum(found[:, one.rows], then)
        return found

    def _beside_promised(self, at_s: float, rows: npt.NDArray[np.intp] | None) -> I64:
        found = self.free_at(at_s)
        for one in self.promised:
            if one.is_active(at_s):
                found[:, one.rows] -= one.amounts
        return found if rows is None else found[:, rows]

    def may_fit(self, demands: Sequence[Demand], room: I64) -> bool:
        """Whether each of the demands alone finds enough slots."""
        return all(int(one.slots(room).sum()) >= one.count for one in demands)

    def starts(
        self, demands: Sequence[Demand], lasts_s: float, horizon_s: float, scan_max: int
    ) -> Iterator[tuple[float, I64]]:
        """(moment, room from then on) at which all demands may fit by amounts, the earliest first.

        Promises only take room: what does not fit without them is skipped by bisection. After that
        `scan_max` moments are looked at.
        """
        times = self.times(horizon_s)
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            if self.may_fit(demands, self.free_at(times[middle])):
                high = middle
            else:
                low = middle + 1
        for at_s in times[low : low + scan_max]:
            room = self.room(at_s, at_s + lasts_s)
            if self.may_fit(demands, room):
                yield at_s, room


def rows_for(demands: Sequence[Demand], room: I64, spare: float) -> Mask:
    """bool[N]: rows that take the demands by amounts, `spare` times as many slots as are needed;
    those that have most come first.
    """
    chosen: Mask = np.zeros(room.shape[1], dtype=np.bool_)
    for one in demands:
        slots = one.slots(room)
        order = np.argsort(-slots, kind="stable")
        enough = np.cumsum(slots[order]) >= spare * one.count
        last = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        taken = order[:last]
        chosen[taken[slots[taken] > 0]] = True
    return chosen
