"""A list made of the many parts of one object, as far as the budget of each turn goes.

A tenant may write tens of thousands of terms into one pod. Each takes microseconds to compile, all
together more than a turn. What was made stays made: whoever asks again is further.

    Gradual(budget, parts, make, steps).all()   every part made, or OutOfTurn

Few parts are made in one go, and nobody is asked.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from asched.core.state.budget import Budget

P = TypeVar("P")
R = TypeVar("R")

#: So many parts are made without asking; whoever has more of something is treated as one with many.
FEW: Final = 64
#: Parts made between two looks at the budget.
CHUNK: Final = 64


class Gradual(Generic[P, R]):
    """`steps`: of the budget, for one part."""

    __slots__ = ("_budget", "_make", "_parts", "_steps", "made")

    def __init__(
        self, budget: Budget, parts: Sequence[P], make: Callable[[P], R], steps: float = 1.0
    ) -> None:
        self._budget = budget
        self._parts = parts
        self._make = make
        self._steps = steps
        self.made: list[R] = []

    def all(self) -> list[R]:
        """What came of all parts. Raises OutOfTurn, and whatever `make` raises."""
        parts, made = self._parts, self.made
        while len(made) < len(parts):
            chunk = parts[len(made) : len(made) + CHUNK]
            if len(parts) > FEW:
                self._budget.charge(len(chunk) * self._steps)
            for part in chunk:
                made.append(self._make(part))
        return made
