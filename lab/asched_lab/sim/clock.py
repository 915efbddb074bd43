"""Virtual time: a number that jumps to the next due call.

Everything that happens in a simulation is a call on this clock's agenda. Calls due at the same
moment happen in the order in which they were added, so a run can be repeated exactly.
"""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

#: Start of simulations: an ordinary day, since timestamps of objects are derived from it.
START_S: Final = 1_750_000_000.0


class VirtualClock:
    """`now_s` is seconds since 1970, like the clock of production."""

    def __init__(self, start_s: float = START_S) -> None:
        self._now_s = start_s
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def now_s(self) -> float:
        return self._now_s

    def after(self, wait_s: float, call: Callable[[], None]) -> None:
        """Add a call for later; nothing is due in the past."""
        due_s = self._now_s + max(wait_s, 0.0)
        heapq.heappush(self._agenda, (due_s, next(self._order), call))

    def next_s(self) -> float | None:
        """The time of the next call; None if the agenda is empty."""
        return self._agenda[0][0] if self._agenda else None

    def jump(self, to_s: float) -> None:
        """Go to a moment; `run_due` makes the calls that were due until then."""
        self._now_s = max(self._now_s, to_s)

    def run_due(self) -> None:
        """Make every call that is due by now, including calls that these make due."""
        while self._agenda and self._agenda[0][0] <= self._now_s:
            heapq.heappop(self._agenda)[2]()
