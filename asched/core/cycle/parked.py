"""Attempts that have to wait for cycles that are open.

Who consults extenders waits while another one does. And one group is tried at a time: two that held
places at once would take the room from each other, and pods that join a group wait for its outcome.

Bounds  PARKED_MAX of them; then only those are served.
"""

from bisect import insort
from typing import Final

from asched.core.cycle.context import Attempt
from asched.core.cycle.group import GroupAttempt

#: A guess: so many are hours of work for an extender that is slow.
PARKED_MAX: Final = 10_000


class Parked:
    """In the order in which they will have their turn."""

    def __init__(self) -> None:
        self._line: list[Attempt | GroupAttempt] = []
        self.open_groups: set[str] = set()

    def __len__(self) -> int:
        return len(self._line)

    @property
    def is_full(self) -> bool:
        return len(self._line) >= PARKED_MAX

    def add(self, attempt: Attempt | GroupAttempt) -> None:
        insort(self._line, attempt, key=lambda parked: (-parked.pod.priority, parked.id))

    def pop(self, *, is_deciding: bool) -> Attempt | GroupAttempt | None:
        """The first that need not wait any more. `is_deciding`: a cycle waits for an extender."""
        if not self._line or is_deciding:
            return None
        for at, attempt in enumerate(self._line):
            if not self.has_to_wait(attempt, is_deciding=False):
                return self._line.pop(at)
        return None

    def has_to_wait(self, attempt: Attempt | GroupAttempt, *, is_deciding: bool) -> bool:
        if isinstance(attempt, GroupAttempt) and self.open_groups:
            return True
        return is_deciding and attempt.consults
