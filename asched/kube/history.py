"""Small reads in addition to the streams: the server's newest version, and whether its history
changed.

    cached     the newest version of a kind in the server's watch cache. A stream that ended without
               a line and had reached it has missed nothing. Unlike the version of a plain list,
               which moves with every write to etcd, it stands still while a kind is idle, also
               where etcd sends no progress notifications.
    check      whether the server still has the history that was followed. An etcd restored from a
               backup, and another cluster at the same address, have another one; state of both
               mixed would bind pods by events that never happened.
    catch_up   wait until everything that has happened by now is received. A new leader must do
               this: the last bindings of the former leader may still be on a slow stream.

Both requests name one object, which a server looks up without scanning all objects.

Bounds  READ_S for one read; one check at a time, whose result concurrent callers share.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from asched.core.model.kinds import NAMESPACE, Kind
from asched.core.model.meta import runs_backwards
from asched.kube.codec import HeadPage, head_page
from asched.kube.errors import ApiError, HistoryChanged, TransportError
from asched.kube.transport import Transport, successful

READ_S: Final = 3.0
#: Working streams are never further behind without delivering anything. A guess.
CATCH_UP_S: Final = 0.5
#: How often the version is compared within this time.
CATCH_UP_CHECKS: Final = 10
#: The uid of this namespace identifies a cluster: it is created with it and cannot be deleted.
WITNESS: Final = "kube-system"
#: Namespaced kinds are read in a namespace that every cluster has.
PROBE_NAMESPACE: Final = "default"
#: No object needs to have this name: the version of an empty answer suffices.
PROBE_NAME: Final = "asched-canary"


class History:
    """What all reflectors of one process have received from one server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        #: by the kind as configured: (the version in use, a function for the version reached)
        self._versions: dict[Kind, tuple[Kind, Callable[[], str]]] = {}
        self._uid = ""
        self._checking: asyncio.Future[None] | None = None
        self._asking = 0
        #: Called after each check that found the same history: streams begin again.
        self.on_checked: Callable[[], None] = lambda: None

    def follow(
        self, kind: Kind, version: Callable[[], str], served_kind: Kind | None = None
    ) -> None:
        """`version` returns the version up to which a kind is received, "" before the first list.
        `served_kind` replaces the kind for a server that serves another version of it.
        """
        self._versions[kind] = served_kind or kind, version

    def listed(self, kind: Kind, objects: Iterable[Any]) -> None:
        """Identify the cluster by a list. Raises HistoryChanged."""
        if kind is NAMESPACE:
            found = (o.metadata.uid for o in objects if o.metadata.name == WITNESS)
            self._recognize(next(found, ""))

    async def cached(self, kind: Kind) -> str:
        """The newest version of a kind in the server's cache. Raises ApiError, TransportError."""
        return (await self._read(kind, {"resourceVersion": "0"})).metadata.resource_version

    def received_version(self, kind: Kind) -> str:
        """The version up to which a kind is received; "" before the first list."""
        return self._versions[kind][1]()

    async def has_delivered(self, kind: Kind, version: str) -> bool:
        """Whether the streams of a kind have delivered everything up to a version of the server.
        Raises ApiError, TransportError.
        """
        if not runs_backwards(version, self.received_version(kind)):
            return True
        newest = await self.cached(kind)  # stands still for an idle kind
        return not runs_backwards(newest, self.received_version(kind))

    async def catch_up(
        self, kind: Kind, list_again: Callable[[], Awaitable[None]], newest: str = ""
    ) -> None:
        """Wait until the streams of a kind have delivered everything that has happened by now, or
        up to the version `newest` of an object of this kind. Streams that do not advance for
        CATCH_UP_S are replaced by a list; without an answer of the server this waits.
        """
        while True:
            with suppress(ApiError, TransportError):
                newest = newest or (await self._read(kind, {})).metadata.resource_version
            before = self.received_version(kind)
            for _ in range(CATCH_UP_CHECKS):
                if newest and not runs_backwards(newest, self.received_version(kind)):
                    return
                await asyncio.sleep(CATCH_UP_S / CATCH_UP_CHECKS)
            now = self.received_version(kind)
            if now == before and runs_backwards(newest, now):
                await list_again()

    async def check(self) -> None:
        """Raises HistoryChanged if the history differs, ApiError or TransportError."""
        if self._checking is None:
            self._checking = asyncio.ensure_future(self._check())
            self._checking.add_done_callback(self._checked)
        checking = self._checking
        self._asking += 1
        try:
            await asyncio.shield(checking)
        finally:
            self._asking -= 1
            if not self._asking:
                checking.cancel()

    def _checked(self, _done: asyncio.Future[None]) -> None:
        self._checking = None

    async def _check(self) -> None:
        """Compare versions: consistent reads never lag, so a version beyond them is of another
        history.

        Kinds may be stored in different etcds: only a kind's own version counts.
        """
        before = {kind: version() for kind, (_, version) in self._versions.items()}
        answer = await self._read(NAMESPACE, {})
        self._recognize(next((head.uid for head in answer.heads if head.name == WITNESS), ""))
        for kind, version in before.items():
            if not runs_backwards(version, answer.metadata.resource_version):
                continue
            now = (await self._read(kind, {})).metadata.resource_version
            if runs_backwards(version, now):
                raise HistoryChanged(
                    f"the server is at resourceVersion {now}, {kind.plural} had been followed up"
                    f" to {version}: it was restored from a backup, or it is another cluster"
                )
        self.on_checked()

    def _recognize(self, uid: str) -> None:
        if uid and self._uid and uid != self._uid:
            raise HistoryChanged(
                f"another cluster answers: the uid of namespace {WITNESS} was {self._uid},"
                f" now it is {uid}"
            )
        self._uid = uid or self._uid

    async def _read(self, kind: Kind, query: dict[str, str]) -> HeadPage:
        """Read in the version of the kind that its reflector has found on the server."""
        served_kind, _ = self._versions.get(kind, (kind, None))
        name = WITNESS if kind is NAMESPACE else PROBE_NAME
        path = served_kind.object_path(PROBE_NAMESPACE, "").rstrip("/")
        selection = urlencode({"fieldSelector": f"metadata.name={name}", **query})
        reply = await self._transport.request("GET", f"{path}?{selection}", timeout_s=READ_S)
        return head_page(successful(reply), kind)
