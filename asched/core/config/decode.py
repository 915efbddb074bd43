"""Strict decoding: a plain mapping to a mapping of checked types, or every error with its place.

Rules   unknown fields are rejected, in the document and in args of known plugins; args of other
        plugins pass unchanged; durations become whole nanoseconds, null fields are dropped.
        msgspec checks a single value; the fields are walked here, because msgspec stops at the
        first error.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from asched.core.config import duration
from asched.core.config.args import ARGS_TYPES, kind_of_args
from asched.core.config.fields import (
    TYPE_META,
    ConfigRecord,
    ListOf,
    MapOf,
    Scalar,
    Type,
    allowed_fields,
)
from asched.core.config.legacy.old_versions import VERSIONS, is_legacy
from asched.core.config.problem import Path, Problem, did_you_mean, path_text, quoted
from asched.core.config.scalars import value_of
from asched.core.config.v1 import (
    ABSENT_FIELDS,
    API_GROUP,
    API_VERSION,
    KIND,
    KINDS,
    KubeSchedulerProfile,
)
from asched.core.model.quantity import INT64_MAX, INT64_MIN

DURATION_HINT: Final = "write a number and a unit, such as 15s"
QUOTES: Final = "put it in quotes"
#: The first number that a 32-bit float rounds to infinity.
_FLOAT32_END: Final = float(2**128 - 2**103)
_NUMBERS: Final = (Scalar.INT32, Scalar.INT64, Scalar.FLOAT32)
#: What msgspec checks a value of each type against, and the words for it.
_FORMS: Final[Mapping[Scalar, tuple[Any, str]]] = {
    Scalar.ANY: (Any, ""),
    Scalar.STRING: (str, "a string"),
    Scalar.BOOL: (bool, "true or false"),
    Scalar.INT32: (
        Annotated[int, Meta(ge=-(2**31), lt=2**31)],
        f"a whole number from {-(2**31)} to {2**31 - 1}",
    ),
    Scalar.INT64: (Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)], "a whole number of 64 bits"),
    Scalar.FLOAT32: (
        Annotated[float, Meta(gt=-_FLOAT32_END, lt=_FLOAT32_END)],
        "a number of 32 bits",
    ),
    Scalar.BYTES: (bytes, "base64"),
}
#: Versions of the args of a plugin that mean API_VERSION.
_ARGS_VERSIONS: Final = ("", "/", f"{API_GROUP}/", API_VERSION)


class Repeating(dict[str, Any]):
    """A JSON object with a duplicate key: the last value counts, all of `pairs` are checked."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = tuple(pairs)


def _pairs(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeating) else value.items()


