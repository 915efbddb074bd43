"""How a reflector goes about it: what it asks for, how long it waits after a failure, and what
reflectors of one process share: turns with lists, and the news that the server answers again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import msgspec

from asched.kube.backoff import INITIAL_S, Backoff
from asched.kube.errors import TransportError
from asched.kube.rate import TokenBucket
from asched.kube.retries import PAUSE_S_MAX

#: A streaming list may last; once it is complete, its stream is left after STREAM_S like any other.
LIST_STREAM_S: Final = 300.0
#: Streams are asked to live for 15 to 20 s: a silent one has to be noticed within 30 s, and
#: kube-apiserver's bookmarks come once a minute, or 2 s before the end of a stream.
STREAM_S: Final = 15.0
#: The last third is drawn, so that streams do not all end together.
STREAM_SPREAD: Final = 1 / 3
#: While in doubt. Long enough for the bookmark before the end.
PROBE_S: Final = 5.0
#: What a stream may live beyond its time before it is taken for dead.
STREAM_SLACK_S: Final = 5.0
#: The longest step between tries; each is stretched by up to as much again. A server that is back
#: is found within seconds.
RETRY_S_MAX: Final = 4.0
#: Lists of all kinds together that are not the first: a second, and saved up.
RELISTS_PER_S: Final = 1.0
RELISTS_SAVED: Final = 20


class ReflectorOptions(msgspec.Struct):
    """What the host hands in; the defaults are production's."""

    field_selector: str = ""
    label_selector: str = ""
    #: Try streaming lists first.
    streaming: bool = True
    rng: random.Random = msgspec.field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic


class ListPacer:
    """The reflectors of one process: not all of them list at once, and whoever pauses because
    nobody answered hears of it when another one is answered.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.relists = TokenBucket(RELISTS_PER_S, RELISTS_SAVED, clock)
        self._pausing: dict[asyncio.Future[None], None] = {}  # in their order

    def answered(self) -> None:
        """The server is there."""
        for pausing in self._pausing:
            if not pausing.done():
                pausing.set_result(None)

    async def until_answered(self, pause: Awaitable[None]) -> bool:
        """Whether anybody was answered before the pause was over."""
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
    """For how long a stream is asked to live."""
    return PROBE_S if is_probe else STREAM_S * (1.0 + STREAM_SPREAD * options.rng.random())


class Pauses:
    """How long one reflector waits. Pauses after failures and pauses before lists grow each by
    themselves: a server that was away and has forgotten our version is asked for a list soon.
    """

    def __init__(self, options: ReflectorOptions, company: ListPacer) -> None:
        self._options = options
        self._company = company
        self._failures, self._lists = (
            Backoff(options.rng, options.clock, wait_s_max=RETRY_S_MAX) for _ in range(2)
        )

    async def after(self, error: Exception) -> None:
        """Longer each time, or, where the server says how long, that and up to INITIAL_S more. Such
        pauses do not grow: whoever is turned away often would be taken for deaf (`hearing.py`). Nor
        does a pause outlast by more than INITIAL_S that nobody answers.
        """
        sleep, rng = self._options.sleep, self._options.rng
        told_s: float | None = getattr(error, "retry_after_s", None)
        if told_s is not None:
            await sleep(min(max(told_s, INITIAL_S), PAUSE_S_MAX) + INITIAL_S * rng.random())
            return
        pause = sleep(self._failures.next_s())
        if not isinstance(error, TransportError):
            await pause
        elif await self._company.until_answered(pause):
            await sleep(INITIAL_S * rng.random())

    async def before_list(self) -> None:
        """Until it is this reflector's turn to list what it has listed before."""
        await self._options.sleep(self._lists.next_s())
        while wait_s := self._company.relists.take():
            await self._options.sleep(wait_s * (1.0 + self._options.rng.random()))
