"""The reader that gives an object its stored form, by tables of types.

Notation of the tables, one type per block, its fields on indented lines as `name:type`:

    str bool int32 int64 qty time micro ios any    scalars (`ios` is a number or a string)
    amount                                         a quantity of a resource, in thousandths at most
    Name  [T]  {T}                                 another type, a list, a map from strings
    !   always present, with its zero value if it was not sent
    ?   stored even when zero; without a mark a zero value is omitted, as with Go's omitempty
    @k  a list whose elements are identified by `k`; `@` alone: a set
    Name...  other fields of this type are stored as they were sent

The reader removes empty values, writes quantities and times in one form, collects the paths of
unknown fields, and refuses values of a wrong type. It builds new containers everywhere, so that
stored objects never share structure with a caller's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import orjson

from asched_lab.apiserver import quantities
from asched_lab.apiserver.kind_types import KIND_TYPES
from asched_lab.apiserver.pod_types import POD_TYPES
from asched_lab.apiserver.resources import CUSTOM, Resource

JsonObject = dict[str, Any]
#: Reads one value: (value, path, paths of unknown fields) -> stored form.
Reader = Callable[[Any, str, list[str]], Any]

MICRO_TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")
FIELD: Final = re.compile(r"^(\w+):(.+?)([!?]?)(@[\w,]*)?$")
INT_BOUNDS: Final = {"int32": 1 << 31, "int64": 1 << 63}
#: Letters of a wrong value that an error shows.
SHOWN_LETTERS: Final = 60


class DecodeError(ValueError):
    """A value of a wrong type. The message is kube-apiserver's, which does not always have the
    path; `path` and `why` name the field, and what it must be.
    """

    def __init__(self, message: str, path: str, why: str) -> None:
        super().__init__(message)
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type: `form` is its type text, `keys` identify list elements."""

    name: str
    form: str
    always: bool
    pointer: bool
    keys: tuple[str, ...] | None


#: Behind the name of a type in the tables: fields besides the described ones are stored too.
OPEN_MARK: Final = "..."


def _parse(text: str) -> dict[str, dict[str, Field]]:
    types: dict[str, dict[str, Field]] = {}
    fields: dict[str, Field] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            fields = types.setdefault(line.removesuffix(OPEN_MARK), {}) if line else fields
            continue
        for item in line.split():
            match = FIELD.match(item)
            assert match is not None, item
            name, form, mark, keys = match.groups()
            identity = None if keys is None else tuple(filter(None, keys[1:].split(",")))
            fields[name] = Field(name, form, mark == "!", mark == "?", identity)
    return types


TYPES: Final = _parse(POD_TYPES + KIND_TYPES)
#: Types with fields that are not described.
OPEN_TYPES: Final = frozenset(
    line.removesuffix(OPEN_MARK)
    for line in (POD_TYPES + KIND_TYPES).splitlines()
    if line.endswith(OPEN_MARK)
)
#: Kinds of custom groups whose type has another name.
CUSTOM_NAMES: Final = {"PodGroup": "CoschedulingGroup"}


def type_name(res: Resource) -> str:
    """The type of a resource; `Anything` for kinds that are stored as they were sent."""
    if res.kind == "Event" and res.group:
        return "EventV1"
    name = CUSTOM_NAMES.get(res.kind, res.kind) if res.group in CUSTOM else res.kind
    return name if name in TYPES else "Anything"


#: Forms, and types as Go names them, in plain words; all others are structures.
WORDS: Final = {
    "string": "a string",
    "bool": "true or false",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "intstr.IntOrString": "a whole number or a string",
    "qty": "a quantity such as 500m or 2Gi",
    "time": "a time such as 2026-01-31T12:00:00Z",
    "micro": "a time such as 2026-01-31T12:00:00.000000Z",
}


def _wrong(value: object, path: str, wanted: str) -> DecodeError:
    kinds = {str: "string", dict: "object", list: "array", bool: "bool"}
    kind = kinds.get(type(value), "number")
    what = WORDS.get(wanted, "a list" if wanted.startswith("[]") else "a mapping")
    return DecodeError(
        f"json: cannot unmarshal {kind} into Go struct field {path} of type {wanted}",
        path,
        f"must be {what}, not {_shown(value)}",
    )


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."


def _plain(kind: type, wanted: str) -> Reader:
    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is not kind:
            raise _wrong(value, path, wanted)
        return value

    return read


def _integer(wanted: str) -> Reader:
    bound = INT_BOUNDS[wanted]

    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not -bound <= value < bound:
            raise _wrong(value, path, wanted)
        return value

    return read


