"""Compare one kind with the API server, object by object, and deliver what was missed.

    cached keys ─> pages of the list ─> suspects ─SETTLE_S─> remaining ones
                                                     └─> read again ─> delivered? ─> missed

A list and a stream are never at the same version, so a difference is only a suspicion, dropped as
soon as the stream delivers the change. A change beyond the stream's own version may still arrive:
`kube/watch.py` handles silent streams. Only if the stream has delivered everything up to the
version of the read object, all that arrived has been processed, and the cache still differs, a
change was missed. Then the read object is handed on as if the stream had delivered it.

Bounds  the cached keys of the kind; SUSPECTS_MAX suspects, beyond which the kind is listed again if
        most of them remain; TRIES reads each, READS_PER_S per second unless on demand.
"""

import asyncio
import logging
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.cluster import audit
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, Kind
from asched.core.model.meta import runs_backwards
from asched.kube.codec import ObjectHead
from asched.kube.lists import PAGE_SIZE
from asched.kube.running import Running
from asched.kube.watch import Reflector
from asched.ops.audit.findings import Difference, What
from asched.ops.audit.heads import Heads

log = logging.getLogger("asched.audit")

#: Streams usually lag less. A guess.
SETTLE_S: Final = 5.0
SUSPECTS_MAX: Final = 1000
#: So that a stream of an idle kind ends meanwhile and reports its version before.
TRIES: Final = 6
READS_PER_S: Final = 20.0
#: The pages of one kind are spread over this time; the server keeps a list's version for 5 min.
WALK_S: Final = 120.0
PAUSE_S_MAX: Final = 1.0
#: How often queued facts are awaited before a check is postponed.
TURNS_MAX: Final = 100


async def is_taken_in(scheduler: Running, *kinds: Kind) -> bool:
    """Wait until no fact of these kinds is queued; False if that takes too long."""
    machine, inbox = scheduler.machine, scheduler.inbox
    for _ in range(TURNS_MAX):
        is_queued = machine.is_taking_in or (NODE in kinds and machine.postpones_nodes)
        if not (is_queued or any(map(inbox.has_of, kinds))):
            return True
        await asyncio.sleep(0)
    return False


class Suspicion(NamedTuple):
    """An object as a list showed it, or None, and the version that the stream must have reached
    before the difference counts.
    """

    head: ObjectHead | None
    at: str


Suspects = dict[str, Suspicion]


class Compared(msgspec.Struct):
    """The result of one comparison: objects compared, differences, and suspects that could not be
    decided this time.
    """

    objects: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list)
    undecided: int = 0


async def compare(scheduler: Running, reflector: Reflector, *, hastes: bool) -> Compared:
    """Compare a kind that has been listed. Raises ApiError and TransportError."""
    return await _Comparison(scheduler, reflector, hastes=hastes).run()


