"""How long one turn runs cycles: for so long by a clock, or as often as another turn went on.

Where a turn ends decides what is tried before which fact, so it must be told to whoever wants to
repeat the turn: how often it asked and went on is all there is to tell.
"""

from collections.abc import Callable
from typing import Final, Protocol

#: How long one turn runs cycles before the driver may look at its sockets again. Measured on 2
#: cores with a real API server: shorter turns cost throughput, longer ones delay answers.
TURN_S: Final = 0.004


class TurnLimit(Protocol):
    """`went_on`: how often this turn was told to go on so far."""

    went_on: int

    def begin(self) -> None:
        """A turn begins its cycles."""

    def is_over(self) -> bool:
        """Whether nothing more is to be begun. Once it is, it stays so until the next turn."""


class TimeLimit:
    """TURN_S of the counter."""

    __slots__ = ("_counter_s", "_until_s", "went_on")

    def __init__(self, counter_s: Callable[[], float]) -> None:
        self._counter_s = counter_s
        self._until_s = 0.0
        self.went_on = 0

    def begin(self) -> None:
        self._until_s = self._counter_s() + TURN_S
        self.went_on = 0

    def is_over(self) -> bool:
        if self._counter_s() >= self._until_s:
            return True
        self.went_on += 1
        return False


class CountedLimit:
    """Goes on `granted` times a turn: with what another turn's `went_on` was, it ends where that
    one did.
    """

    __slots__ = ("granted", "went_on")

    def __init__(self, granted: int = 0) -> None:
        self.granted = granted
        self.went_on = 0

    def begin(self) -> None:
        self.went_on = 0

    def is_over(self) -> bool:
        if self.went_on >= self.granted:
            return True
        self.went_on += 1
        return False
