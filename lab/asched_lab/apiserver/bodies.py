"""Request bodies: from bytes to an object of the path's kind.

JSON, YAML and a little protobuf are read; an unknown or repeated field is a warning, an error with
`fieldValidation=Strict`, and dropped without a warning with `Ignore`. Events are stored as core/v1
and shown as events.k8s.io/v1 on request. Protobuf is never written.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import orjson

from asched.core.model.decode import MalformedError
from asched_lab.apiserver import schema, yaml_text
from asched_lab.apiserver.call import Call
from asched_lab.apiserver.defaults import apply_defaults
from asched_lab.apiserver.protobuf import ProtobufError, load_protobuf
from asched_lab.apiserver.refusals import ApiError, bad_request, unsupported_body
from asched_lab.apiserver.resources import BY_KIND, Resource

JsonObject = dict[str, Any]

#: core/v1 member, events.k8s.io/v1 member; all other members have the same name in both.
RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
TO_V1: Final = dict(RENAMED)
TO_CORE: Final = {v1: core for core, v1 in RENAMED}
#: Members that the newer group omits when they are empty, and the older one does not.
OMITTED_IN_V1: Final = frozenset({"reportingController", "reportingInstance"})


def to_core(event: JsonObject) -> JsonObject:
    """The stored form of an event that was written through events.k8s.io/v1."""
    core = {TO_CORE.get(name, name): value for name, value in event.items()}
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    return core


def to_v1(event: JsonObject) -> JsonObject:
    """A stored event in the form of events.k8s.io/v1."""
    seen = {TO_V1.get(name, name): value for name, value in event.items()}
    return {name: value for name, value in seen.items() if value or name not in OMITTED_IN_V1}


SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
#: Bytes of a body that an error shows.
SHOWN_BYTES: Final = 30


def load(call: Call, kind: str) -> tuple[JsonObject, list[str]]:
    """The body as an object, and the paths of fields that occur twice. Raises ApiError."""
    media = call.headers.get("content-type", "").partition(";")[0].strip()
    if media in {"", "application/json"}:
        return load_json(call.body, kind)
    if media in {"application/yaml", "application/apply-patch+yaml"}:
        return load_yaml(call.body, kind)
    if media == "application/vnd.kubernetes.protobuf":
        try:
            return load_protobuf(call.body), []
        except ProtobufError as fault:
            raise ApiError(415, str(fault)) from None
    raise unsupported_body()


def load_json(body: bytes, kind: str) -> tuple[JsonObject, list[str]]:
    prefix = f"the object provided is unrecognized (must be of type {kind}): couldn't get"
    try:
        raw = orjson.loads(body)
    except orjson.JSONDecodeError:
        shown = body[:SHOWN_BYTES].decode(errors="replace") or "<empty>"
        more = " ..." if len(body) > SHOWN_BYTES else ""
        raise bad_request(
            f"{prefix} version/kind; json parse error: unexpected end of JSON input ({shown}{more})"
        ) from None
    if raw is None:
        return {}, []
    if not isinstance(raw, dict):
        raise bad_request(f"{prefix} version/kind; json parse error: json: cannot unmarshal array")
    return raw, repeated_in(body, raw)


def repeated_in(body: bytes, raw: Any) -> list[str]:
    """Paths of object members that occur more than once in a text of this value."""
    # A repeated key leaves fewer keys than the text has; only then is the slow parser used.
    # A quotation mark after a backslash is in a text, unless the backslash is the text's last sign.
    in_texts = 0 if b'\\\\":' in body else body.count(b'\\":')
    return repeated_fields(body) if body.count(b'":') - in_texts > count_keys(raw) else []


def count_keys(value: Any) -> int:
    if type(value) is dict:
        return len(value) + sum(map(count_keys, value.values()))
    if type(value) is list:
        return sum(map(count_keys, value))
    return 0


def repeated_fields(body: bytes) -> list[str]:
    """Paths of object members that occur more than once."""
    found: list[str] = []

    class Pairs(list[tuple[str, Any]]):
        """The members of one object in order, with repeats."""

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Pairs):
            seen: set[str] = set()
            for name, member in value:
                member_path = f"{path}.{name}" if path else name
                if name in seen:
                    found.append(member_path)
                seen.add(name)
                walk(member, member_path)
        elif isinstance(value, list):
            for index, member in enumerate(value):
                walk(member, f"{path}[{index}]")

    walk(json.loads(body, object_pairs_hook=Pairs), "")
    return found


def load_yaml(body: bytes, kind: str) -> tuple[JsonObject, list[str]]:
    """The first document, and the paths of fields that occur twice."""
    try:
        document = next(iter(yaml_text.read(body)), None)
    except MalformedError:
        document = yaml_text.Document("", [])
    if document is None or document.value is None:
        return {}, []
    raw, repeated = document
    if not isinstance(raw, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get"
            " version/kind; yaml parse error"
        )
    return raw, repeated


def check_kind(raw: JsonObject, res: Resource) -> None:
    """Raises ApiError 400 if the body has another kind; a body without a kind is accepted."""
    sent = (raw.get("apiVersion", ""), raw.get("kind", ""))
    if sent in {("", ""), (res.api_version, res.kind)}:
        return
    version, kind = sent[0] or res.api_version, sent[1] or res.kind
    if (version, kind) == (res.api_version, res.kind):
        return
    head = f'{kind} in version "{version}" cannot be handled as a {res.kind}'
    if (version, kind) in BY_KIND:
        internal = res.group.partition(".")[0] or "core"
        short = version.rpartition("/")[2]
        raise bad_request(
            f"{head}: converting ({short}.{kind}) to ({internal}.{res.kind}): unknown conversion"
        )
    raise bad_request(
        f'{head}: no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'
    )


def decode(call: Call, res: Resource) -> tuple[JsonObject, list[str]]:
    """The object of a POST or PUT in stored form with its defaults, and warnings for the client."""
    raw, repeated = load(call, res.kind)
    check_kind(raw, res)
    try:
        obj, unknown = to_stored(res, raw)
    except schema.DecodeError as fault:
        raise cannot_handle(res, str(fault)) from None
    return obj, field_warnings(
        call,
        field_problems(repeated, unknown),
        lambda why: cannot_handle(res, f"strict decoding error: {why}"),
    )


def field_warnings(
    call: Call, problems: list[str], refusal: Callable[[str], ApiError]
) -> list[str]:
    """The problems with fields that the client hears of. Raises the refusal if it is strict."""
    mode = call.query.get("fieldValidation", "Warn")
    if problems and mode == "Strict":
        raise refusal(", ".join(problems))
    return problems if mode != "Ignore" else []


def field_problems(repeated: list[str], unknown: list[str]) -> list[str]:
    return [f'duplicate field "{path}"' for path in repeated] + [
        f'unknown field "{path}"' for path in unknown
    ]


def to_stored(res: Resource, raw: JsonObject) -> tuple[JsonObject, list[str]]:
    """Decode and fill in defaults. Raises DecodeError."""
    obj, unknown = schema.decode(res, raw)
    if res.kind == "Event" and res.group:
        obj = to_core(obj)
    apply_defaults(res.kind, obj)
    return obj, unknown


def cannot_handle(res: Resource, why: str) -> ApiError:
    return bad_request(
        f'{res.kind} in version "{res.version}" cannot be handled as a {res.kind}: {why}'
    )


@lru_cache(maxsize=256)
def opening(res: Resource) -> bytes:
    """The start of an encoded object, before its stored content without the brace."""
    return f'{{"kind":"{res.kind}","apiVersion":"{res.api_version}",'.encode()


def encoded(res: Resource, obj: JsonObject, body: bytes | None = None) -> bytes:
    """A whole object as JSON; `body` is its stored encoding if there is one."""
    if res.kind == "Event" and res.group:
        return opening(res) + orjson.dumps(to_v1(obj))[1:]
    return opening(res) + (orjson.dumps(obj) if body is None else body)[1:]


def shown(res: Resource, obj: JsonObject) -> JsonObject:
    """A whole object as a client reads it through this resource."""
    content = to_v1(obj) if res.kind == "Event" and res.group else obj
    return {"kind": res.kind, "apiVersion": res.api_version, **content}
