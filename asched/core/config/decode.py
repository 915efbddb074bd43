"""Strict decoding: a plain mapping to a mapping of checked types, or every fault with its location.

Rules   unknown fields are rejected, in the document and in args of known plugins; args of other
        plugins pass unchanged; apiVersion and kind are found in any letter case, but misspelt ones
        are unknown fields; durations become whole nanoseconds, null fields are dropped.
        Where Go's decoder stops, asched continues and marks the fault (`Severity`), so that a user
        sees all faults at once and `as_upstream` still gives the output of kube-scheduler.
Source  k8s.io/apimachinery serializer/json, sigs.k8s.io/json (v1.36), recordings of kube-scheduler
"""

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.config import duration
from asched.core.config.args import ARGS_TYPES, kind_of_args
from asched.core.config.fields import (
    INT_LIMITS,
    ConfigDocument,
    ConfigRecord,
    ListOf,
    Scalar,
    Type,
    allowed_fields,
    record_name,
    type_name,
)
from asched.core.config.legacy import VERSIONS, is_legacy
from asched.core.config.problem import (
    STRICT_PREFIX,
    Path,
    Problem,
    Severity,
    StartStage,
    did_you_mean,
    go_json,
    path_text,
    quoted,
)
from asched.core.config.scalars import kind_of, single, value_of
from asched.core.config.v1 import (
    ABSENT_FIELDS,
    API_GROUP,
    API_VERSION,
    KIND,
    KINDS,
    KubeSchedulerProfile,
)

INTERNAL_VERSION: Final = f"{API_GROUP}/__internal"
#: Location of upstream's scheme; its message has the file and line of upstream's source.
SCHEME: Final = '"pkg/scheduler/apis/config/scheme/scheme.go:31"'

DURATION_HINT: Final = "write a number and a unit, such as 15s"
_NUMBERS: Final = (Scalar.INT32, Scalar.INT64, Scalar.FLOAT32)
_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


