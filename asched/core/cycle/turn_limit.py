"""Limit how long one turn runs cycles, by a clock or by the number of cycles of a recorded turn,
and when a paused attempt may go on while other pods are due.

The end of a turn determines which attempts come before which fact, so a replay has to know it. Two
values suffice: how often the turn went on, and whether a paused attempt was allowed to go on.
"""

import math
from collections.abc import Callable
from typing import Final, Protocol

#: How long one turn runs cycles before the driver serves its sockets again. Measured on 2 cores
#: with a real API server: shorter turns cost throughput, longer turns delay answers.
TURN_S: Final = 0.004
#: After a slice of one pod's paused attempt, other pods that are due have this many times as long.
#: The slices take 2.5 % of the time, which leaves room within a tenth for the intake of such pods.
OTHERS_SHARE: Final = 39
#: The same after a slice of a group or a ProvisioningRequest, which serves many pods.
OTHERS_SHARE_OF_MANY: Final = 19


class TurnLimit(Protocol):
    """`went_on`: how often `is_over` returned False in this turn. `resumed`: the last result of
    `may_resume` in this turn.
    """

    went_on: int
    resumed: bool

    def begin(self) -> None:
        """A turn begins its cycles."""

    def is_over(self) -> bool:
        """Whether no further cycle may begin in this turn."""

    def may_resume(self) -> bool:
        """Whether other pods have had their share of time since the last slice."""

    def begin_slice(self) -> None:
        """A paused attempt goes on."""

    def end_slice(self, others_share: int) -> None:
        """The attempt pauses again, or ended. `others_share`: how many times the slice's duration
        other pods have now.
        """


class TimeLimit:
    """Limits by the counter: TURN_S a turn."""

    __slots__ = ("_counter_s", "_others_until_s", "_slice_s", "_until_s", "resumed", "went_on")

    def __init__(self, counter_s: Callable[[], float]) -> None:
        self._counter_s = counter_s
        self._until_s = self._slice_s = 0.0
        self._others_until_s = -math.inf
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
        self.resumed = self._counter_s() >= self._others_until_s
        return self.resumed

    def begin_slice(self) -> None:
        self._slice_s = self._counter_s()

    def end_slice(self, others_share: int) -> None:
        now_s = self._counter_s()
        self._others_until_s = now_s + others_share * (now_s - self._slice_s)


class CountedLimit:
    """Goes on `granted` times a turn and resumes a paused attempt if `resumed`: repeats a recorded
    turn with these values.
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
        """Nothing is measured."""

    def end_slice(self, others_share: int) -> None:
        """Nothing is measured."""
