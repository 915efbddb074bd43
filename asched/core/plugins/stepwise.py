"""A sum over the many parts of one object that is interrupted and resumed by the budget of work.

Parts are added in chunks, each of which checks the budget first; the partial sum is kept for the
next call with equal stamps. A few parts are added at once, without a check.

A caller that needs several sums for one answer has finished sums kept as well (`keeps_whole`):
else each attempt would begin with the first of them again and never get past the last.

Bounds  OPEN_MAX sums that are interrupted or kept; the least recently used is dropped.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from asched.core.cluster.budget import SLICE_STEPS, Budget

P = TypeVar("P")
S = TypeVar("S")

#: So many parts are added without a check of the budget, unless they are long.
PARTS_FEW: Final = 64
#: Parts added between two checks of the budget, or as many as cost so many steps.
CHUNK, CHUNK_STEPS = 16, 200.0
#: A guess: attempts that pause in the middle of such a sum are rare.
OPEN_MAX: Final = 64


class Stepwise(Generic[P, S]):
    """`steps_of` gives the cost of adding a part, in steps of the budget. With `keeps_whole`
    several callers get the same sum, which they must not change.
    """

    def __init__(
        self, budget: Budget, steps_of: Callable[[P], float], *, keeps_whole: bool = False
    ) -> None:
        self._budget = budget
        self._steps_of = steps_of
        self._keeps_whole = keeps_whole
        self._open: OrderedDict[Hashable, tuple[Hashable, int, S]] = OrderedDict()

    def sum(
        self,
        key: Hashable,
        stamp: Callable[[], Hashable],
        parts: Sequence[P],
        begin: S,
        add: Callable[[S, P], S],
    ) -> S:
        """Return `begin` with all parts added. Raises OutOfTurn. `key` names the sum; equal stamps
        mean that each part still adds the same.
        """
        if len(parts) <= PARTS_FEW and sum(map(self._steps_of, parts)) <= SLICE_STEPS:
            for part in parts:
                begin = add(begin, part)
            return begin
        now, at, total = stamp(), 0, begin
        known = self._open.pop(key, None)
        if known is not None and known[0] == now:
            _, at, total = known
        while at < len(parts):
            self._keep(key, (now, at, total))
            until, steps = at, 0.0
            while until < min(at + CHUNK, len(parts)) and steps < CHUNK_STEPS:
                steps += self._steps_of(parts[until])
                until += 1
            self._budget.charge(steps)
            for part in parts[at:until]:
                total = add(total, part)
            at = until
        if self._keeps_whole:
            self._keep(key, (now, at, total))
        else:
            self._open.pop(key, None)
        return total

    def _keep(self, key: Hashable, state: tuple[Hashable, int, S]) -> None:
        self._open[key] = state
        if len(self._open) > OPEN_MAX:
            self._open.popitem(last=False)