class Repeating(dict[str, Any]):
    """A JSON object with a duplicate key: the last value counts, all of `pairs` are checked."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = tuple(pairs)


def _pairs(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeating) else value.items()


class _Faults(msgspec.Struct):
    """Collects faults of one text; the prefixes precede strict and other faults of args."""

    base: Path = ()
    prefix: str = ""
    strict_prefix: str = ""
    nested: bool = False
    found: list[Problem] = msgspec.field(default_factory=list)

    def add(self, text: str, path: Path, severity: Severity, hint: str = "") -> None:
        start = self.strict_prefix if severity is Severity.STRICT else self.prefix
        where = (*self.base, *path)
        self.found.append(
            Problem(StartStage.LOAD, start + text, where, hint, severity, self.nested)
        )


def version_and_kind(document: Any) -> tuple[str, str]:
    """ApiVersion and kind in any letter case; raises ValueError if they cannot be read."""
    if document is None:
        return "", ""
    if not isinstance(document, Mapping):
        raise ValueError(  # noqa: TRY004 - one exception for every unreadable head
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{kind_of(document)} into Go value of type {_META}"
        )
    found = {"apiVersion": "", "kind": ""}
    fields = {name.lower(): name for name in found}
    for key, value in _pairs(document):
        name = fields.get(key.lower())
        if name and value is not None:
            if not isinstance(value, str):
                raise ValueError(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal "
                    f"{kind_of(value)} into Go struct field .{name} of type string"
                )
            found[name] = value
    return found["apiVersion"], found["kind"]


def _head(document: Any, faults: _Faults) -> tuple[str, str]:
    """ApiVersion and kind; what is wrong with them is added to the faults."""
    try:
        version, kind = version_and_kind(document)
    except ValueError as error:
        faults.add(str(error), (), Severity.ABORT)
        return "", ""
    if version.count("/") > 1:
        faults.add(f"unexpected GroupVersion string: {version}", ("apiVersion",), Severity.ABORT)
    return version, kind


def unregistered(version: str, kind: str) -> str:
    group, _, name = version.rpartition("/")
    version = version if group else name
    return f"no kind {quoted(kind)} is registered for version {quoted(version)} in scheme {SCHEME}"


def missing(name: str, source: str) -> str:
    return f"Object '{name}' is missing in '{source}'"


def decode(document: Any, source: str) -> tuple[dict[str, Any], list[Problem]]:
    """Check a whole v1 document. `source` is its text, which upstream quotes if the kind is
    missing.

    The returned mapping is usable only if there are no problems.
    """
    faults = _Faults()
    version, kind = _head(document, faults)
    for name, value in (("Kind", kind), ("apiVersion", version.rpartition("/")[2])):
        if not value and not faults.found:
            faults.add(missing(name, source), (), Severity.ABORT)
    if faults.found:
        return {}, faults.found
    if version == INTERNAL_VERSION and kind == KIND:
        # The internal version has no file format: all other fields are unknown.
        _record(document, ConfigDocument, (), "", faults)
        return {}, faults.found
    if version != API_VERSION or kind not in KINDS:
        hint = "" if kind in KINDS else did_you_mean(kind, [KIND])
        if is_legacy(document):
            hint = "an old form; `asched config migrate FILE` writes it as v1"
        elif version.startswith(f"{API_GROUP}/") and version != API_VERSION:
            hint = f"write it as {API_VERSION}; {', '.join(VERSIONS)} are read, too"
        faults.add(unregistered(version, kind), ("apiVersion",), Severity.ABORT, hint)
        return {}, faults.found
    checked = _record(document, KINDS[kind], (), "", faults)
    problems = faults.found
    if kind == KIND:
        problems += _nested(checked)
    elif not problems:
        text = f"couldn't decode as {KIND}, got {version}, Kind={kind}: "
        problems.append(Problem(StartStage.LOAD, text, ("kind",), severity=Severity.ABORT))
    return checked, problems


def _nested(configuration: Mapping[str, Any]) -> list[Problem]:
    """Decode the args of every known plugin in place; args of other plugins are left unchanged."""
    problems: list[Problem] = []
    for i, profile in enumerate(configuration.get("profiles") or ()):
        for j, entry in enumerate((profile or {}).get("pluginConfig") or ()):
            name = (entry or {}).get("name") or ""
            if name in ARGS_TYPES:
                entry["args"], found = decode_args(name, entry.get("args"), i, j)
                problems += found
    return problems


def decode_args(
    plugin: str, given: Any, profile: int, place: int
) -> tuple[dict[str, Any], list[Problem]]:
    """Check the args of one in-tree plugin, typed or not."""
    where = f"decoding .profiles[{profile}].pluginConfig[{place}]: "
    path: Path = ("profiles", profile, "pluginConfig", place, "args")
    decoding = f"decoding args for plugin {plugin}: "
    strict = f"{where}{STRICT_PREFIX}{decoding}{STRICT_PREFIX}"
    faults = _Faults(path, where + decoding, strict, nested=True)
    expected = kind_of_args(plugin)
    version, kind = _head(given, faults)
    if faults.found:
        return {}, faults.found
    kind = kind or expected
    group, _, number = version.rpartition("/")
    if not number:
        if group not in ("", API_GROUP):
            faults.add(missing("apiVersion", go_json(given)), ("apiVersion",), Severity.ABORT)
            return {}, faults.found
        version = API_VERSION
    if version != API_VERSION or kind not in KINDS:
        hint = did_you_mean(kind, [expected]) if version == API_VERSION else ""
        faults.add(unregistered(version, kind), ("kind",), Severity.ABORT, hint)
        return {}, faults.found
    checked = _record(given or {}, KINDS[kind], (), "", faults)
    if kind != expected and not any(p.severity for p in faults.found):
        text = (
            f"{where}args for plugin {plugin} were not of type {expected}.{API_GROUP}, "
            f"got {kind}.{API_GROUP}"
        )
        at = (*path, "kind")
        faults.found.append(
            Problem(StartStage.LOAD, text, at, severity=Severity.ABORT, nested=True)
        )
    checked.pop("apiVersion", None)
    checked.pop("kind", None)
    return checked, faults.found


def _record(
    value: Mapping[str, Any],
    record: type[ConfigRecord],
    path: Path,
    dotted: str,
    faults: _Faults,
) -> dict[str, Any]:
    allowed = allowed_fields(record)
    checked: dict[str, Any] = {}
    seen: set[str] = set()
    for key, item in _pairs(value):
        item_path = (*path, key)
        field = allowed.get(key)
        if key in seen and field:
            text = f"duplicate field {quoted(path_text(item_path))}"
            faults.add(text, item_path, Severity.STRICT)
        seen.add(key)
        if field is None:
            hint = ABSENT_FIELDS.get(key) or did_you_mean(key, allowed)
            text = f"unknown field {quoted(path_text(item_path))}"
            faults.add(text, item_path, Severity.STRICT, hint)
            continue
        if item is None and field.type is not Scalar.DURATION:
            continue
        inner = ".".join(part for part in (dotted, field.embedded, key) if part)
        at = record_name(record), inner
        checked[key] = _value(item, field.type, _Place(item_path, at, faults))
    return checked


class _Place(NamedTuple):
    """Where a value is: its path; the struct and the dotted path in Go's messages; who collects its
    faults.
    """

    path: Path
    at: tuple[str, str]
    faults: _Faults

    def item(self, key: str | int) -> "_Place":
        return self._replace(path=(*self.path, key))


def _value(value: Any, declared: Type, place: _Place) -> Any:
    if isinstance(declared, ListOf):
        if not isinstance(value, list):
            return _mismatch(value, declared, place, [])
        return [
            None
            if item is None and declared.item is not Scalar.STRING
            else _value("" if item is None else item, declared.item, place.item(i))
            for i, item in enumerate(value)
        ]
    if isinstance(declared, Scalar):
        return _scalar(value, declared, place)
    if not isinstance(value, Mapping):
        return _mismatch(value, declared, place, {})
    if isinstance(declared, type):
        return _record(value, declared, place.path, place.at[1], place.faults)
    return {
        key: _value("" if item is None else item, declared.item, place.item(key))
        for key, item in value.items()
    }


def _scalar(value: Any, declared: Scalar, place: _Place) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match declared:
        case Scalar.ANY:
            return value
        case Scalar.DURATION | Scalar.OPTIONAL_DURATION:
            return _duration(value, place)
        case Scalar.BYTES:
            return _bytes(value, declared, place)
        case Scalar.BOOL:
            is_right = isinstance(value, bool)
        case Scalar.INT32 | Scalar.INT64:
            limit = INT_LIMITS[declared]
            is_right = is_number and isinstance(value, int) and -limit <= value < limit
        case Scalar.FLOAT32:  # an infinite value exceeded float64 already
            is_right = is_number and math.isfinite(single(value))
        case _:
            is_right = isinstance(value, str)
    return value if is_right else _mismatch(value, declared, place)


def _duration(value: Any, place: _Place) -> Any:
    if value is not None and not isinstance(value, str):
        return _mismatch(value, Scalar.STRING, place, severity=Severity.ABORT, hint=DURATION_HINT)
    try:
        return duration.parse(value or "")
    except ValueError as error:
        place.faults.add(str(error), place.path, Severity.ABORT, DURATION_HINT)
        return 0


def _bytes(value: Any, declared: Scalar, place: _Place) -> Any:
    if not isinstance(value, str):
        return _mismatch(value, declared, place)
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        message = f"illegal base64 data at input byte {_first_fault(text)}"
        place.faults.add(message, place.path, Severity.SAVED)
    return text


def _is_duration(text: str) -> bool:
    try:
        return bool(duration.parse(text))
    except ValueError:
        return False


def _first_fault(text: str) -> int:
    """The byte at which Go's base64 decoder stops: an invalid one, or the end of an incomplete
    group.
    """
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for place, letter in enumerate(text):
        if letter not in alphabet:
            return place
    return len(text) - len(text) % 4


def _mismatch(
    value: Any,
    declared: Type,
    place: _Place,
    instead: Any = None,
    severity: Severity = Severity.SAVED,
    hint: str = "",
) -> Any:
    """Add the fault; Go shows a number that does not fit a number type, and hides one for any other
    type.
    """
    kind, struct = kind_of(value), ".".join(place.at)
    shown = f"{kind} {json.dumps(value)}" if kind == "number" and declared in _NUMBERS else kind
    text = f"json: cannot unmarshal {shown} into Go struct field {struct} of type "
    hint = hint or _form_hint(value, declared)
    place.faults.add(text + type_name(declared), place.path, severity, hint)
    return instead


def _form_hint(value: Any, declared: Type) -> str:
    """How to write a value of the declared type. YAML's plain words are surprising: `on` is a
    boolean, `8` a number.
    """
    if isinstance(declared, ListOf) and isinstance(value, Mapping):
        names = ", such as `- schedulerName: NAME`" if declared.item is KubeSchedulerProfile else ""
        return f"write a list, each entry of which begins with `- `{names}"
    if not isinstance(declared, Scalar | ListOf) and isinstance(value, list):
        return "write an object, `name: value`, without `- `"
    if declared in _NUMBERS and isinstance(value, str) and _is_duration(value):
        return "write a whole number of seconds without a unit, such as 1"
    is_text = isinstance(declared, Scalar) and declared.is_text
    if is_text and isinstance(value, bool | int | float):
        return f"put it in quotes: as it stands it is a {kind_of(value)}"
    is_word = isinstance(value, str) and not isinstance(value_of(value), str)
    if is_word and (declared is Scalar.BOOL or declared in _NUMBERS):
        return "write it without quotes"
    return ""
