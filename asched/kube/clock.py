"""The clocks of the process: steady time, its offset to the wall clock, and durations.

Loops, streams and the election take a `Clock` as a parameter; with a virtual one a run of the
process can be repeated.
"""

import time
from collections.abc import Callable


def steady_s() -> float:
    """Monotonic time, unaffected by wall clock changes. On Linux it includes time in suspend: after
    a suspended lease has expired, the process must not believe that it still leads.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """Seconds since the epoch, read at the start and continued by the steady clock.

    Backoff and deadlines must not move when the wall clock is set; times written to objects and
    logs must (`ahead_s`). `awake_s` is monotonic time without suspend, during which no message
    could be received.
    """

    def __init__(
        self,
        *,
        steady: Callable[[], float] = steady_s,
        wall: Callable[[], float] = time.time,
        awake: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steady = steady
        self._wall = wall
        self._offset_s = wall() - steady()
        self.awake_s = awake

    def now_s(self) -> float:
        return self._offset_s + self._steady()

    def ahead_s(self) -> float:
        """How far the wall clock has been set, or drifted, since the start."""
        return self._wall() - self.now_s()


monotonic_s = time.perf_counter
