"""Read the protobuf of kubectl's create commands.

A body is four bytes of magic and an envelope that names the kind; `TYPES` has the field numbers of
the kinds that these commands make, in the notation of `schema.py` with the field's number in front:
`3=name:form`. Forms besides types, lists and maps are str, bytes, bool, int, qty and ios. A field
that is not listed is skipped, a kind is refused.
"""

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

JsonObject = dict[str, Any]

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
