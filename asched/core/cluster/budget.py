"""The budget of work in counted steps, not in time, so that equal facts give equal results.

    charge ─> left: continue
           ─> none left: OutOfTurn ─> the attempt is paused, other work runs, and the attempt starts
                                      again in a later turn

Work whose size a tenant controls charges before each part. The caller must cache the result of a
part, so that the attempt, started again, gets past it without cost; every slice then gets further.
The first part of a slice is always granted, whatever its size: the longest turn is a slice and one
such part. Outside of the machine's turns there is no limit: tools and tests run to the end.

`SlicedWork` is for work that precedes everything else, such as waking thousands of classes or
moving all pods after a reload. It is a generator that yields after each small part, having noted
its cost; no fact is processed and nothing is decided between its turns, so that its result is as if
it ran at once.

Bounds  SLICE_STEPS per turn; SLICES_MAX slices per attempt, which then ends in an error.
"""

import math
from collections import deque
from collections.abc import Iterator
from typing import Final

#: Approximate duration of a step, the unit in which costs are estimated. A search for devices
#: checks one device in a fifth of it.
STEP_US: Final = 10
#: Steps of an attempt per turn: as long as other pods' cycles run in a turn.
SLICE_STEPS: Final = 500
#: Slices per attempt: ten seconds of work, kube-scheduler's limit of one node's device search.
SLICES_MAX: Final = 2_000
TOO_MUCH: Final = "the pod takes too much work to place"


class OutOfTurn(Exception):  # noqa: N818
    """The slice is used up: results so far are cached, and the attempt must be repeated. The text
    is the error of an attempt that has used all its slices.
    """


class Budget:
    """The rest of a slice, in steps."""

    def __init__(self) -> None:
        self.remaining = math.inf
        #: steps since the start
        self.spent = 0.0

    def open(self, steps: int = SLICE_STEPS) -> None:
        """Begin a slice."""
        self.remaining = steps

    def close(self) -> None:
        """No limit any more."""
        self.remaining = math.inf

    @property
    def is_used_up(self) -> bool:
        return self.remaining <= 0

    def charge(self, steps: float, doing: str = "") -> None:
        """Call before work of this many steps. Raises OutOfTurn if nothing is left; `doing` names
        the work for the error, should the attempt have used all its slices.
        """
        if self.remaining <= 0:
            raise OutOfTurn(doing or TOO_MUCH)
        self.note(steps)

    def note(self, steps: float) -> None:
        """Count work that cannot be postponed."""
        self.remaining -= steps
        self.spent += steps


class SlicedWork:
    """Pieces of work, one after the other. `budget` is checked after each part."""

    def __init__(self) -> None:
        self.budget = Budget()
        #: the remaining pieces; read-only
        self.pieces: deque[Iterator[None]] = deque()

    def do(self, steps: Iterator[None]) -> None:
        """Start the work, once all before it is done."""
        self.pieces.append(steps)
        if len(self.pieces) == 1:
            self.go_on()

    def go_on(self) -> None:
        """Continue as far as the budget allows."""
        budget = self.budget
        while self.pieces and budget.remaining > 0:
            for _ in self.pieces[0]:
                if budget.remaining <= 0:
                    return
            self.pieces.popleft()


#: Of fewer parts no charge is made.
FEW: Final = 64
