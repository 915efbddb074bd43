"""The only clocks: time that never jumps, how far calendars are ahead of it, and durations.

Loops, streams and the election read a `Clock` that they are handed; one made of virtual time makes
a process whose life can be repeated.
"""

import time
from collections.abc import Callable


def steady_s() -> float:
    """Seconds that nobody sets. Those in which the machine slept count where the system tells
    (Linux): whoever slept through the end of a lease must not believe in it.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """Seconds since the epoch as of the start, carried on by a clock that nobody sets.

    Backoff and deadlines must not move when somebody sets the wall clock; what is written for
    people and other programs must (`ahead_s`). `awake_s` are seconds since any moment, those left
    out in which the machine slept: nobody could be heard meanwhile.
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


counter_s = time.perf_counter
