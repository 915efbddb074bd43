"""An event loop in virtual time: it never waits for anything, and whoever owns the clock steps it.

Each simulated process has its own, so that one can stand still, or die, while others go on. Without
sockets and threads, whatever runs on it runs again in the same order.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from asched_lab.sim.clock import VirtualClock

#: Timers that are due within this belong to one moment: floats know no less of today's seconds.
MOMENT_S: Final = 1e-6


class _NoSockets:
    """What a loop without sockets asks for events."""

    def select(self, _timeout_s: float | None) -> tuple[()]:
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """`step` does what is due; the clock belongs to the world."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._clock_resolution = MOMENT_S
        self._selector = _NoSockets()

    def time(self) -> float:
        return self._clock.now_s()

    def next_s(self) -> float | None:
        """When something is due; None if never."""
        if self.is_busy:
            return self.time()
        return self._scheduled[0].when() if self._scheduled else None

    @property
    def is_busy(self) -> bool:
        """Whether something is due that waits for no time."""
        return bool(self._ready)

    def step(self) -> None:
        """One round of what is due by now; what it makes due is left to the next."""
        self.stop()
        self.run_forever()

    def _process_events(self, _events: Iterable[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits who would have to be woken."""
