"""A sum over the many parts of one object that goes on where the budget of work stopped it.

Parts are added in chunks, each of which asks the budget first; what was added so far is kept for
whoever asks next with equal stamps. A few parts are added in one go and cost nobody a look.

Bounds  OPEN_MAX sums that were stopped; the one unused for longest goes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from asched.core.state.budget import SLICE_STEPS, Budget

P = TypeVar("P")
S = TypeVar("S")

#: So many parts are added without asking, unless they are long.
PARTS_FEW: Final = 64
#: Parts added between two looks at the budget, or as many as cost so many steps.
CHUNK, CHUNK_STEPS = 16, 200.0
#: A guess: attempts that pause in the middle of such a sum are rare.
OPEN_MAX: Final = 64


class Stepwise(Generic[P, S]):
    """`steps_of` a part are what it costs to add it, in steps of the budget."""

    def __init__(self, budget: Budget, steps_of: Callable[[P], float]) -> None:
        self._budget = budget
        self._steps_of = steps_of
        self._open: OrderedDict[Hashable, tuple[Hashable, int, S]] = OrderedDict()

    def sum(
        self,
        key: Hashable,
        stamp: Callable[[], Hashable],
        parts: Sequence[P],
        begin: S,
        add: Callable[[S, P], S],
    ) -> S:
        """`begin` with all parts added. Raises OutOfTurn. `key` tells one sum from another; equal
        stamps say that a part still adds the same.
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
            self._open[key] = (now, at, total)
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
            until, steps = at, 0.0
            while until < min(at + CHUNK, len(parts)) and steps < CHUNK_STEPS:
                steps += self._steps_of(parts[until])
                until += 1
            self._budget.charge(steps)
            for part in parts[at:until]:
                total = add(total, part)
            at = until
        self._open.pop(key, None)
        return total
