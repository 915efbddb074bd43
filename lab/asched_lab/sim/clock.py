"""Virtual time: a number that jumps to the next due call, and an event loop in this time.

Everything that happens in a simulation is a call on the clock's agenda. Calls due at the same
moment happen in the order in which they were added, so a run can be repeated exactly. Each
simulated process has its own loop, which never waits, so that one can stop or die while the rest go
on; the owner of the clock steps it.
"""

import asyncio
import heapq
import sys
from asyncio import _set_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from itertools import count
from math import inf, nextafter
from typing import Any, Final

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


#: Timers within this belong to one moment: the resolution of floats at today's seconds.
MOMENT_S: Final = 1e-6


class _NoSockets:
    """The selector of a loop without sockets."""

    def select(self, _timeout_s: float | None) -> tuple[()]:
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """`step` runs what is due; the clock belongs to the world. `rate`: seconds that pass on this
    loop within a second of the world.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _run_once: Callable[[], None]
    _asyncgen_firstiter_hook: Callable[[AsyncGenerator[Any, Any]], None]
    _asyncgen_finalizer_hook: Callable[[AsyncGenerator[Any, Any]], None]

    def __init__(self, clock: VirtualClock, rate: float = 1.0) -> None:
        super().__init__()
        self._clock = clock
        self._rate = rate
        self._began_s = clock.now_s()
        self._clock_resolution = MOMENT_S
        self._selector = _NoSockets()
        #: The first timer, and when it is due in the world's time.
        self._first: tuple[asyncio.TimerHandle | None, float] = (None, 0.0)

    def time(self) -> float:
        return self._own_s(self._clock.now_s())

    def _own_s(self, world_s: float) -> float:
        return self._began_s + (world_s - self._began_s) * self._rate

    def next_s(self) -> float | None:
        """When the next call is due, in the world's time; None if never."""
        if self._ready:
            return self._clock.now_s()
        if not self._scheduled:
            return None
        timer, world_s = self._first
        if timer is not self._scheduled[0]:
            timer = self._scheduled[0]
            world_s = self._world_s(timer.when())
            self._first = timer, world_s
        return world_s

    def _world_s(self, own_s: float) -> float:
        world_s = self._began_s + (own_s - self._began_s) / self._rate
        while self._own_s(world_s) < own_s:  # rounded down
            world_s = nextafter(world_s, inf)
        return world_s

    @property
    def is_busy(self) -> bool:
        """Whether a call is ready that waits for no time."""
        return bool(self._ready)

    def step(self) -> None:
        """One round of due calls; calls that these make due are left to the next round.

        As `stop` and `run_forever` together, without what only a thread of its own needs.
        """
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
        _set_running_loop(self)
        try:
            self._run_once()
        finally:
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _process_events(self, _events: Iterable[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """No thread waits in the selector."""
