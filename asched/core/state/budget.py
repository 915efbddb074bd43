"""The budget of work: steps that are counted, never timed: equal facts lead to equal ends.

    charge ─> left: go on
           ─> none left: OutOfTurn ─> the attempt is paused, others have their turn, and in a later
                                      one it is made again from its beginning

Whatever a tenant can make long asks before each part of it. What such a part finds has to be kept
by whoever asked, so that the attempt, begun anew, is past it for nothing; then every slice gets an
attempt further. The first part of a slice is always granted, however large it is: the longest turn
is a slice and one such part.

Nobody counts outside of the machine's turns: tools and tests get their answers in one go.

Bounds  SLICE_STEPS a turn, SLICES_MAX slices an attempt, which then ends in an error: a pod that
        costs more suffers alone.
"""

import math
from typing import Final

#: About so long takes a step: the unit in which costs are estimated. A search for devices looks at
#: one device in a fifth of it.
STEP_US: Final = 10
#: Steps of an attempt in one turn: as long as the machine runs other pods' cycles in a turn.
SLICE_STEPS: Final = 500
#: Slices of one attempt: ten seconds of work, as long as kube-scheduler lets one node's search for
#: devices take.
SLICES_MAX: Final = 2_000
TOO_MUCH: Final = "the pod takes too much work to place"


class OutOfTurn(Exception):  # noqa: N818
    """The slice is used up: what was found is kept, and the attempt is to be made again. The text
    is what an attempt is told that may not go on.
    """


class Budget:
    """What is left of a slice, in steps."""

    __slots__ = ("left", "spent")

    def __init__(self) -> None:
        self.left = math.inf
        #: steps since the start
        self.spent = 0.0

    def open(self, steps: int = SLICE_STEPS) -> None:
        """A slice begins."""
        self.left = steps

    def close(self) -> None:
        """Nobody counts any more."""
        self.left = math.inf

    @property
    def is_used_up(self) -> bool:
        return self.left <= 0

    def charge(self, steps: float, doing: str = "") -> None:
        """Before work of so many steps. Raises OutOfTurn if nothing was left; `doing` says what
        took too long, should the attempt have had all of its slices.
        """
        if self.left <= 0:
            raise OutOfTurn(doing or TOO_MUCH)
        self.note(steps)

    def note(self, steps: float) -> None:
        """Work that cannot be put off: what follows it will be."""
        self.left -= steps
        self.spent += steps
