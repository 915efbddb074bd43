"""A cluster's objects at one moment, as far as a scheduler reads them, and the file they are in.

    live cluster (`listing.py`) ─┐
    file of `asched snapshot`   ├─> Snapshot ──write──> JSON lines or a List, gzipped or not
    `kubectl get ... -o json`   ─┘

A snapshot has the fields of the scheduler's record of each kind: commands, environments, probes and
mounts of containers, templates, data and managedFields are not among them, so they are never
written. Annotations are free text: pods keep those of the Kubernetes and asched domains, and no
object keeps the copy that `kubectl apply` stores of it. Besides the kinds that a scheduler watches
there are four kinds that admission of a new pod reads (`ADMISSION`); Secrets and ConfigMaps are not
read at all.

Bounds  FILE_BYTES_MAX once unpacked: four times a cluster of 15,000 nodes and 450,000 pods.
"""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import msgspec
import orjson
import yaml

from asched.core.model.decode import MalformedError, MalformedObjectError, decode, parse
from asched.core.model.kinds import BY_RESOURCE, POD, VERSIONS, Kind

Json = dict[str, Any]

FILE_BYTES_MAX: Final = 4 << 30
PART_BYTES: Final = 1 << 20
#: The first line of a file written by asched.
HEADER: Final = "asched.dev/v1"
HEADER_KIND: Final = "ClusterDump"
#: Why a kind that is in a file is left out.
UNREAD: Final = "asched does not use this kind"

#: (apiVersion, kind) -> kinds that a scheduler watches, each in one of its versions.
WATCHED: Final[Mapping[tuple[str, str], Kind]] = {
    (version.group_version, version.name): kind
    for kind in BY_RESOURCE.values()
    for version in VERSIONS.get(kind.resource, (kind,))
}
#: (apiVersion, kind) -> plural, and the fields that admission reads.
ADMISSION: Final[Mapping[tuple[str, str], tuple[str, tuple[str, ...]]]] = {
    ("scheduling.k8s.io/v1", "PriorityClass"): (
        "priorityclasses",
        ("value", "globalDefault", "preemptionPolicy"),
    ),
    ("node.k8s.io/v1", "RuntimeClass"): ("runtimeclasses", ("handler", "overhead", "scheduling")),
    ("v1", "LimitRange"): ("limitranges", ("spec",)),
    ("v1", "ResourceQuota"): ("resourcequotas", ("spec", "status")),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): ("resourceclaimtemplates", ("spec",)),
}
#: Pods that have ended: a scheduler does not watch them.
ENDED: Final = frozenset({"Succeeded", "Failed"})
#: The annotation with the whole object as it was applied.
APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
#: Annotations of these domains stay in pods.
OWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "asched.dev", "x-k8s.io")
_META: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")

Key = tuple[str, str]

_encoder: Final = msgspec.json.Encoder()


class SnapshotError(Exception):
    """A file that is not a cluster, in one line."""


@dataclass(slots=True)
class Snapshot:
    """Objects by (apiVersion, kind), each with those two fields, in the order they were listed.

    `version`: the resourceVersion they were all listed at, "" if they are not of one moment.
    `left_out`: kinds that could not be read, with the reason.
    """

    objects: dict[Key, list[Json]] = field(default_factory=dict)
    server: str = ""
    version: str = ""
    taken: str = ""
    left_out: dict[str, str] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Json]:
        return self.objects.get((kind.group_version, kind.name), [])

    def add(self, obj: Mapping[str, Any]) -> bool:
        """Add an object, reduced to the fields that are read; False if its kind is not used. Raises
        MalformedObjectError.
        """
        kept = cleaned(obj)
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
        for obj in _objects(data, name):
            if (obj.get("apiVersion"), obj.get("kind")) == (HEADER, HEADER_KIND):
                snapshot.server = str(obj.get("server", ""))
                snapshot.version = str(obj.get("resourceVersion", ""))
                snapshot.taken = str(obj.get("taken", ""))
                snapshot.left_out = dict(obj.get("leftOut") or {})
            elif not (snapshot.add(obj) or is_read(obj)):
                snapshot.left_out[kind_of(obj)] = UNREAD
    except MalformedObjectError as error:
        raise SnapshotError(f"{name}: {error}") from None
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


def documents(data: bytes, name: str) -> Iterator[Json]:
    """Objects of YAML documents or JSON; Lists are flattened. Raises SnapshotError."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = parse(lambda data: list(yaml.load_all(data, Loader=loader)), data)
    except MalformedError as error:
        raise SnapshotError(f"{name}: {error}") from None
    for document in found:
        yield from _flat(document, name)


def _objects(data: bytes, name: str) -> Iterator[Json]:
    """Objects of JSON lines, of one JSON document, or of YAML."""
    if not data.lstrip().startswith(b"{"):
        yield from documents(data, name)
        return
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError:
        whole = None
    if whole is not None:
        yield from _flat(whole, name)
        return
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            obj = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise SnapshotError(f"{name}: line {number}: {error}") from None
        yield from _flat(obj, name)


def _flat(document: Any, name: str) -> Iterator[Json]:
    if document is None:
        return
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        raise SnapshotError(f"{name}: a document is no Kubernetes object")
    if str(document.get("kind", "")).endswith("List") and "items" in document:
        kind = str(document["kind"])[: -len("List")]
        for item in document["items"] or ():
            bare = isinstance(item, dict) and kind
            of_list = {"apiVersion": document.get("apiVersion", ""), "kind": kind}
            yield from _flat({**of_list, **item} if bare else item, name)
        return
    yield document


# --- fields of an object -------------------------------------------------------------------------


def kind_of(obj: Mapping[str, Any]) -> str:
    """The kind and its group, as kubectl takes it: Job, but Job.batch.volcano.sh."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    return f"{obj.get('kind', '')}.{group}" if group else str(obj.get("kind", ""))


def is_read(obj: Mapping[str, Any]) -> bool:
    """Whether the scheduler or admission reads objects of this kind."""
    key = (str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
    return key in WATCHED or key in ADMISSION


def cleaned(obj: Mapping[str, Any]) -> Json | None:
    """The fields that are read, None for kinds that are not used. Raises MalformedObjectError."""
    key = (str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
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
