"""Objects in files: parsed from JSON lines, JSON or YAML, and checked as by an API server.

Kinds    what a scheduler watches, what admission of a new pod reads, and controllers of pods; other
         kinds are not checked
Checked  types of values, and names of fields. Rules for values, such as operators and names, are
         checked where objects are created.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from asched.core.model.decode import MalformedError, decode
from asched.core.model.kinds import BY_RESOURCE, VERSIONS, Kind
from asched_lab.apiserver import bodies, schema, yaml_text
from asched_lab.apiserver.resources import BY_KIND

Json = dict[str, Any]

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
#: Kinds whose pods are made.
CONTROLLERS: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "ReplicationController"),
)


NESTED: Final = "nested too deeply"


class SnapshotError(Exception):
    """A file or an object in it that cannot be used, in one line."""


class ObjectError(SnapshotError):
    """An object with a value of a wrong type: the object, the field, and what it must be."""


class Parsed(NamedTuple):
    """`repeated`: paths of fields that are written more than once."""

    obj: Json
    repeated: list[str]


# --- files ---------------------------------------------------------------------------------------


def parsed(data: bytes, name: str, *, with_repeated: bool = False) -> Iterator[Parsed]:
    """Objects of JSON lines, JSON or YAML; Lists are flattened. Raises SnapshotError."""
    for document, repeated in _documents(data, name, with_repeated):
        yield from _flat(document, repeated, name)


def _documents(data: bytes, name: str, with_repeated: bool) -> Iterator[tuple[Any, list[str]]]:
    if data.lstrip().startswith(b"{"):
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            if _is_json(data.lstrip().partition(b"\n")[0]):
                for line in _json_lines(data, name):
                    yield line, []
                return
        else:
            yield document, bodies.repeated_in(data, document) if with_repeated else []
            return
    try:
        yield from yaml_text.read(data)
    except MalformedError as error:
        raise SnapshotError(f"{name}: {error}") from None


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _json_lines(data: bytes, name: str) -> Iterator[Any]:
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise SnapshotError(f"{name}: line {number}: {error}") from None


def _flat(document: Any, repeated: list[str], name: str) -> Iterator[Parsed]:
    if document is None:
        return
    if not isinstance(document, dict):
        raise SnapshotError(f"{name}: a document is no Kubernetes object")
    if not (str(document.get("kind", "")).endswith("List") and "items" in document):
        yield Parsed(document, repeated)
        return
    if "items" in repeated or not isinstance(document["items"], list | None):
        raise SnapshotError(f"{name}: {document['kind']}: items must be one list")
    kind = str(document["kind"])[: -len("List")]
    for number, item in enumerate(document["items"] or ()):
        bare = isinstance(item, dict) and kind
        of_list = {"apiVersion": document.get("apiVersion", ""), "kind": kind}
        head = f"items[{number}]."
        inside = [path.removeprefix(head) for path in repeated if path.startswith(head)]
        yield from _flat({**of_list, **item} if bare else item, inside, name)


# --- objects -------------------------------------------------------------------------------------


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """The apiVersion and the kind."""
    return str(obj.get("apiVersion", "")), str(obj.get("kind", ""))


def kind_of(obj: Mapping[str, Any]) -> str:
    """The kind and its group, as kubectl takes it: Job, but Job.batch.volcano.sh."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    return f"{obj.get('kind', '')}.{group}" if group else str(obj.get("kind", ""))


def title(obj: Mapping[str, Any]) -> str:
    """An object in messages: its kind, namespace and name, as far as they are written."""
    metadata = obj.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    name = named.get("name") or named.get("generateName") or "without a name"
    place = f"{named['namespace']}/" if named.get("namespace") else ""
    return f"{obj.get('kind') or 'an object'} {place}{name}"


def is_read(obj: Mapping[str, Any]) -> bool:
    """Whether the scheduler or admission reads objects of this kind."""
    key = key_of(obj)
    return key in WATCHED or key in ADMISSION


def check(obj: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """The object in the form that the API server would store, without defaults, and the paths of
    its unknown fields. Raises ObjectError.
    """
    key = key_of(obj)
    kind, res = WATCHED.get(key), BY_KIND.get(key)
    if not (kind or key in ADMISSION or key in CONTROLLERS):
        return dict(obj), []
    try:
        body, unknown = (nullless(obj), []) if res is None else schema.decode(res, dict(obj))
        if kind is not None:
            decode(kind.record, body)
    except schema.DecodeError as error:
        raise ObjectError(f"{title(obj)}: {error.path}: {error.why}") from None
    except MalformedError as error:
        raise ObjectError(f"{title(obj)}: {error}") from None
    except RecursionError:
        raise ObjectError(f"{title(obj)}: {NESTED}") from None
    return {**body, "apiVersion": key[0], "kind": key[1]}, unknown


def nullless(obj: Mapping[str, Any]) -> Json:
    """The object without members that are null. Raises ObjectError."""
    try:
        made: Json = schema.without_nulls(dict(obj))
    except RecursionError:
        raise ObjectError(f"{title(obj)}: {NESTED}") from None
    return made
