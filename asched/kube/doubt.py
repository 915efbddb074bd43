"""Is a stream that says nothing idle, or are we deaf?

A stream that ends in its time without a line is compared with the server's cache: if that knows of
nothing newer, nothing was missed. Otherwise the next stream is a short one, a probe, before whose
end a server sends a bookmark. If the probe is silent, too, everything is listed, and the list tells
whether something had been kept back. `heard_s` stands still from then on until a stream speaks.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from asched.core.model.kinds import Kind
from asched.kube.history import History
from asched.kube.reading import runs_backwards
from asched.kube.turns import Relist

log = logging.getLogger(__name__)


class Doubt:
    """What one reflector knows of its own hearing. `clock` in seconds."""

    def __init__(self, kind: Kind, history: History, clock: Callable[[], float]) -> None:
        #: When the streams were last known to tell everything.
        self.heard_s: float | None = None
        #: Streams that kept something back, or did not end in their time.
        self.silent_count = 0
        #: The next stream has to show that it speaks.
        self.is_open = False
        self._kind = kind
        self._history = history
        self._clock = clock
        #: A list is to tell whether something newer than this was kept back.
        self._suspected = ""

    def spoke(self) -> None:
        """A stream said something."""
        self.is_open = False
        self.heard_s = self._clock()

    def listening(self) -> None:
        """A part of a list arrived."""
        if not self._suspected:
            self.heard_s = self._clock()

    def listed(self, objects: Iterable[Any]) -> None:
        """A list is complete."""
        since, self._suspected = self._suspected, ""
        if since and any(runs_backwards(o.metadata.resource_version, since) for o in objects):
            self._suspected = since  # a list is no proof of a stream
            self.fell_silent("kept back what is newer than " + since)
        else:
            self.spoke()

    def fell_silent(self, what: str) -> None:
        """A stream was found deaf."""
        self.silent_count += 1
        self.is_open = True
        log.warning("%s: the watch %s, opening another", self._kind.plural, what)

    async def compare(self, reached: str, *, was_probe: bool) -> None:
        """After a stream without a line that had reached this version.

        Raises Relist if the server knows of more, and HistoryChanged, ApiError, TransportError.
        """
        newest = await self._history.cached(self._kind)
        if runs_backwards(reached, newest):
            await self._history.check()  # a cache that lags is no crime
            self.spoke()
        elif newest == reached:
            self.spoke()
        elif was_probe:
            self._suspected = reached
            why = f"its streams say nothing after {reached}, the server knows of {newest}"
            raise Relist(reached, why)
        else:
            self.is_open = True
