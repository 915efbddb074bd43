"""A snapshot of a live cluster by list requests alone, with the rights of the caller.

All kinds are listed at the resourceVersion of the first list, so that the snapshot is of one
moment; if the server no longer has that version, the newest is listed and the snapshot has no
version. A kind of which the server has no known version, or which the caller may not list, is left
out and reported, except nodes and pods.

Bounds  PAGE_TIMEOUT_S a page, PAGES_MAX pages of a kind.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from asched.core.model.kinds import (
    BY_RESOURCE,
    COMPOSITE_POD_GROUP,
    COSCHEDULING_GROUP,
    DEVICE_TAINT_RULE,
    ELASTIC_QUOTA,
    JOB,
    LOCAL_QUEUE,
    NODE,
    POD,
    POD_GROUP,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    Kind,
)
from asched.kube.codec import KindCodec, peek_continue
from asched.kube.errors import ApiError, ClientError, Expired
from asched.kube.history import versions_of
from asched.kube.lists import PAGE_SIZE, PAGE_TIMEOUT_S
from asched.kube.session import ConnectionOptions, Session, connect, read_json, successful
from asched.kube.typed import client_over, lister
from asched.kube.watch import POD_FIELD_SELECTOR
from asched_lab.whatif.snapshot import (
    ADMISSION,
    Json,
    Snapshot,
    SnapshotError,
    cleaned,
    of_records,
)

PAGES_MAX: Final = 10_000
#: Without these there is no cluster.
NEEDED: Final = (NODE, POD)
#: Served by few clusters, so their absence is not reported.
RARE: Final = (
    DEVICE_TAINT_RULE,
    POD_GROUP,
    COSCHEDULING_GROUP,
    ELASTIC_QUOTA,
    LOCAL_QUEUE,
    PROVISIONING_REQUEST,
    COMPOSITE_POD_GROUP,
)
#: Only Backfill reads Jobs, for their deadlines: few accounts may list them.
LEFT_OUT: Final = (JOB,)


async def snapshot_of(options: ConnectionOptions) -> Snapshot:
    """List everything a scheduler reads. Raises ClientError, SnapshotError."""
    session = await connect(options)
    try:
        return await listed(session)
    finally:
        await session.close()


async def listed(session: Session) -> Snapshot:
    """The same over an open session."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    snapshot = Snapshot(server=session.url, taken=now)
    others = (
        kind for kind in BY_RESOURCE.values() if kind not in (*NEEDED, *LEFT_OUT, POD_TEMPLATE)
    )
    order = [*NEEDED, *others, POD_TEMPLATE]
    version: str | None = ""
    client = await client_over(session.general, PAGE_TIMEOUT_S)
    for kind in order:
        if kind is POD_TEMPLATE and not snapshot.of(PROVISIONING_REQUEST):
            continue  # no known pod refers to such an object
        try:
            version, found = await _served(client, kind, version)
        except ClientError as error:
            if kind in NEEDED:
                raise SnapshotError(f"{kind.plural} cannot be listed: {error}") from error
            if not (kind in RARE and _is_absent(error)):
                snapshot.left_out[kind.resource] = str(error)
            continue
        snapshot.objects[kind.group_version, kind.name] = found
    for (group_version, name), (plural, _) in ADMISSION.items():
        try:
            found = await _whole(client, group_version, name, plural)
        except ClientError as error:
            snapshot.left_out[name] = str(error)
            continue
        snapshot.objects[group_version, name] = found
    snapshot.version = version or ""
    return snapshot


def _is_absent(error: ClientError) -> bool:
    return isinstance(error, ApiError) and error.code == 404


async def _served(client: Any, kind: Kind, version: str | None) -> tuple[str | None, list[Json]]:
    """List a kind in the first version that the server has: (the resourceVersion to list the next
    kinds at, its objects). Raises ClientError.
    """
    for served in versions_of(kind):
        pages = _Pages(client, served)
        try:
            version = await pages.all(version)
        except ClientError as error:
            absent = error
            if not _is_absent(error):
                raise
        else:
            return version, of_records(kind, pages.found)
    raise absent


class _Pages:
    """One kind, page by page, as records."""

    def __init__(self, client: Any, kind: Kind) -> None:
        self._kind = kind
        self._list = lister(client, kind.group_version, kind.name, kind.plural)
        self._codec = KindCodec(kind, lambda *_: None)
        self.found: list[Any] = []

    async def all(self, version: str | None) -> str | None:
        """List at this version, or, if it is "", at the newest; return the version to list the next
        kinds at, None once the lists are not of one moment any more. Raises ClientError.
        """
        query: dict[str, Any] = {"limit": PAGE_SIZE}
        if self._kind is POD:
            query["field_selector"] = POD_FIELD_SELECTOR
        if version:
            exactly = {"resource_version": version, "resource_version_match": "Exact"}
            try:
                await self._pages({**query, **exactly})
            except (Expired, ApiError) as error:
                if isinstance(error, ApiError) and error.code not in (400, 410):
                    raise
                version = None
            else:
                return version
        self.found = []
        newest = await self._pages(query)
        return newest if version == "" else None

    async def _pages(self, query: Mapping[str, Any]) -> str:
        version = ""
        for _ in range(PAGES_MAX):
            body = successful(await self._list(**query))
            page = self._codec.page(body)
            version = version or page.version
            self.found += page.objects
            token = peek_continue(body)
            if not token:
                return version
            query = {k: v for k, v in query.items() if not k.startswith("resource_version")}
            query["_continue"] = token
        raise SnapshotError(f"more than {PAGES_MAX} pages of {self._kind.plural}")


async def _whole(client: Any, group_version: str, name: str, plural: str) -> list[Json]:
    listed = read_json(await lister(client, group_version, name, plural)())
    named = {"apiVersion": group_version, "kind": name}
    items = listed.get("items") or ()
    return [kept for item in items if (kept := cleaned({**item, **named})) is not None]
