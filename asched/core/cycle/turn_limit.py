"""How long one turn runs cycles: for so long by a clock, or as often as another turn went on. And
when an attempt that paused may take time from others who want it.

Where a turn ends decides what is tried before which fact, so it must be told to whoever wants to
repeat the turn: how often it asked and went on, and whether others had their share, is all there is
to tell.
"""

import math
from collections.abc import Callable
from typing import Final, Protocol

#: How long one turn runs cycles before the driver may look at its sockets again. Measured on 2
#: cores with a real API server: shorter turns cost throughput, longer ones delay answers.
TURN_S: Final = 0.004
#: After a slice of one pod's attempt that paused, others have so many times as long, if they want
#: it. That leaves room in a tenth for what they hear and take in of whoever costs that much.
OTHERS_SHARE: Final = 39
#: ... and after one of a group's or a ProvisioningRequest's, which is that of many pods.
OTHERS_SHARE_OF_MANY: Final = 19


class TurnLimit(Protocol):
    """`went_on`: how often this turn was told to go on so far. `resumed`: whether it was told that
    others had their share, and that an attempt that paused may go on.
    """

    went_on: int
    resumed: bool

    def begin(self) -> None:
        """A turn begins its cycles."""

    def is_over(self) -> bool:
        """Whether nothing more is to be begun. Once it is, it stays so until the next turn."""

    def may_resume(self) -> bool:
        """Whether others, who want time, had their share of it since the last slice."""

    def begin_slice(self) -> None:
        """An attempt that paused goes on."""

    def end_slice(self, others_share: int) -> None:
        """It pauses again, or ended. `others_share`: how many times as long others have now."""


class TimeLimit:
    """TURN_S of the counter, and others' share by it."""

    __slots__ = ("_counter_s", "_slice_s", "_theirs_until_s", "_until_s", "resumed", "went_on")

    def __init__(self, counter_s: Callable[[], float]) -> None:
        self._counter_s = counter_s
        self._until_s = self._slice_s = 0.0
        self._theirs_until_s = -math.inf
        self.went_on = 0
        self.resumed = False

    def begin(self) -> None:
        self._until_s = self._counter_s() + TURN_S
        self.went_on = 0
        self.resumed = False

    def is_over(self) -> bool:
        if self._counter_s() >= self._until_s:
            return True
        self.went_on += 1
        return False

    def may_resume(self) -> bool:
        self.resumed = self._counter_s() >= self._theirs_until_s
        return self.resumed

    def begin_slice(self) -> None:
        self._slice_s = self._counter_s()

    def end_slice(self, others_share: int) -> None:
        now_s = self._counter_s()
        self._theirs_until_s = now_s + others_share * (now_s - self._slice_s)


class CountedLimit:
    """Goes on `granted` times a turn, and an attempt that paused as `resumed` says: with what
    another turn's were, it ends where that one did.
    """

    __slots__ = ("granted", "resumed", "went_on")

    def __init__(self, granted: int = 0, *, resumed: bool = False) -> None:
        self.granted = granted
        self.resumed = resumed
        self.went_on = 0

    def begin(self) -> None:
        self.went_on = 0

    def is_over(self) -> bool:
        if self.went_on >= self.granted:
            return True
        self.went_on += 1
        return False

    def may_resume(self) -> bool:
        return self.resumed

    def begin_slice(self) -> None:
        """Nothing is measured here."""

    def end_slice(self, others_share: int) -> None:
        """Nor here."""
