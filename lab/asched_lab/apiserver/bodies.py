"""Request bodies: from bytes to an object of the path's kind.

JSON, YAML and a little protobuf are read; an unknown or repeated field is a warning, an error with
`fieldValidation=Strict`, and dropped without a warning with `Ignore`.
"""

import json
from functools import lru_cache
from typing import Any, Final

import orjson
import yaml

from asched.core.model.decode import MalformedError, parse
from asched_lab.apiserver import events, protobuf, schema
from asched_lab.apiserver.call import Call
from asched_lab.apiserver.defaults_kinds import apply_defaults
from asched_lab.apiserver.resources import BY_KIND, Resource
from asched_lab.apiserver.statuses import ApiError, bad_request, unsupported_body

JsonObject = dict[str, Any]

SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
#: Bytes of a body that an error shows.
SHOWN_BYTES: Final = 30


def load(call: Call, kind: str) -> tuple[JsonObject, list[str]]:
    """The body as an object, and the paths of fields that occur twice. Raises ApiError."""
    media = call.headers.get("content-type", "").partition(";")[0].strip()
    if media in {"", "application/json"}:
        return load_json(call.body, kind)
    if media in {"application/yaml", "application/apply-patch+yaml"}:
        return load_yaml(call.body, kind), []
    if media == "application/vnd.kubernetes.protobuf":
        try:
            return protobuf.load(call.body), []
        except protobuf.ProtobufError as fault:
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
    # A repeated key leaves fewer keys than the text has; only then is the slow parser used.
    repeated = repeated_fields(body) if body.count(b'":') > count_keys(raw) else []
    return raw, repeated


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


def load_yaml(body: bytes, kind: str) -> JsonObject:
    try:
        raw = parse(yaml.safe_load, body)
    except MalformedError:
        raw = ""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get"
            " version/kind; yaml parse error"
        )
    return raw


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
    mode = call.query.get("fieldValidation", "Warn")
    problems = field_problems(repeated, unknown)
    if problems and mode == "Strict":
        raise cannot_handle(res, f"strict decoding error: {', '.join(problems)}")
    return obj, problems if mode != "Ignore" else []


def field_problems(repeated: list[str], unknown: list[str]) -> list[str]:
    return [f'duplicate field "{path}"' for path in repeated] + [
        f'unknown field "{path}"' for path in unknown
    ]


def to_stored(res: Resource, raw: JsonObject) -> tuple[JsonObject, list[str]]:
    """Decode and fill in defaults. Raises DecodeError."""
    obj, unknown = schema.decode(res, raw)
    if res.kind == "Event" and res.group:
        obj = events.to_core(obj)
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
        return opening(res) + orjson.dumps(events.to_v1(obj))[1:]
    return opening(res) + (orjson.dumps(obj) if body is None else body)[1:]


def shown(res: Resource, obj: JsonObject) -> JsonObject:
    """A whole object as a client reads it through this resource."""
    content = events.to_v1(obj) if res.kind == "Event" and res.group else obj
    return {"kind": res.kind, "apiVersion": res.api_version, **content}
