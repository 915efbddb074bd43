"""A cluster's objects at one moment, as far as a scheduler reads them, and the file they are in.

    live cluster                ─┐
    file of `asched snapshot`   ├─> Snapshot ──write──> JSON lines or a List, gzipped or not
    `kubectl get ... -o json`   ─┘

A snapshot has the fields of the scheduler's record of each kind: commands, environments, probes and
mounts of containers, templates, data and managedFields are not among them, so they are never
written. Annotations are free text: pods keep those of the Kubernetes and asched domains, and no
object keeps the copy that `kubectl apply` stores of it. Besides the kinds that a scheduler watches
there are four kinds that admission of a new pod reads (`ADMISSION`); Secrets and ConfigMaps are not
read at all.

A live cluster is read by list requests alone, with the rights of the caller. All kinds are listed
at the resourceVersion of the first list, so that the snapshot is of one moment; if the server no
longer has that version, the newest is listed and the snapshot has no version. A kind of which the
server has no known version, or which the caller may not list, is left out and reported, except
nodes and pods.

Bounds  FILE_BYTES_MAX once unpacked: four times a cluster of 15,000 nodes and 450,000 pods;
        PAGE_TIMEOUT_S a page, PAGES_MAX pages of a kind
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import msgspec
import orjson

from asched.cli.arguments import counted
from asched.core.model.decode import decode
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
from asched.kube.kind_versions import versions_of
from asched.kube.lists import PAGE_SIZE, PAGE_TIMEOUT_S
from asched.kube.session import ConnectionOptions, Session, connect, read_json
from asched.kube.transport import successful
from asched.kube.typed import client_over, lister
from asched.kube.watch import POD_FIELD_SELECTOR
from asched.names import PREFIX
from asched_lab.apiserver.resources import BY_KIND
from asched_lab.whatif.objects import (
    ADMISSION,
    WATCHED,
    Json,
    ObjectError,
    SnapshotError,
    check,
    is_read,
    key_of,
    kind_of,
    parsed,
    title,
)

FILE_BYTES_MAX: Final = 4 << 30
PART_BYTES: Final = 1 << 20
#: A place in a list, in the path of a field.
INDEX: Final = re.compile(r"\[\d+\]")
#: The first line of a file written by asched.
HEADER: Final = f"{PREFIX}/v1"
HEADER_KIND: Final = "ClusterDump"
#: Why a kind that is in a file is left out.
UNREAD: Final = "asched does not use this kind"
#: Pods that have ended: a scheduler does not watch them.
ENDED: Final = frozenset({"Succeeded", "Failed"})
#: The annotation with the whole object as it was applied.
APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
#: Annotations of these domains stay in pods.
OWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", PREFIX, "x-k8s.io")
_META: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")

Key = tuple[str, str]

_encoder: Final = msgspec.json.Encoder()


@dataclass(slots=True)
class Snapshot:
    """Objects by (apiVersion, kind), each with those two fields, in the order they were listed.

    `version`: the resourceVersion they were all listed at, "" if they are not of one moment.
    `left_out`: kinds that could not be read, with the reason. `unknown`: (kind, its unknown
    field) -> the objects that have it.
    """

    objects: dict[Key, list[Json]] = field(default_factory=dict)
    server: str = ""
    version: str = ""
    taken: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    unknown: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Json]:
        return self.objects.get((kind.group_version, kind.name), [])

    def warnings(self) -> Iterator[str]:
        """A line for each unknown field, with the first object that has it."""
        for (_, problem), objects in self.unknown.items():
            more = f", and in {counted(len(objects) - 1, 'more object')}" if objects[1:] else ""
            yield f"{objects[0]}: {problem}{more}"

    def add(self, obj: Mapping[str, Any]) -> bool:
        """Add an object, reduced to the fields that are read; False if its kind is not used. One
        without a namespace is in `default`, as for kubectl. Raises ObjectError.
        """
        checked, unknown = check(obj)
        if is_read(checked):
            _place(checked)
        for path in unknown:
            problem = f'unknown field "{INDEX.sub("[*]", path)}"'
            self.unknown.setdefault((str(obj["kind"]), problem), []).append(title(obj))
        kept = cleaned(checked)
        if kept is None:
            return False
        self.objects.setdefault((kept["apiVersion"], kept["kind"]), []).append(kept)
        return True

    def __iter__(self) -> Iterator[Json]:
        for listed in self.objects.values():
            yield from listed

    def __len__(self) -> int:
        return sum(map(len, self.objects.values()))

    # --- files -----------------------------------------------------------------------------------

    def lines(self) -> Iterator[bytes]:
        """JSON lines: a header, then an object a line."""
        header = {
            "apiVersion": HEADER,
            "kind": HEADER_KIND,
            "server": self.server,
            "resourceVersion": self.version,
            "taken": self.taken,
            "leftOut": self.left_out,
        }
        yield orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE)
        for obj in self:
            yield orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)

    def as_list(self) -> Json:
        """A List as kubectl prints and accepts it."""
        metadata = {"resourceVersion": self.version}
        return {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(self)}


def read(stream: BinaryIO, name: str) -> Snapshot:
    """Read a snapshot from a file of any of the forms, compressed or not. Raises SnapshotError."""
    head = stream.read(2)
    body: BinaryIO = io.BytesIO(head + bounded(stream, FILE_BYTES_MAX))
    if head == b"\x1f\x8b":
        body = gzip.GzipFile(fileobj=body)  # type: ignore[assignment]
    try:
        data = bounded(body, FILE_BYTES_MAX)
    except (OSError, EOFError, zlib.error) as error:
        raise SnapshotError(f"{name}: is cut off or broken: {error}") from None
    if len(data) > FILE_BYTES_MAX:
        raise SnapshotError(f"{name}: larger than {FILE_BYTES_MAX} bytes")
    snapshot = Snapshot()
    try:
        for obj, _ in parsed(data, name):
            if (obj.get("apiVersion"), obj.get("kind")) == (HEADER, HEADER_KIND):
                snapshot.server = str(obj.get("server", ""))
                snapshot.version = str(obj.get("resourceVersion", ""))
                snapshot.taken = str(obj.get("taken", ""))
                snapshot.left_out = dict(obj.get("leftOut") or {})
            elif not (snapshot.add(obj) or is_read(obj)):
                snapshot.left_out[kind_of(obj)] = UNREAD
    except ObjectError as error:
        raise ObjectError(f"{name}: {error}") from None
    if not len(snapshot):
        raise SnapshotError(f"{name}: holds no object that a scheduler reads")
    return snapshot


def bounded(stream: BinaryIO, bytes_max: int) -> bytes:
    """Read a stream up to the limit; a longer stream gives at least one byte more. Memory is
    allocated as data arrives, not up front for the limit.
    """
    parts, left = list[bytes](), bytes_max + 1
    while left > 0 and (part := stream.read(min(left, PART_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


# --- fields of an object -------------------------------------------------------------------------


def _place(obj: Json) -> None:
    """Raises ObjectError without a name."""
    metadata, res = obj.setdefault("metadata", {}), BY_KIND.get(key_of(obj))
    if not metadata.get("name"):
        raise ObjectError(f"{title(obj)}: metadata.name: must be set")
    if res is not None and res.namespaced:
        metadata.setdefault("namespace", "default")


def cleaned(obj: Mapping[str, Any]) -> Json | None:
    """The fields that are read, None for kinds that are not used. Raises MalformedObjectError."""
    key = key_of(obj)
    kind = WATCHED.get(key)
    if kind is not None:
        if kind is POD and (obj.get("status") or {}).get("phase") in ENDED:
            return None
        return _as_read(kind, obj)
    if key not in ADMISSION:
        return None
    _, kept = ADMISSION[key]
    metadata = obj.get("metadata") or {}
    named = {name: metadata[name] for name in _META if name in metadata}
    fields = {name: obj[name] for name in kept if name in obj}
    return {"apiVersion": key[0], "kind": key[1], "metadata": named, **fields}


def of_records(kind: Kind, records: Iterable[Any]) -> list[Json]:
    """The same for records that a client has read."""
    return [_written(kind, record) for record in records]


def _as_read(kind: Kind, obj: Mapping[str, Any]) -> Json:
    return _written(kind, decode(kind.record, obj))


def _written(kind: Kind, record: Any) -> Json:
    body: Json = orjson.loads(_encoder.encode(record))
    metadata = body.setdefault("metadata", {})
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name != APPLIED and (kind is not POD or _is_own(name))
    }
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {"apiVersion": kind.group_version, "kind": kind.name, **body}


def _is_own(name: str) -> bool:
    domain = name.partition("/")[0]
    return any(domain == own or domain.endswith(f".{own}") for own in OWN_DOMAINS)


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