def _quantity(value: Any, path: str, _unknown: list[str]) -> Any:
    try:
        return quantities.text_of(value)
    except ValueError as fault:
        why = f"must be {WORDS['qty']}, not {_shown(value)}"
        raise DecodeError(str(fault), path, why) from None


def _amount(value: Any, path: str, unknown: list[str]) -> Any:
    return quantities.to_milli(_quantity(value, path, unknown))


def _time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _wrong(value, path, "string")
    if len(value) == 20 and value[-1] == "Z" and value[10] == "T" and value[4] == "-":
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = datetime.min  # noqa: DTZ901  stands for "no time" just below
    if moment.tzinfo is None:
        why = f"must be {WORDS['time']}, not {_shown(value)}"
        message = f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse'
        raise DecodeError(message, path, why)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _wrong(value, path, "string")
    if MICRO_TIME.match(value):
        return value
    form = "2006-01-02T15:04:05.000000Z07:00"
    # A well-formed second without fraction fails at the fraction; other values at the year.
    rest = value[19:] if re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value) else value
    wanted = ".000000" if rest != value else "2006"
    message = f'parsing time "{value}" as "{form}": cannot parse "{rest}" as "{wanted}"'
    raise DecodeError(message, path, f"must be {WORDS['micro']}, not {_shown(value)}")


def _int_or_string(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) not in {int, str}:
        raise _wrong(value, path, "intstr.IntOrString")
    return value


def without_nulls(value: Any) -> Any:
    """A deep copy of any JSON value in which no member of an object is null."""
    if type(value) is dict:
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if type(value) is list:
        return [without_nulls(v) for v in value]
    return value


def _anything(value: Any, _path: str, _unknown: list[str]) -> Any:
    return without_nulls(value)


SCALARS: Final[dict[str, Reader]] = {
    "str": _plain(str, "string"),
    "bool": _plain(bool, "bool"),
    "int32": _integer("int32"),
    "int64": _integer("int64"),
    "qty": _quantity,
    "amount": _amount,
    "time": _time,
    "micro": _micro_time,
    "ios": _int_or_string,
    "any": _anything,
}
ZEROS: Final[dict[str, Any]] = {
    "str": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "ios": 0,
    "qty": "0",
    "amount": "0",
}


def _list(form: str) -> Reader:
    read_element = reader(form)
    wanted = f"[]{form}"

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise _wrong(value, path, wanted)
        return [read_element(v, f"{path}[{i}]", unknown) for i, v in enumerate(value)]

    return read


def _map(form: str) -> Reader:
    read_value = reader(form)

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _wrong(value, path, f"map[string]{form}")
        return {
            k: "" if v is None else read_value(v, f"{path}.{k}", unknown) for k, v in value.items()
        }

    return read


def _zero(field: Field) -> Callable[[], Any]:
    """A factory for the value of an always present field that was not sent."""
    if field.form in TYPES:
        return lambda: reader(field.form)({}, "", [])
    if field.form == "any":
        return dict
    zero = ZEROS.get(field.form)
    return lambda: zero


def _struct(name: str) -> Reader:
    fields, is_open = TYPES[name], name in OPEN_TYPES
    plan: dict[str, tuple[Reader, bool]] = {}
    for field in fields.values():
        keep = field.always or field.pointer or field.form in TYPES or field.form == "any"
        plan[field.name] = (reader(field.form), keep or field.form == "ios")
    zeros = {field.name: _zero(field) for field in fields.values() if field.always}

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _wrong(value, path, name)
        out: JsonObject = {}
        dot = f"{path}." if path else ""
        for key, raw in value.items():
            step = plan.get(key)
            if step is None:
                if is_open:
                    out[key] = without_nulls(raw)
                else:
                    unknown.append(dot + key)
            elif raw is not None:
                made = step[0](raw, dot + key, unknown)
                if made or (step[1] and made != []):
                    out[key] = made
        for key, zero in zeros.items():
            if key not in out:
                out[key] = zero()
        return out

    return read


@cache
def reader(form: str) -> Reader:
    """The reader of a type text."""
    if form.startswith("["):
        return _list(form[1:-1])
    if form.startswith("{"):
        return _map(form[1:-1])
    return SCALARS[form] if form in SCALARS else _struct(form)


def decode(res: Resource, raw: JsonObject) -> tuple[JsonObject, list[str]]:
    """The stored form of an object without kind and apiVersion, and the unknown fields' paths.

    Raises DecodeError for a value of a wrong type.
    """
    unknown: list[str] = []
    body = {k: v for k, v in raw.items() if k not in {"kind", "apiVersion"}}
    return reader(type_name(res))(body, "", unknown), unknown


def field_of(type_text: str, name: str) -> Field | None:
    """The field `name` of a type text, if the table describes it."""
    return TYPES.get(type_text, {}).get(name)
