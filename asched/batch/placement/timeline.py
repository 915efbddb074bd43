"""Room over time: what is free on each row from some moment on, by the ends that are known.

    free now + those who have ended by t - those to whom room is promised at t

Nothing here knows a rule: what fits by these amounts is tried by all rules afterwards. A hundred
thousand may be known to end, and a gang may be of two thousand classes: whatever goes through them
says what it costs, and may be stopped in between.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
#: intp[N]: which of some rows each row is, -1 if it is none of them.
Places = npt.NDArray[np.intp]
R = TypeVar("R")
#: Generators yield how many steps of the budget come next, and return what they found.
Steps = Generator[float, None, R]

#: Who did not fit just now, and would by amounts, is not promised the very same moment.
SOON_S: Final = 30.0
#: Cells that are added or compared in a step, and promises beside which a look costs twice as much.
#: Measured roughly.
CELLS_A_STEP: Final = 1_000
LOOK_STEPS: Final = 1
PROMISED_A_LOOK: Final = 4


class Endings(NamedTuple):
    """Who gives room back: at `at_s` float64[E], on `rows` intp[E], what pods of the class `kinds`
    intp[E] have: `amounts` int64[R+1, K].
    """

    at_s: F64
    rows: npt.NDArray[np.intp]
    kinds: npt.NDArray[np.intp]
    amounts: I64


class Promised(NamedTuple):
    """Room that somebody has from `start_s` to `end_s`: `amounts` int64[R+1, n] on `rows`."""

    start_s: float
    end_s: float
    rows: npt.NDArray[np.intp]
    amounts: I64

    def is_active(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


class Start(NamedTuple):
    """A moment, and int64[R+1, N] what is left from then on."""

    at_s: float
    room: I64


class TimelineDemand(msgspec.Struct, frozen=True):
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
        self, now_s: float, free: I64, endings: Endings, promised: Sequence[Promised]
    ) -> None:
        order = np.argsort(endings.at_s)
        self._now_s = now_s
        self._free = free
        self._at_s = endings.at_s[order]
        self._rows = endings.rows[order]
        self._kinds = endings.kinds[order]
        self._amounts = endings.amounts
        self.promised = promised

    def times(self, horizon_s: float) -> list[float]:
        """Moments at which room comes free, up to the horizon, and one soon; in order."""
        others = [self._now_s + SOON_S, *(one.end_s for one in self.promised)]
        every = np.unique(np.concatenate((self._at_s, np.array(others, dtype=np.float64))))
        found: list[float] = every[(self._now_s < every) & (every <= horizon_s)].tolist()
        return found

    @property
    def look_steps(self) -> float:
        """What it costs to count what is left at a moment."""
        axes, height = len(self._free), int(self._free.shape[1])
        return LOOK_STEPS + axes * (len(self._at_s) + height) / CELLS_A_STEP

    def free_at(self, at_s: float) -> I64:
        """int64[R+1, N]: without those who have ended, promises left aside."""
        return self._free_on(at_s, None)

    def _free_on(self, at_s: float, place: Places | None) -> I64:
        """The same, or int64[R+1, n] of the rows that have a `place`."""
        ended = int(np.searchsorted(self._at_s, at_s, side="right"))
        rows, kinds = self._rows[:ended], self._kinds[:ended]
        if place is None:
            found = self._free.copy()
        else:
            found = self._free[:, np.flatnonzero(place >= 0)]
            there = np.flatnonzero(place[rows] >= 0)
            rows, kinds = place[rows[there]], kinds[there]
        for axis in range(len(found)):
            np.add.at(found[axis], rows, self._amounts[axis, kinds])
        return found

    def room(self, at_s: float, until_s: float) -> I64:
        """int64[R+1, N]: the least that is left at any time from `at_s` on, before `until_s`."""
        found = self._beside_promised(at_s, None)
        for one in self.promised:
            if at_s < one.start_s < until_s:
                place = np.full(found.shape[1], -1, dtype=np.intp)
                place[one.rows] = 0
                rows = np.flatnonzero(place == 0)
                place[rows] = np.arange(len(rows))
                then = self._beside_promised(one.start_s, place)
                found[:, rows] = np.minimum(found[:, rows], then)
        return found

    def _beside_promised(self, at_s: float, place: Places | None) -> I64:
        found = self._free_on(at_s, place)
        for one in self.promised:
            if one.is_active(at_s):
                if place is None:
                    found[:, one.rows] -= one.amounts
                else:
                    there = np.flatnonzero(place[one.rows] >= 0)
                    found[:, place[one.rows[there]]] -= one.amounts[:, there]
        return found

    def starts(
        self, demands: Sequence[TimelineDemand], lasts_s: float, horizon_s: float, scan_max: int
    ) -> Iterator[float | Start]:
        """Moments at which all demands may fit by amounts, the earliest first; before each look at
        one, the steps that it costs.

        Promises only take room: what does not fit without them is skipped by bisection. After that
        `scan_max` moments are looked at.
        """
        yield self.look_steps
        times = self.times(horizon_s)
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            yield self.look_steps
            if (yield from _may_fit(demands, self.free_at(times[middle]))):
                high = middle
            else:
                low = middle + 1
        for at_s in times[low : low + scan_max]:
            yield self.look_steps * (1 + len(self.promised) / PROMISED_A_LOOK)
            room = self.room(at_s, at_s + lasts_s)
            if (yield from _may_fit(demands, room)):
                yield Start(at_s, room)


def may_ever_fit(demands: Sequence[TimelineDemand], offered: I64) -> bool:
    """Whether each of the demands alone would find enough slots if nobody else were there."""
    return all(one.count <= int(one.slots(offered).sum()) for one in demands)


def _may_fit(demands: Sequence[TimelineDemand], room: I64) -> Steps[bool]:
    """Whether each of the demands alone finds enough slots."""
    for one in demands:
        if int(one.slots(room).sum()) < one.count:
            return False
        yield room.size / CELLS_A_STEP
    return True


def rows_for(demands: Sequence[TimelineDemand], room: I64, spare: float) -> Steps[Mask]:
    """bool[N]: rows that take the demands by amounts, `spare` times as many slots as are needed;
    those that have most come first.
    """
    chosen: Mask = np.zeros(room.shape[1], dtype=np.bool_)
    for one in demands:
        yield 3 * room.size / CELLS_A_STEP
        slots = one.slots(room)
        order = np.argsort(-slots, kind="stable")
        enough = np.cumsum(slots[order]) >= spare * one.count
        last = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        taken = order[:last]
        chosen[taken[slots[taken] > 0]] = True
    return chosen
