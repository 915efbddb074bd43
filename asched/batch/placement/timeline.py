"""Room over time: the free amounts of each row from some time on, by the known ends of pods.

    free now + amounts of pods that have ended by t - amounts promised at t

No rules are checked here: what fits by amounts is tried by all rules afterwards. A hundred thousand
pods may have known ends, and a gang may have two thousand classes, so generators yield the cost of
each step, and may be stopped there.
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

#: Pods that do not fit now, although the amounts are free, get no start before this time.
SOON_S: Final = 30.0
#: Cells that are added or compared in a step, and promises that double the cost of a check.
#: Measured roughly.
CELLS_A_STEP: Final = 1_000
LOOK_STEPS: Final = 1
PROMISED_A_LOOK: Final = 4


class Endings(NamedTuple):
    """Ends of pods: at `at_s` float64[E], on `rows` intp[E], with the amounts of `kinds` intp[E]:
    `amounts` int64[R+1, K].
    """

    at_s: F64
    rows: npt.NDArray[np.intp]
    kinds: npt.NDArray[np.intp]
    amounts: I64


class Promised(NamedTuple):
    """Room promised from `start_s` to `end_s`: `amounts` int64[R+1, n] on `rows`."""

    start_s: float
    end_s: float
    rows: npt.NDArray[np.intp]
    amounts: I64

    def is_active(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


class Start(NamedTuple):
    """A time, and int64[R+1, N] the free amounts from then on."""

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
    """`free` int64[R+1, N]: the free amounts now, negative where more is requested."""

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
        further = [self._now_s + SOON_S, *(promise.end_s for promise in self.promised)]
        every = np.unique(np.concatenate((self._at_s, np.array(further, dtype=np.float64))))
        found: list[float] = every[(self._now_s < every) & (every <= horizon_s)].tolist()
        return found

    @property
    def look_steps(self) -> float:
        """The cost of computing the free amounts at a time."""
        axes, height = len(self._free), int(self._free.shape[1])
        return LOOK_STEPS + axes * (len(self._at_s) + height) / CELLS_A_STEP

    def free_at(self, at_s: float) -> I64:
        """int64[R+1, N]: free amounts after the ends up to `at_s`, promises ignored."""
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
        """int64[R+1, N]: the lowest free amounts at any time from `at_s` on, before `until_s`."""
        found = self._beside_promised(at_s, None)
        for promise in self.promised:
            if at_s < promise.start_s < until_s:
                place = np.full(found.shape[1], -1, dtype=np.intp)
                place[promise.rows] = 0
                rows = np.flatnonzero(place == 0)
                place[rows] = np.arange(len(rows))
                then = self._beside_promised(promise.start_s, place)
                found[:, rows] = np.minimum(found[:, rows], then)
        return found

    def _beside_promised(self, at_s: float, place: Places | None) -> I64:
        found = self._free_on(at_s, place)
        for promise in self.promised:
            if promise.is_active(at_s):
                if place is None:
                    found[:, promise.rows] -= promise.amounts
                else:
                    there = np.flatnonzero(place[promise.rows] >= 0)
                    found[:, place[promise.rows[there]]] -= promise.amounts[:, there]
        return found

    def starts(
        self, demands: Sequence[TimelineDemand], lasts_s: float, horizon_s: float, scan_max: int
    ) -> Iterator[float | Start]:
        """Yield the starts at which all demands may fit by amounts, the earliest first, and the
        cost of each check before it.

        Promises only take room: what does not fit without them is skipped by bisection. After that
        `scan_max` times are checked.
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
    """Whether each of the demands alone would find enough slots in an empty cluster."""
    return all(demand.count <= int(demand.slots(offered).sum()) for demand in demands)


def _may_fit(demands: Sequence[TimelineDemand], room: I64) -> Steps[bool]:
    """Whether each of the demands alone finds enough slots."""
    for demand in demands:
        if int(demand.slots(room).sum()) < demand.count:
            return False
        yield room.size / CELLS_A_STEP
    return True


def rows_for(demands: Sequence[TimelineDemand], room: I64, spare: float) -> Steps[Mask]:
    """bool[N]: rows that take the demands by amounts, with `spare` times the needed slots; rows
    with most slots first.
    """
    chosen: Mask = np.zeros(room.shape[1], dtype=np.bool_)
    for demand in demands:
        yield 3 * room.size / CELLS_A_STEP
        slots = demand.slots(room)
        order = np.argsort(-slots, kind="stable")
        enough = np.cumsum(slots[order]) >= spare * demand.count
        last = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        taken = order[:last]
        chosen[taken[slots[taken] > 0]] = True
    return chosen
