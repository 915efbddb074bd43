"""List kinds that cannot be watched, periodically, each time as a whole.

A kind whose record has a method `following` keeps a history: each object is derived from the object
of the same name in the previous list, or None. An object that is missing in a list, because its
source did not answer in time, stays as it was for KEPT_LISTS more lists. Start-up does not wait for
these kinds: plugins handle missing objects. A failure is logged once, and again when its cause
changes.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from asched.core.cluster.facts import Fact, Listed
from asched.core.model.kinds import Kind
from asched.kube.codec import KindCodec
from asched.kube.errors import ApiError, Relist, TransportError
from asched.kube.lists import Lister
from asched.kube.reading import log_malformed
from asched.kube.transport import StreamingTransport

log = logging.getLogger(__name__)

#: Each pause is extended by up to this share, so that replicas do not list at the same time.
SPREAD: Final = 0.1
#: Twelve lists at 15 s are the three minutes after which measurements are too old to be used.
KEPT_LISTS: Final = 12


class ListedObjects:
    """Previously listed objects by key."""

    def __init__(self) -> None:
        #: the object, and how many lists it was missing in
        self._known: dict[str, tuple[Any, int]] = {}

    def with_it(self, objects: Iterable[Any]) -> tuple[Any, ...]:
        """The objects of a new list, each derived from its predecessor, and missing objects."""
        known = {key: (obj, lacks + 1) for key, (obj, lacks) in self._known.items()}
        for obj in objects:
            key = obj.metadata.key
            earlier, _ = self._known.get(key, (None, 0))
            known[key] = (obj.following(earlier), 0)
        self._known = {key: entry for key, entry in known.items() if entry[1] <= KEPT_LISTS}
        return tuple(obj for obj, _ in self._known.values())


class Poller:
    """Lists one kind every `kind.poll_s`. `run` never returns: cancel it."""

    def __init__(
        self,
        kind: Kind,
        transport: StreamingTransport,
        put: Callable[[Fact], None],
        rng: random.Random,
    ) -> None:
        self.kind = kind
        self._put = put
        self._rng = rng
        codec = KindCodec(kind, log_malformed)
        self._lister = Lister(transport, codec, lambda _query: kind.path, lambda: None)
        self._has_past = hasattr(kind.record, "following")
        self._past = ListedObjects()
        self._complained = ""

    async def run(self) -> None:
        while True:
            await self.once()
            await asyncio.sleep(self.kind.poll_s * (1 + SPREAD * self._rng.random()))

    async def once(self) -> None:
        try:
            listed = await self._lister.pages("")
        except (ApiError, TransportError, Relist) as error:
            cause = str(error)
            if cause != self._complained:
                self._complained = cause
                log.warning(
                    "cannot list %s: %s; continuing without, retrying every %.0f s",
                    f"{self.kind.name} ({self.kind.group_version})",
                    cause,
                    self.kind.poll_s,
                )
            return
        if self._complained:
            self._complained = ""
            log.info("%s are listed again", self.kind.name)
        objects = listed.objects
        self._put(Listed(self.kind, self._past.with_it(objects) if self._has_past else objects))
