"""How a reflector goes about it: what it asks for, how long it waits after a failure, and how
reflectors take turns with lists.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from asched.edge.client.backoff import INITIAL_S, Backoff
from asched.edge.client.rate import TokenBucket
from asched.edge.client.retries import PAUSE_S_MAX

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


@dataclass(slots=True)
class ReflectorOptions:
    """What the host hands in; the defaults are production's."""

    field_selector: str = ""
    label_selector: str = ""
    #: Try streaming lists first.
    streaming: bool = True
    rng: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic


def relists(clock: Callable[[], float] = monotonic) -> TokenBucket:
    """What the reflectors of one process share, so that not all of them list at once."""
    return TokenBucket(RELISTS_PER_S, RELISTS_SAVED, clock)


def stream_s(options: ReflectorOptions, *, is_probe: bool) -> float:
    """For how long a stream is asked to live."""
    return PROBE_S if is_probe else STREAM_S * (1.0 + STREAM_SPREAD * options.rng.random())


class Pauses:
    """How long one reflector waits. Pauses after failures and pauses before lists grow each by
    themselves: a server that was away and has forgotten our version is asked for a list soon.
    """

    def __init__(self, options: ReflectorOptions, shared: TokenBucket) -> None:
        self._options = options
        self._shared = shared
        self._failures, self._lists = (
            Backoff(options.rng, options.clock, wait_s_max=RETRY_S_MAX) for _ in range(2)
        )

    async def after(self, error: Exception) -> None:
        """Longer each time, or, where the server says how long, that and up to INITIAL_S more. Such
        pauses do not grow: whoever is turned away often would be taken for deaf (`hearing.py`).
        """
        told_s: float | None = getattr(error, "retry_after_s", None)
        if told_s is None:
            wait_s = self._failures.next_s()
        else:
            wait_s = min(max(told_s, INITIAL_S), PAUSE_S_MAX)
            wait_s += INITIAL_S * self._options.rng.random()
        await self._options.sleep(wait_s)

    async def before_list(self) -> None:
        """Until it is this reflector's turn to list what it has listed before."""
        await self._options.sleep(self._lists.next_s())
        while wait_s := self._shared.take():
            await self._options.sleep(wait_s * (1.0 + self._options.rng.random()))
