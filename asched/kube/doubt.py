"""Whether one reflector receives all changes.

A stream that ends in time without a line is compared with the server's cache: if that has nothing
newer, nothing was missed. Otherwise the next stream is a short probe, before whose end a server
sends a bookmark. If the probe delivers nothing either, everything is listed, and the list shows
whether changes were missed. `last_complete_s` stands still from then on until a stream delivers.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from asched.core.model.kinds import Kind
from asched.core.model.meta import runs_backwards
from asched.kube.errors import Relist
from asched.kube.history import History

log = logging.getLogger(__name__)


class Doubt:
    """Whether one reflector receives all changes. `clock` in seconds."""

    def __init__(self, kind: Kind, history: History, clock: Callable[[], float]) -> None:
        #: When the streams were last known to be complete.
        self.last_complete_s: float | None = None
        #: Streams that missed changes, or did not end in time.
        self.silent_count = 0
        #: The next stream must deliver something (a probe).
        self.is_open = False
        self._kind = kind
        self._history = history
        self._clock = clock
        #: The next list decides whether changes after this version were missed.
        self._suspected = ""

    def delivered(self) -> None:
        """A stream delivered a line."""
        self.is_open = False
        self.last_complete_s = self._clock()

    def listening(self) -> None:
        """A part of a list arrived."""
        if not self._suspected:
            self.last_complete_s = self._clock()

    def listed(self, objects: Iterable[Any]) -> None:
        """A list is complete."""
        since, self._suspected = self._suspected, ""
        if since and any(runs_backwards(o.metadata.resource_version, since) for o in objects):
            self._suspected = since  # a list does not prove that streams work
            self.fell_silent("kept back what is newer than " + since)
        else:
            self.delivered()

    def fell_silent(self, what: str) -> None:
        """A stream was found to miss changes."""
        self.silent_count += 1
        self.is_open = True
        log.warning("%s: the watch %s, opening another", self._kind.plural, what)

    async def compare(self, last_version: str, *, was_probe: bool) -> None:
        """Check a stream that ended without a line and had reached this version.

        Raises Relist if the server has newer changes, and HistoryChanged, ApiError, TransportError.
        """
        newest = await self._history.cached(self._kind)
        if runs_backwards(last_version, newest):
            await self._history.check()  # a lagging cache is not an error
            self.delivered()
        elif newest == last_version:
            self.delivered()
        elif was_probe:
            self._suspected = last_version
            why = f"its streams say nothing after {last_version}, the server knows of {newest}"
            raise Relist(last_version, why)
        else:
            self.is_open = True
