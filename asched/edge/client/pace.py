"""How a reflector goes about it: what it asks for, and how reflectors take turns with lists."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from asched.edge.client.rate import TokenBucket

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
