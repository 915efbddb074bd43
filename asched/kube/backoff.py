"""Waits between retries: exponential, capped, with jitter.

The figures are client-go's for reflectors: 0.8 s doubling to 30 s, each wait extended by a random
share of itself so that clients do not retry at the same time; reset after two minutes without a
failure.
"""

import random
from collections.abc import Callable
from time import monotonic
from typing import Final

INITIAL_S: Final = 0.8
WAIT_S_MAX: Final = 30.0
FACTOR: Final = 2.0
QUIET_S: Final = 120.0


class Backoff:
    """State of one retry loop. `rng` and `clock` are parameters for virtual time."""

    def __init__(
        self,
        rng: random.Random,
        clock: Callable[[], float] = monotonic,
        *,
        initial_s: float = INITIAL_S,
        wait_s_max: float = WAIT_S_MAX,
    ) -> None:
        self._rng = rng
        self._clock = clock
        self._initial_s = initial_s
        self._wait_s_max = wait_s_max
        self._wait_s = initial_s
        self._last_s: float | None = None

    def next_s(self) -> float:
        """The wait before the next attempt, in seconds; in [d, 2d) for the current step d."""
        now_s = self._clock()
        if self._last_s is not None and now_s - self._last_s > QUIET_S:
            self._wait_s = self._initial_s
        self._last_s = now_s
        step_s = self._wait_s
        self._wait_s = min(self._wait_s * FACTOR, self._wait_s_max)
        return step_s * (1.0 + self._rng.random())