def decode(document: Any) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Check a whole v1 document. The mapping is None if a value has a wrong type, so that the
    checks of later stages are impossible.
    """
    decoder = _Decoder()
    version, kind = decoder.head(document, ())
    if decoder.is_usable and not (version and kind):
        missing = "kind" if version else "apiVersion"
        wanted = f"begin the file with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
        decoder.refuse((), f"{missing} is missing", wanted)
    elif decoder.is_usable and (version, kind) != (API_VERSION, KIND):
        text = f"{kind} of {version} is not a configuration that asched reads"
        at = "kind" if version == API_VERSION else "apiVersion"
        decoder.refuse((at,), text, _other_kind(document, version, kind))
    if not decoder.is_usable:
        return None, decoder.problems
    checked = decoder.record(document, KINDS[KIND], ())
    for i, profile in enumerate(checked.get("profiles") or ()):
        for j, entry in enumerate((profile or {}).get("pluginConfig") or ()):
            name = (entry or {}).get("name") or ""
            if name in ARGS_TYPES:
                path = ("profiles", i, "pluginConfig", j, "args")
                entry["args"] = decoder.args(name, entry.get("args"), path)
    return (checked if decoder.is_usable else None), decoder.problems


def _other_kind(document: Any, version: str, kind: str) -> str:
    if is_legacy(document):
        return "an old form; `asched config migrate FILE` writes it as v1"
    if version.startswith(f"{API_GROUP}/") and version != API_VERSION:
        return f"write it as {API_VERSION}; {', '.join(VERSIONS)} are read, too"
    return did_you_mean(kind, [KIND]) if kind != KIND else ""


class _Decoder:
    """Checks the parts of one document and collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        #: Whether every value has the type of its field.
        self.is_usable = True

    def refuse(self, path: Path, text: str, hint: str = "") -> None:
        self.problems.append(Problem(text, path, hint))
        self.is_usable = False

    def head(self, given: Any, path: Path) -> tuple[str, str]:
        """Version and kind, empty if they are not given."""
        if given is not None and not isinstance(given, Mapping):
            self._mismatch(given, "an object", path)
            return "", ""
        found = [(given or {}).get(name) for name in TYPE_META]
        for name, value in zip(TYPE_META, found, strict=True):
            if value is not None and not isinstance(value, str):
                self._mismatch(value, "a string", (*path, name), QUOTES)
        version, kind = (value if isinstance(value, str) else "" for value in found)
        return version, kind

    def args(self, plugin: str, given: Any, path: Path) -> dict[str, Any]:
        """The args of one in-tree plugin, whose version and kind are optional."""
        expected, before = kind_of_args(plugin), len(self.problems)
        version, kind = self.head(given, path)
        if version not in _ARGS_VERSIONS:
            text = f"{path_text(path)}: version {quoted(version)} is not supported"
            self.refuse((*path, "apiVersion"), text, f"write {API_VERSION}, or nothing")
        elif kind not in ("", expected):
            text = f"{path_text(path)}: {quoted(kind)} is not the kind of the args of {plugin}"
            self.refuse((*path, "kind"), text, f"write {expected}, or nothing")
        if len(self.problems) > before:
            return {}
        checked = self.record(given or {}, ARGS_TYPES[plugin], path)
        return {name: value for name, value in checked.items() if name not in TYPE_META}

    def record(
        self, value: Mapping[str, Any], record: type[ConfigRecord], path: Path
    ) -> dict[str, Any]:
        allowed = allowed_fields(record)
        checked: dict[str, Any] = {}
        seen: set[str] = set()
        for key, item in _pairs(value):
            item_path, field = (*path, key), allowed.get(key)
            if field is None:
                hint = ABSENT_FIELDS.get(key) or did_you_mean(key, allowed)
                text = f"unknown field {quoted(path_text(item_path))}"
                self.problems.append(Problem(text, item_path, hint))
                continue
            if key in seen:
                text = f"duplicate field {quoted(path_text(item_path))}"
                self.problems.append(Problem(text, item_path))
            seen.add(key)
            if item is not None or field.type is Scalar.DURATION:
                checked[key] = self._value(item, field.type, item_path)
        return checked

    def _value(self, value: Any, declared: Type, path: Path) -> Any:
        if isinstance(declared, Scalar):
            return self._scalar(value, declared, path)
        if isinstance(declared, ListOf):
            if isinstance(value, list):
                return [self._item(entry, declared, (*path, i)) for i, entry in enumerate(value)]
            is_profiles = declared.item is KubeSchedulerProfile
            example = ", such as `- schedulerName: NAME`" if is_profiles else ""
            hint = f"begin each entry with `- `{example}" if isinstance(value, Mapping) else ""
            return self._mismatch(value, "a list", path, hint)
        if not isinstance(value, Mapping):
            hint = "write `name: value`, without `- `" if isinstance(value, list) else ""
            return self._mismatch(value, "an object", path, hint)
        if isinstance(declared, type):
            return self.record(value, declared, path)
        return {key: self._item(item, declared, (*path, key)) for key, item in value.items()}

    def _item(self, value: Any, declared: ListOf | MapOf, path: Path) -> Any:
        """An entry of a list or a map; null is the zero value of its type."""
        if value is None:
            return "" if declared.item is Scalar.STRING else None
        return self._value(value, declared.item, path)

    def _scalar(self, value: Any, declared: Scalar, path: Path) -> Any:
        if declared in (Scalar.DURATION, Scalar.OPTIONAL_DURATION):
            try:
                return duration.parse(msgspec.convert(value, str))
            except ValueError:
                return self._mismatch(value, "a duration", path, DURATION_HINT)
        if declared is Scalar.BYTES and isinstance(value, str):
            value = value.replace("\n", "").replace("\r", "")
        form, wanted = _FORMS[declared]
        try:
            msgspec.convert(value, form)
        except msgspec.ValidationError:
            return self._mismatch(value, wanted, path, _form_hint(value, declared))
        return value

    def _mismatch(self, value: Any, wanted: str, path: Path, hint: str = "") -> None:
        where = f"{path_text(path)}: " if path else ""
        self.refuse(path, f"{where}must be {wanted}, not {_shown(value)}", hint)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _form_hint(value: Any, declared: Scalar) -> str:
    """How to write a value of the declared type. YAML's plain words are surprising: `on` is a
    boolean, `8` a number.
    """
    if declared is Scalar.STRING:
        return QUOTES if isinstance(value, bool | int | float) else ""
    if declared is Scalar.BYTES or not isinstance(value, str):
        return ""
    if declared in _NUMBERS and _is_duration(value):
        return "write a whole number of seconds without a unit, such as 1"
    return "" if isinstance(value_of(value), str) else "write it without quotes"


def _is_duration(text: str) -> bool:
    try:
        return bool(duration.parse(text))
    except ValueError:
        return False
