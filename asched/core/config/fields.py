"""Declarations of the configuration's fields, and records made of decoded mappings.

Rules   a field's JSON name is its own in camel case, `_s` becomes `Seconds`, and `_ns`, a duration,
        is left out; the annotation gives the rest: the type (`Int32`), another name, marks, a
        range; the record has the defaults of absent fields. Decoding (`decode.py`), defaults
        (`build`), validation (`validate.py`), printing (`text.py`) and the reference page
        follow from the declaration.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, get_args, get_origin

import msgspec


class Scalar(Enum):
    """A type without parts; the value is its name on the reference page."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    DURATION = "Duration"
    OPTIONAL_DURATION = "Duration or null"
    BYTES = "base64"
    ANY = "object"


class FieldMark(Enum):
    """What a field has besides its type."""

    #: Zero and empty mean that the field is not given.
    ZERO_IS_ABSENT = 1
    #: Not printed while it is zero or empty, as lists and None are not.
    OMIT_EMPTY = 2
    #: Printed even if it is None or an empty list.
    PRINTED = 3
    #: Stored as written; its record says what it may contain.
    RAW = 4
    #: Not part of the document.
    OWN = 5
    #: Cannot change while the process runs: the lease, the connection, and what was opened or left
    #: out at the start.
    START_ONLY = 6


class ValueRange(NamedTuple):
    """The values that a number may have; `text` is the message about any other."""

    least: float
    most: float
    text: str = ""

    @property
    def message(self) -> str:
        end = "inf)" if self.most == math.inf else f"{self.most}]"
        return self.text or f"not in valid range [{self.least}, {end}"


POSITIVE: Final = ValueRange(1, math.inf, "must be greater than zero")


class NeededGates(NamedTuple):
    """The feature gates without which a field has no default and must not be set."""

    names: tuple[str, ...]

    def are_on(self, gates: Mapping[str, bool]) -> bool:
        return all(gates[name] for name in self.names)


class ListOf(msgspec.Struct, frozen=True):
    """A JSON array of one type."""

    item: "Type"


class MapOf(msgspec.Struct, frozen=True):
    """A JSON object with free keys."""

    item: "Type"


class ConfigRecord(msgspec.Struct, frozen=True):
    """A JSON object with known fields."""


class ConfigDocument(ConfigRecord, frozen=True):
    """A JSON object that has a kind and a version."""

    #: The kind, if it is not the record's own name.
    kind: ClassVar[str] = ""


Type = Scalar | ListOf | MapOf | type[ConfigRecord]

_R = TypeVar("_R", bound=ConfigRecord)


class DeclaredField(NamedTuple):
    """A field of a record; `attribute` is the record's name for it, `name` JSON's."""

    attribute: str
    name: str
    type: Type
    marks: frozenset[FieldMark] = frozenset()
    range: ValueRange | None = None
    gates: NeededGates | None = None


TYPE_META: Final[Mapping[str, DeclaredField]] = {
    name: DeclaredField(name, name, Scalar.STRING) for name in ("apiVersion", "kind")
}

Int32 = Annotated[int, Scalar.INT32]
Int64 = Annotated[int, Scalar.INT64]
Float32 = Annotated[float, Scalar.FLOAT32]
#: Nanoseconds. Go has a value, whose null is an error and whose zero is an absent field.
Duration = Annotated[int, Scalar.DURATION, FieldMark.ZERO_IS_ABSENT]
#: Nanoseconds behind a pointer.
OptionalDuration = Annotated[int | None, Scalar.OPTIONAL_DURATION]


@cache
def fields_of(record: type[ConfigRecord]) -> Mapping[str, DeclaredField]:
    """The fields of a document's part by their JSON names, in the order declared."""
    found = (_field(name, record.__annotations__[name]) for name in record.__struct_fields__)
    return {field.name: field for field in found if FieldMark.OWN not in field.marks}


def allowed_fields(record: type[ConfigRecord]) -> Mapping[str, DeclaredField]:
    """The fields that a file may set: also kind and version of a document."""
    is_document = issubclass(record, ConfigDocument)
    return {**TYPE_META, **fields_of(record)} if is_document else fields_of(record)


def _field(attribute: str, annotation: Any) -> DeclaredField:
    notes: Sequence[Any] = ()

    def first(kind: Any, default: Any = None) -> Any:
        return next((note for note in notes if isinstance(note, kind)), default)

    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
    if NoneType in get_args(annotation) and len(get_args(annotation)) == 2:
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    return DeclaredField(
        attribute,
        first(str) or _json_name(attribute),
        first((Scalar, MapOf, type)) or _type_of(annotation),
        frozenset(note for note in notes if isinstance(note, FieldMark)),
        first(ValueRange),
        first(NeededGates),
    )


def _type_of(annotation: Any) -> Type:
    if get_origin(annotation) is tuple:
        return ListOf(_type_of(get_args(annotation)[0]))
    if get_origin(annotation) is Annotated:
        return next(note for note in get_args(annotation) if isinstance(note, Scalar))
    if isinstance(annotation, type) and issubclass(annotation, ConfigRecord):
        return annotation
    return {str: Scalar.STRING, bool: Scalar.BOOL}.get(annotation, Scalar.ANY)


def _json_name(attribute: str) -> str:
    head, *rest = attribute.removesuffix("_ns").split("_")
    return head + "".join("Seconds" if word == "s" else word.capitalize() for word in rest)


def build(record: type[_R], given: Mapping[str, Any] | None, **known: Any) -> _R:
    """The record of a decoded mapping; absent fields have their defaults. `known` are attributes
    that are built already.
    """
    values: dict[str, Any] = {}
    for name, field in fields_of(record).items():
        value = (given or {}).get(name)
        if value is None or field.attribute in known:
            continue
        if value or FieldMark.ZERO_IS_ABSENT not in field.marks:
            is_raw = FieldMark.RAW in field.marks
            values[field.attribute] = value if is_raw else _built(value, field.type)
    return record(**values, **known)


def _built(value: Any, declared: Type) -> Any:
    if isinstance(declared, ListOf):
        return tuple(_built(item, declared.item) for item in value)
    if declared is Scalar.BYTES:
        return base64.b64decode(value)
    if isinstance(declared, type) and not isinstance(value, declared):
        return build(declared, value)
    return value
