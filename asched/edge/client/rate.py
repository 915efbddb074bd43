"""A token bucket: kube-scheduler's client QPS and burst, for those who set them.

By default nothing is limited here: the API server's priority and fairness knows better when to say
429.
"""

from collections.abc import Callable
from time import monotonic


class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up. qps <= 0 means no limit."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._clock = clock
        self._tokens = float(self._burst)
        self._filled_s = clock()

    def take(self) -> float:
        """Take a token and return 0.0, or return the seconds until there is one."""
        if self._qps <= 0:
            return 0.0
        now_s = self._clock()
        self._tokens = min(self._burst, self._tokens + (now_s - self._filled_s) * self._qps)
        self._filled_s = now_s
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self._qps
