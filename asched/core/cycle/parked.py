"""Attempts that have to wait for cycles that are open.

Who consults extenders waits while another one does. And one group is tried at a time: two that held
places at once would take the room from each other, and pods that join a group wait for its outcome.
One of thousands waits until it is gathered.

Bounds  PARKED_MAX of them; then only those are served.
"""

from bisect import insort
from typing import Final

from asched.core.cycle.context import Attempt
from asched.core.cycle.extension import SchedulingUnit

#: A guess: so many are hours of work for an extender that is slow.
PARKED_MAX: Final = 10_000


class Parked:
    """In the order in which they will have their turn."""

    def __init__(self) -> None:
        self._line: list[Attempt | SchedulingUnit] = []
        self.open_units: set[str] = set()

    def __len__(self) -> int:
        return len(self._line)

    @property
    def is_full(self) -> bool:
        return len(self._line) >= PARKED_MAX

    def add(self, attempt: Attempt | SchedulingUnit) -> None:
        insort(self._line, attempt, key=lambda parked: (-parked.pod.priority, parked.id))

    def pop(self, *, is_deciding: bool) -> Attempt | SchedulingUnit | None:
        """The first that need not wait any more. `is_deciding`: a cycle waits for an extender."""
        at = self._first(is_deciding=is_deciding)
        return self._line.pop(at) if at is not None else None

    def is_due(self, *, is_deciding: bool) -> bool:
        """Whether `pop` would give one."""
        return self._first(is_deciding=is_deciding) is not None

    def _first(self, *, is_deciding: bool) -> int | None:
        if not self._line or is_deciding:
            return None
        waits = (self.has_to_wait(attempt, is_deciding=False) for attempt in self._line)
        return next((at for at, has_to in enumerate(waits) if not has_to), None)

    def has_to_wait(self, attempt: Attempt | SchedulingUnit, *, is_deciding: bool) -> bool:
        if not isinstance(attempt, Attempt) and (self.open_units or attempt.is_gathering):
            return True
        return is_deciding and attempt.consults
