"""A token bucket for kube-scheduler's client QPS and burst, if they are set.

There is no limit by default: the API server's priority and fairness limits requests by 429.
"""

from collections.abc import Callable
from time import monotonic


class TokenBucket:
    """`qps` tokens per second, at most `burst` saved. qps <= 0 means no limit."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.limit(qps, burst)

    def limit(self, qps: float, burst: int) -> None:
        """Change the rate, with a full burst."""
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._filled_s = self._clock()

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


class Rates:
    """Two buckets: as upstream, events have their own rate. `changed` is called when the rates
    change.
    """

    def __init__(
        self, qps: float, burst: int, clock: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self._changed = changed
        self._requests = TokenBucket(qps, burst, clock)
        self._events = TokenBucket(qps, burst, clock)

    def of(self, *, is_event: bool) -> TokenBucket:
        return self._events if is_event else self._requests

    def limit(self, qps: float, burst: int) -> None:
        """Change both rates; qps <= 0 means no limit."""
        self._requests.limit(qps, burst)
        self._events.limit(qps, burst)
        self._changed()
