"""Request bodies: from bytes to an object of the path's kind.

JSON, YAML and a little protobuf are read; an unknown or repeated field is a warning, an error with
`fieldValidation=Strict`, and dropped without a warning with `Ignore`. Events are stored as core/v1
and shown as events.k8s.io/v1 on request.

Protobuf is never written. A body is four bytes of magic and an envelope that names the kind;
`TYPES` has the field numbers of the kinds that kubectl's create commands make, in the notation of
`schema.py` with the field's number in front: `3=name:form`. Forms besides types, lists and maps are
str, bytes, bool, int, qty and ios. A field that is not listed is skipped, a kind is refused.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from asched.core.model.decode import MalformedError
from asched_lab.apiserver import schema, yaml_text
from asched_lab.apiserver.call import ApiError, Call, bad_request, unsupported_body
from asched_lab.apiserver.resources import BY_KIND, Resource
from asched_lab.apiserver.strategy import apply_defaults

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


MAGIC: Final = b"k8s\x00"
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

TYPES: Final = """
Envelope 1=typeMeta:TypeMeta 2=raw:raw
TypeMeta 1=apiVersion:str 2=kind:str
ObjectMeta 1=name:str 2=generateName:str 3=namespace:str 11=labels:{str} 12=annotations:{str}
Namespace 1=metadata:ObjectMeta
ConfigMap 1=metadata:ObjectMeta 2=data:{str} 3=binaryData:{bytes} 4=immutable:bool
Secret 1=metadata:ObjectMeta 2=data:{bytes} 3=type:str 4=stringData:{str} 5=immutable:bool
ServiceAccount 1=metadata:ObjectMeta
PriorityClass 1=metadata:ObjectMeta 2=value:int 3=globalDefault:bool 4=description:str
  5=preemptionPolicy:str
PodDisruptionBudget 1=metadata:ObjectMeta 2=spec:BudgetSpec
BudgetSpec 1=minAvailable:ios 2=selector:LabelSelector 3=maxUnavailable:ios
ResourceQuota 1=metadata:ObjectMeta 2=spec:QuotaSpec
QuotaSpec 1=hard:{qty} 2=scopes:[str]
Service 1=metadata:ObjectMeta 2=spec:ServiceSpec
ServiceSpec 1=ports:[ServicePort] 2=selector:{str} 3=clusterIP:str 4=type:str 10=externalName:str
ServicePort 1=name:str 2=protocol:str 3=port:int 4=targetPort:ios 5=nodePort:int
Deployment 1=metadata:ObjectMeta 2=spec:DeploymentSpec
DeploymentSpec 1=replicas:int 2=selector:LabelSelector 3=template:PodTemplate
Job 1=metadata:ObjectMeta 2=spec:JobSpec
JobSpec 1=parallelism:int 2=completions:int 6=template:PodTemplate 7=backoffLimit:int
LabelSelector 1=matchLabels:{str} 2=matchExpressions:[Requirement]
Requirement 1=key:str 2=operator:str 3=values:[str]
PodTemplate 1=metadata:ObjectMeta 2=spec:PodSpec
PodSpec 2=containers:[Container] 3=restartPolicy:str
Container 1=name:str 2=image:str 3=command:[str] 4=args:[str] 6=ports:[ContainerPort]
ContainerPort 1=name:str 2=hostPort:int 3=containerPort:int 4=protocol:str
SelfSubjectAccessReview 2=spec:AccessSpec
SelfSubjectRulesReview 2=spec:RulesSpec
RulesSpec 1=namespace:str
AccessSpec 1=resourceAttributes:ResourceAttributes 2=nonResourceAttributes:PathAttributes
ResourceAttributes 1=namespace:str 2=verb:str 3=group:str 4=version:str 5=resource:str
  6=subresource:str 7=name:str
PathAttributes 1=path:str 2=verb:str
Role 1=metadata:ObjectMeta 2=rules:[Rule]
ClusterRole 1=metadata:ObjectMeta 2=rules:[Rule]
Rule 1=verbs:[str] 2=apiGroups:[str] 3=resources:[str] 4=resourceNames:[str] 5=nonResourceURLs:[str]
RoleBinding 1=metadata:ObjectMeta 2=subjects:[Subject] 3=roleRef:RoleRef
ClusterRoleBinding 1=metadata:ObjectMeta 2=subjects:[Subject] 3=roleRef:RoleRef
Subject 1=kind:str 2=apiGroup:str 3=name:str 4=namespace:str
RoleRef 1=apiGroup:str 2=kind:str 3=name:str
SelfSubjectReview 1=metadata:ObjectMeta
TokenRequest 1=metadata:ObjectMeta 2=spec:TokenSpec
TokenSpec 1=audiences:[str] 4=expirationSeconds:int
"""


class ProtobufError(ValueError):
    """The body is not a protobuf message that this server can read."""


@cache
def fields_of(name: str) -> dict[int, tuple[str, str]]:
    """Number -> field name and form of one type."""
    for line in TYPES.replace("\n  ", " ").strip().splitlines():
        type_name, *fields = line.split()
        if type_name == name:
            found = (re.match(r"(\d+)=(\w+):(.+)", field) for field in fields)
            return {int(m[1]): (m[2], m[3]) for m in found if m is not None}
    raise ProtobufError(f"kind {name} cannot be read from protobuf; send JSON or YAML")


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and raw value. Raises IndexError if cut short."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == DELIMITED:
            size, at = varint(data, at)
        elif wire in {FIXED64, FIXED32}:
            size = 8 if wire == FIXED64 else 4
        else:
            raise ProtobufError(f"unknown wire type {wire}")
        if at + size > len(data):
            raise IndexError
        yield number, data[at : at + size]
        at += size


def message(name: str, data: bytes) -> JsonObject:
    """One message as a JSON object; empty strings are left out, as Go's omitempty does."""
    fields = fields_of(name)
    out: JsonObject = {}
    for number, raw in parts(data):
        if number not in fields:
            continue
        member, form = fields[number]
        if form.startswith("["):
            out.setdefault(member, []).append(scalar(form[1:-1], raw))
        elif form.startswith("{"):
            entry = dict(parts(raw if isinstance(raw, bytes) else b""))
            out.setdefault(member, {})[text(entry.get(1, b""))] = scalar(
                form[1:-1], entry.get(2, b"")
            )
        else:
            value = scalar(form, raw)
            if value != "":
                out[member] = value
    return out


def text(raw: int | bytes) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)


def scalar(form: str, raw: int | bytes) -> Any:
    if isinstance(raw, int):
        if form == "bool":
            return bool(raw)
        # Negative numbers are encoded as 64-bit two's complement.
        return raw - (1 << 64) if raw >> 63 else raw
    match form:
        case "raw":
            return raw
        case "str":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "qty":
            return text(dict(parts(raw)).get(1, b"0"))
        case "ios":
            choice = dict(parts(raw))
            return text(choice.get(3, b"")) if choice.get(1) else choice.get(2, 0)
    return message(form, raw)


def load_protobuf(body: bytes) -> JsonObject:
    """The object of a body, with kind and apiVersion. Raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise ProtobufError("the body is not protobuf of Kubernetes")
    try:
        envelope = message("Envelope", body[len(MAGIC) :])
        kind = envelope.get("typeMeta", {})
        return {**kind, **message(kind.get("kind", ""), envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError) as fault:
        raise ProtobufError("the body is cut short or damaged") from fault


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
    return repeated_fields(body) if body.count(b'":') > count_keys(raw) else []


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
