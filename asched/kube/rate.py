"""A token bucket: kube-scheduler's client QPS and burst, for those who set them.

By default nothing is limited here: the API server's priority and fairness knows better when to say
429.
"""

from collections.abc import Callable
from time import monotonic


class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up. qps <= 0 means no limit."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.limit(qps, burst)

    def limit(self, qps: float, burst: int) -> None:
        """Another rate from now on, with a full burst saved up."""
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
    """As upstream, events have a client, and so a rate, of their own. `changed` is called when
    both are others.
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
        """Another rate for both from now on; qps <= 0 is none."""
        self._requests.limit(qps, burst)
        self._events.limit(qps, burst)
        self._changed()
