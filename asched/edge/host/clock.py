"""The only clocks: wall time that never jumps, and a counter for durations."""

import time


class Clock:
    """Seconds since the epoch as of the start, carried on by the monotonic clock.

    Backoff and deadlines must not move when somebody sets the wall clock.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        return self._offset_s + time.monotonic()


counter_s = time.perf_counter
monotonic_s = time.monotonic
