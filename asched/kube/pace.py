"""Pace of reflectors: durations of streams, waits after failures, and what the reflectors of one
process share: the rate of lists, and the news that the server answers again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import msgspec

from asched.kube.errors import TransportError
from asched.kube.retries import PAUSE_S_MAX


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


#: client-go's figures for reflectors: 0.8 s doubling to 30 s, each wait extended by a random share
#: of itself so that clients do not retry at the same time; reset after two minutes without a
#: failure.
INITIAL_S: Final = 0.8
WAIT_S_MAX: Final = 30.0
FACTOR: Final = 2.0
QUIET_S: Final = 120.0
#: A complete streaming list continues as a watch for STREAM_S.
LIST_STREAM_S: Final = 300.0
#: Streams end after 15 to 20 s: a silent one has to be detected within 30 s, and kube-apiserver's
#: bookmarks come once a minute, or 2 s before the end of a stream.
STREAM_S: Final = 15.0
#: The last third is random, so that streams do not end at the same time.
STREAM_SPREAD: Final = 1 / 3
#: Duration of a probe. Long enough for the bookmark before the end.
PROBE_S: Final = 5.0
#: A stream that outlasts its time by this much is considered dead.
STREAM_SLACK_S: Final = 5.0
#: The longest step between attempts, extended by up to as much. A recovered server is detected
#: within seconds.
RETRY_S_MAX: Final = 4.0
#: Rate of lists of all kinds together, first lists excluded: per second, and burst.
RELISTS_PER_S: Final = 1.0
RELISTS_SAVED: Final = 20


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


class ReflectorOptions(msgspec.Struct):
    """Options of a reflector; the defaults are for production."""

    field_selector: str = ""
    label_selector: str = ""
    #: Try streaming lists first.
    streaming: bool = True
    rng: random.Random = msgspec.field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic


class ListPacer:
    """Shared by the reflectors of one process: limits the rate of lists, and ends the pause of a
    reflector when another one gets an answer.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.relists = TokenBucket(RELISTS_PER_S, RELISTS_SAVED, clock)
        self._pausing: dict[asyncio.Future[None], None] = {}  # in order

    def answered(self) -> None:
        for pausing in self._pausing:
            if not pausing.done():
                pausing.set_result(None)

    async def until_answered(self, pause: Awaitable[None]) -> bool:
        """Pause; whether another reflector got an answer before the pause was over."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        over = asyncio.ensure_future(pause)
        self._pausing[answer] = None
        try:
            await asyncio.wait((answer, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._pausing[answer]
            over.cancel()
        return answer.done()


def stream_s(options: ReflectorOptions, *, is_probe: bool) -> float:
    """How long a stream should last."""
    return PROBE_S if is_probe else STREAM_S * (1.0 + STREAM_SPREAD * options.rng.random())


class Pauses:
    """Pauses of one reflector. Pauses after failures and pauses before lists grow independently: a
    server that was down and has lost our version gets a list request soon.
    """

    def __init__(self, options: ReflectorOptions, pacer: ListPacer) -> None:
        self._options = options
        self._pacer = pacer
        self._failures, self._lists = (
            Backoff(options.rng, options.clock, wait_s_max=RETRY_S_MAX) for _ in range(2)
        )

    async def after(self, error: Exception) -> None:
        """Pause longer each time, or, where the server says how long, that and up to INITIAL_S
        more. Such pauses do not grow: the watch would be taken for silent (`watchdog.py`). A pause
        ends at most INITIAL_S after the server has answered another reflector.
        """
        sleep, rng = self._options.sleep, self._options.rng
        server_wait_s: float | None = getattr(error, "retry_after_s", None)
        if server_wait_s is not None:
            await sleep(min(max(server_wait_s, INITIAL_S), PAUSE_S_MAX) + INITIAL_S * rng.random())
            return
        pause = sleep(self._failures.next_s())
        if not isinstance(error, TransportError):
            await pause
        elif await self._pacer.until_answered(pause):
            await sleep(INITIAL_S * rng.random())

    async def before_list(self) -> None:
        """Wait for this reflector's turn to list again."""
        await self._options.sleep(self._lists.next_s())
        while wait_s := self._pacer.relists.take():
            await self._options.sleep(wait_s * (1.0 + self._options.rng.random()))