class _Comparison:
    def __init__(self, scheduler: Running, reflector: Reflector, *, hastes: bool) -> None:
        self._scheduler = scheduler
        self._reflector = reflector
        self._kind: Kind = reflector.kind
        self._cluster = scheduler.machine.context.cluster
        self._heads = Heads(reflector)
        self._hastes = hastes
        self._compared = Compared()

    async def run(self) -> Compared:
        suspects = await self._suspects()
        for attempt in range(TRIES):
            if not suspects:
                break
            await asyncio.sleep(SETTLE_S)
            suspects = {
                k: suspicion
                for k, suspicion in suspects.items()
                if self._differs(k, suspicion.head)
            }
            if not attempt and len(suspects) > SUSPECTS_MAX // 2:
                await self._list_again(len(suspects))
                return self._compared
            suspects = await self._confirm(suspects)
        self._compared.undecided = len(suspects)
        return self._compared

    # --- first comparison ------------------------------------------------------------------------

    async def _suspects(self) -> Suspects:
        """Objects that differ between list and cache, by key."""
        unseen = dict.fromkeys(audit.known(self._cluster, self._kind))
        pause_s = 0.0
        if not self._hastes:
            pause_s = min(PAUSE_S_MAX, WALK_S * PAGE_SIZE / max(len(unseen), PAGE_SIZE))
        suspects: Suspects = {}
        version = ""
        async for page, version in self._heads.pages(pause_s):  # noqa: B007 - all pages have the same version
            for head in page:
                key = head.key
                unseen.pop(key, None)
                if len(suspects) < SUSPECTS_MAX and self._differs(key, head):
                    suspects[key] = Suspicion(head, head.resource_version)
            self._compared.objects += len(page)
        for at, key in enumerate(unseen):
            if not at % PAGE_SIZE:
                await asyncio.sleep(0)
            if len(suspects) < SUSPECTS_MAX and self._differs(key, None):
                suspects[key] = Suspicion(None, version)
        return suspects

    def _differs(self, key: str, head: ObjectHead | None) -> bool:
        """Whether the cached object differs from the listed one and is not newer."""
        cached = audit.known_as(self._cluster, self._kind, key)
        if cached is None or head is None:
            return cached is not head
        return _is_older(cached.metadata, head)

    # --- second comparison -----------------------------------------------------------------------

    async def _confirm(self, suspects: Suspects) -> Suspects:
        """Check suspects; returns those that cannot be decided yet."""
        left: Suspects = {}
        for key, suspicion in suspects.items():
            if not await self._has_delivered(suspicion):
                left[key] = suspicion
                continue
            if not self._hastes:
                await asyncio.sleep(1.0 / READS_PER_S)
            again = await self._look_at(key, suspicion)
            if again is not None:
                left[key] = again
        return left

    async def _has_delivered(self, suspicion: Suspicion) -> bool:
        """Whether the stream has delivered everything up to a version. An existing object has its
        own version; a deleted one has none, and a stream as far as the server's cache is complete.
        """
        if suspicion.head is not None:
            return not self._is_behind(suspicion.at)
        return await self._scheduler.history.has_delivered(self._kind, suspicion.at)

    def _is_behind(self, version: str) -> bool:
        """Whether the stream has not reached this version."""
        return runs_backwards(version, self._scheduler.history.received_version(self._kind))

    async def _look_at(self, key: str, suspicion: Suspicion) -> Suspicion | None:
        """Read an object and deliver a missed change; returns a suspicion that has to wait."""
        found = await self._heads.one(key)
        if found.is_odd:
            return None  # the codec reports malformed objects
        if found.obj is not None:
            version = found.obj.metadata.resource_version
            if self._is_behind(version):  # a newer change that the stream will deliver
                return Suspicion(suspicion.head, version)
        elif suspicion.head is not None:
            return Suspicion(None, found.version)
        if not await is_taken_in(self._scheduler, self._reflector.served_kind):
            return suspicion
        cached, real = audit.known_as(self._cluster, self._kind, key), found.obj
        difference = self._difference(key, cached, real)
        if difference is not None:
            self._deliver(cached, real)
            self._compared.differences.append(difference)
        return None

    def _difference(self, key: str, cached: Any, real: Any) -> Difference | None:
        plural = self._kind.plural
        if cached is None and real is None:
            return None
        if cached is None:
            return Difference(plural, key, What.ADDITION, "nothing", _version_text(real), real)
        if real is None:
            return Difference(plural, key, What.DELETION, _version_text(cached), "nothing")
        if not _is_older(cached.metadata, real.metadata):
            return None
        known, found = _version_text(cached), _version_text(real)
        return Difference(plural, key, What.CHANGE, known, found, real)

    def _deliver(self, cached: Any, real: Any) -> None:
        """Deliver at once: without an await since the check nothing newer can have arrived."""
        put, kind = self._reflector.put, self._reflector.served_kind
        if cached is not None and (real is None or cached.metadata.uid != real.metadata.uid):
            put(Gone(kind, cached))
        if real is not None:
            put(Seen(kind, real))

    async def _list_again(self, suspects: int) -> None:
        """Too many differences: a new list is cheaper and safer than single reads."""
        plural = self._kind.plural
        log.error(
            "Too many differences: listing all objects again", extra={"what": plural, "n": suspects}
        )
        await self._scheduler.list_again([self._kind])
        found = f"{suspects} and more differed; listed again"
        self._compared.differences.append(Difference(plural, "*", What.CHANGE, "", found))


def _is_older(cached: Any, real: Any) -> bool:
    """Whether the cached object is outdated: another object, or an earlier version of it."""
    if cached.uid != real.uid:
        return True
    return cached.resource_version != real.resource_version and not runs_backwards(
        cached.resource_version, real.resource_version
    )


def _version_text(obj: Any) -> str:
    return f"uid {obj.metadata.uid} at version {obj.metadata.resource_version}"
