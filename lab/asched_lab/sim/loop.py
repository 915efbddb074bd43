"""An event loop in virtual time: it never waits, and the owner of the clock steps it.

Each simulated process has its own loop, so that one can stop or die while the rest go on. Without
sockets and threads, everything on it runs again in the same order.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from asched_lab.sim.clock import VirtualClock

#: Timers within this belong to one moment: the resolution of floats at today's seconds.
MOMENT_S: Final = 1e-6


class _NoSockets:
    """The selector of a loop without sockets."""

    def select(self, _timeout_s: float | None) -> tuple[()]:
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """`step` runs what is due; the clock belongs to the world."""

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
        """When the next call is due; None if never."""
        if self.is_busy:
            return self.time()
        return self._scheduled[0].when() if self._scheduled else None

    @property
    def is_busy(self) -> bool:
        """Whether a call is ready that waits for no time."""
        return bool(self._ready)

    def step(self) -> None:
        """One round of due calls; calls that these make due are left to the next round."""
        self.stop()
        self.run_forever()

    def _process_events(self, _events: Iterable[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """No thread waits in the selector."""
