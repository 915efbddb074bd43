"""Room over time: the free amounts of each row from some time on, by the known ends of pods.

    free now + amounts of pods that have ended by t - amounts promised at t

No rules are checked here: what fits by amounts is tried by all rules afterwards. A hundred
thousand pods may have known ends, and a gang may have two thousand classes, so generators yield
the cost of each step, and may be stopped there.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from asched.batch.backfill.reservations import Rows
from asched.batch.placement.plan import F64, Steps
from asched.core.framework.order_free import slots_of
from asched.core.model.arrays import I64, Mask

#: Pods that do not fit now, although the amounts are free, get no start before this time.
SOON_S: Final = 30.0
#: Cells that are added or compared in a step, and promises that double the cost of a check.
#: Measured roughly.
CELLS_A_STEP: Final = 1_000
CHECK_STEPS: Final = 1
PROMISED_PER_READ: Final = 4


class Promised(NamedTuple):
    """Room promised from `start_s` to `end_s`: `amounts` int64[R+1, n] on `rows`."""

    start_s: float
    end_s: float
    rows: Rows
    amounts: I64

    def is_active(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


class TimelineDemand(msgspec.Struct, frozen=True):
    """`count` equal pods that need `amounts` int64[R+1] each, on rows of `within` bool[N]."""

    amounts: I64
    count: int
    within: Mask

    def slots(self, room: I64) -> I64:
        """int64[N]: how many of them each row takes by amounts, `count` at most."""
        most = np.full(room.shape[1], self.count, dtype=np.int64)
        found = slots_of(most, self.amounts.tolist(), room)
        return np.where(self.within, np.maximum(found, 0), 0)


class Timeline(NamedTuple):
    """`free` int64[R+1, N]: the free amounts now, negative where more is requested. Ends of pods in
    order: at `at_s` float64[E], on `rows` intp[E], with the amounts of `kinds` intp[E]: `amounts`
    int64[R+1, K].
    """

    now_s: float
    free: I64
    at_s: F64
    rows: Rows
    kinds: Rows
    amounts: I64
    promised: Sequence[Promised]

    def times(self, horizon_s: float) -> list[float]:
        """Moments at which room comes free, up to the horizon, and one soon; in order."""
        further = [self.now_s + SOON_S, *(promise.end_s for promise in self.promised)]
        every = np.unique(np.concatenate((self.at_s, np.array(further, dtype=np.float64))))
        found: list[float] = every[(self.now_s < every) & (every <= horizon_s)].tolist()
        return found

    @property
    def read_steps(self) -> float:
        """The cost of computing the free amounts at a time."""
        axes, height = len(self.free), int(self.free.shape[1])
        return CHECK_STEPS + axes * (len(self.at_s) + height) / CELLS_A_STEP

    def free_at(
        self, at_s: float, on: Rows | None = None, promised: Sequence[Promised] = ()
    ) -> I64:
        """int64[R+1, n]: free amounts of these rows, of all by default, after the ends up to
        `at_s`, less what is promised then.
        """
        on = np.arange(self.free.shape[1]) if on is None else on
        place = np.full(self.free.shape[1], -1, dtype=np.intp)
        place[on] = np.arange(len(on))
        amounts_free = self.free[:, on]
        ended = int(np.searchsorted(self.at_s, at_s, side="right"))
        rows = place[self.rows[:ended]]
        kinds = self.kinds[:ended][rows >= 0]
        for axis, amounts in enumerate(self.amounts):
            np.add.at(amounts_free[axis], rows[rows >= 0], amounts[kinds])
        for promise in promised:
            if promise.is_active(at_s):
                rows = place[promise.rows]
                amounts_free[:, rows[rows >= 0]] -= promise.amounts[:, rows >= 0]
        return amounts_free

    def room(self, at_s: float, until_s: float) -> I64:
        """int64[R+1, N]: the lowest free amounts at any time from `at_s` on, before `until_s`."""
        found = self.free_at(at_s, None, self.promised)
        for promise in self.promised:
            if at_s < promise.start_s < until_s:
                then = self.free_at(promise.start_s, promise.rows, self.promised)
                found[:, promise.rows] = np.minimum(found[:, promise.rows], then)
        return found

    def starts(
        self, demands: Sequence[TimelineDemand], lasts_s: float, horizon_s: float, scan_max: int
    ) -> Iterator[float | tuple[float, I64]]:
        """Yield the starts at which all demands may fit by amounts, the earliest first, each with
        int64[R+1, N] the free amounts from then on; and the cost of each check before it.

        Promises only take room: what does not fit without them is skipped by bisection. After that
        `scan_max` times are checked.
        """
        yield self.read_steps
        times = self.times(horizon_s)
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            yield self.read_steps
            if (yield from may_fit(demands, self.free_at(times[middle]))):
                high = middle
            else:
                low = middle + 1
        for at_s in times[low : low + scan_max]:
            yield self.read_steps * (1 + len(self.promised) / PROMISED_PER_READ)
            room = self.room(at_s, at_s + lasts_s)
            if (yield from may_fit(demands, room)):
                yield at_s, room


def may_fit(demands: Sequence[TimelineDemand], room: I64) -> Steps[bool]:
    """Whether each of the demands alone finds enough slots."""
    for demand in demands:
        if int(demand.slots(room).sum()) < demand.count:
            return False
        yield room.size / CELLS_A_STEP
    return True


def rows_for(
    demands: Sequence[TimelineDemand], room: I64, spare: float, rows_max: int
) -> Steps[Mask]:
    """bool[N]: `rows_max` rows at most that take the demands by amounts, with `spare` times the
    needed slots; rows with most slots first.
    """
    chosen: Mask = np.zeros(room.shape[1], dtype=np.bool_)
    for demand in demands:
        yield 3 * room.size / CELLS_A_STEP
        slots = demand.slots(room)
        order = np.argsort(-slots, kind="stable")
        enough = np.cumsum(slots[order]) >= spare * demand.count
        last = int(np.argmax(enough)) + 1 if enough.any() else len(order)
        taken = order[:last]
        taken = taken[(slots[taken] > 0) & ~chosen[taken]]
        chosen[taken[: rows_max - int(chosen.sum())]] = True
    return chosen
