"""A list made from the many parts of one object, within the budget of each turn.

A tenant may write tens of thousands of terms into one pod. Compiling each takes microseconds, all
together more than a turn. Finished parts are kept, so that the next call continues.

    Gradual(budget, parts, make, steps).all()   every part made, or OutOfTurn

A few parts are made at once, without a charge.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from asched.core.state.budget import Budget

P = TypeVar("P")
R = TypeVar("R")

#: This many parts are made without a charge; objects with more are treated as large.
FEW: Final = 64
#: Parts made between two charges.
CHUNK: Final = 64


class Gradual(Generic[P, R]):
    """`steps` of the budget per part."""

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
        """The results of all parts. Raises OutOfTurn, and the errors of `make`."""
        parts, made = self._parts, self.made
        while len(made) < len(parts):
            chunk = parts[len(made) : len(made) + CHUNK]
            if len(parts) > FEW:
                self._budget.charge(len(chunk) * self._steps)
            for part in chunk:
                made.append(self._make(part))
        return made
