"""What a turn of the machine does, and what has to wait for a later one.

    TurnLimit     how long cycles run
    ParkedUnits   units that wait for open cycles: a pod that needs extenders while another
                  pod's extender works; a second group, because two groups that reserve places could
                  block each other; pods that join a group; and a group of thousands of pods until
                  all of them are taken from the queue
    PausedTasks   attempts that used up their slice; they go on while other pods are due, too

The end of a turn determines which attempts come before which fact, so a replay has to know it. Two
values suffice: how often the turn went on, and whether a paused attempt was allowed to go on.

Bounds  PARKED_MAX parked units, beyond which no pod is popped.
"""

import math
from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from asched.core.cycle.unit import Unit

#: How long one turn runs cycles before the driver serves its sockets again. Measured on 2 cores
#: with a real API server: shorter turns cost throughput, longer turns delay answers.
TURN_S: Final = 0.004
#: After a slice of one pod's paused attempt, other pods that are due have this many times as long.
#: The slices take 2.5 % of the time, which leaves room within a tenth for the intake of such pods.
OTHERS_SHARE: Final = 39
#: The same after a slice of a group or a ProvisioningRequest, which serves many pods.
OTHERS_SHARE_OF_MANY: Final = 19


class TurnLimit:
    """Limits by the counter: TURN_S a turn. `went_on`: how often `is_over` returned False in this
    turn. `resumed`: the last result of `may_resume` in this turn.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._until_s = self._slice_s = 0.0
        self._others_until_s = -math.inf
        self.went_on = 0
        self.resumed = False

    def begin(self) -> None:
        """A turn begins its cycles."""
        self._until_s = self._monotonic_s() + TURN_S
        self.went_on = 0
        self.resumed = False

    def is_over(self) -> bool:
        """Whether no further cycle may begin in this turn."""
        if self._monotonic_s() >= self._until_s:
            return True
        self.went_on += 1
        return False

    def may_resume(self) -> bool:
        """Whether other pods have had their share of time since the last slice."""
        self.resumed = self._monotonic_s() >= self._others_until_s
        return self.resumed

    def begin_slice(self) -> None:
        """A paused attempt goes on."""
        self._slice_s = self._monotonic_s()

    def end_slice(self, others_share: int) -> None:
        """The attempt pauses again, or ended. `others_share`: how many times the slice's duration
        other pods have now.
        """
        now_s = self._monotonic_s()
        self._others_until_s = now_s + others_share * (now_s - self._slice_s)


#: A guess: hours of work for a slow extender.
PARKED_MAX: Final = 10_000


class PausedTasks:
    """Tasks that used up a slice, by effect id. Every other slice goes to the oldest task, so that
    each one ends; the rest goes to the task with the fewest slices, so that a small one does not
    wait for many large ones. A task goes on until its number of slices has doubled: plugins keep
    the partial results of a limited number of tasks, which taking equal turns would lose.
    """

    def __init__(self) -> None:
        #: all of them
        self.ids: set[int] = set()
        self._by_slices: list[tuple[int, int, int]] = []
        self._by_age: list[tuple[int, int]] = []
        self._oldest_is_next = False

    def add(self, effect_id: int, operation: int, slices: int) -> None:
        """`operation`: id of the task's first effect; `slices`: how many it has had."""
        self.ids.add(effect_id)
        heappush(self._by_slices, (slices.bit_length(), operation, effect_id))
        heappush(self._by_age, (operation, effect_id))

    def pop(self) -> int:
        """The task that goes on next."""
        heap: list[Any] = self._by_age if self._oldest_is_next else self._by_slices
        self._oldest_is_next = not self._oldest_is_next
        while (effect_id := heappop(heap)[-1]) not in self.ids:
            pass
        self.ids.discard(effect_id)
        if not self.ids:
            self._by_slices.clear()
            self._by_age.clear()
        return int(effect_id)


class ParkedUnits:
    """Parked units by priority, then by the number of the attempt."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.open_units: set[str] = set()

    def add(self, unit: Unit) -> None:
        insort(self.units, unit, key=lambda parked: (-parked.pod.priority, parked.popped.id))

    def pop(self, *, is_deciding: bool) -> Unit | None:
        """Pop the first unit that need not wait. `is_deciding`: a cycle awaits an extender."""
        at = self._first(is_deciding=is_deciding)
        return self.units.pop(at) if at is not None else None

    def is_due(self, *, is_deciding: bool) -> bool:
        """Whether `pop` would return a unit."""
        return self._first(is_deciding=is_deciding) is not None

    def _first(self, *, is_deciding: bool) -> int | None:
        if not self.units or is_deciding:
            return None
        waits = (self.has_to_wait(unit, is_deciding=False) for unit in self.units)
        return next((at for at, has_to_wait in enumerate(waits) if not has_to_wait), None)

    def has_to_wait(self, unit: Unit, *, is_deciding: bool) -> bool:
        if unit.key and (self.open_units or unit.is_gathering):
            return True
        return is_deciding and unit.consults
