"""The only clocks: time that never jumps, how far calendars are ahead of it, and durations."""

import time


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
    people and other programs must (`ahead_s`).
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - steady_s()

    def now_s(self) -> float:
        return self._offset_s + steady_s()

    def ahead_s(self) -> float:
        """How far the wall clock has been set, or drifted, since the start."""
        return time.time() - self.now_s()


counter_s = time.perf_counter
monotonic_s = time.monotonic
