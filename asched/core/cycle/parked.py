"""Attempts that have to wait for open cycles.

A pod that needs extenders waits while another pod's extender works. One group is tried at a time,
because two groups that reserve places could block each other, and pods that join a group wait for
its outcome. A group of thousands of pods waits until all of them are taken from the queue.

Bounds  PARKED_MAX attempts; then no further pod is popped.
"""

from bisect import insort
from typing import Final

from asched.core.cycle.context import Attempt
from asched.core.cycle.extension import SchedulingUnit

#: A guess: hours of work for a slow extender.
PARKED_MAX: Final = 10_000


class ParkedAttempts:
    """Parked attempts by priority, then by id."""

    def __init__(self) -> None:
        self._attempts: list[Attempt | SchedulingUnit] = []
        self.open_units: set[str] = set()

    def __len__(self) -> int:
        return len(self._attempts)

    @property
    def is_full(self) -> bool:
        return len(self._attempts) >= PARKED_MAX

    def add(self, attempt: Attempt | SchedulingUnit) -> None:
        insort(self._attempts, attempt, key=lambda parked: (-parked.pod.priority, parked.id))

    def pop(self, *, is_deciding: bool) -> Attempt | SchedulingUnit | None:
        """Pop the first attempt that need not wait. `is_deciding`: a cycle awaits an extender."""
        at = self._first(is_deciding=is_deciding)
        return self._attempts.pop(at) if at is not None else None

    def is_due(self, *, is_deciding: bool) -> bool:
        """Whether `pop` would return an attempt."""
        return self._first(is_deciding=is_deciding) is not None

    def _first(self, *, is_deciding: bool) -> int | None:
        if not self._attempts or is_deciding:
            return None
        waits = (self.has_to_wait(attempt, is_deciding=False) for attempt in self._attempts)
        return next((at for at, has_to_wait in enumerate(waits) if not has_to_wait), None)

    def has_to_wait(self, attempt: Attempt | SchedulingUnit, *, is_deciding: bool) -> bool:
        if not isinstance(attempt, Attempt) and (self.open_units or attempt.is_gathering):
            return True
        return is_deciding and attempt.consults
