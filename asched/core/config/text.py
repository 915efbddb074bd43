"""The effective configuration as kube-scheduler writes it: a mapping, and that mapping as YAML.

Rules   keys of YAML are in alphabetical order, lists keep theirs, and a list starts at its key's
        own column; what Go omits when empty is omitted, what it always prints is printed
        (`weight: 0`).
Source  `--write-config-to` of kube-scheduler 1.36.2, Go's json tags of the v1 types
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

from asched.core.config import duration
from asched.core.config.args import DefaultSpreadConstraint
from asched.core.config.fields import (
    ConfigDocument,
    ConfigRecord,
    DeclaredField,
    FieldMark,
    ListOf,
    Scalar,
    build,
    fields_of,
    record_name,
)
from asched.core.config.scalars import short_float, shortest_single, written
from asched.core.config.v1 import API_VERSION, LATER_POINTS, SchedulerConfiguration
from asched.core.model.quantity import UINT64_MAX

#: client-go's placeholder for a secret.
REDACTED: Final = "--- REDACTED ---"


def effective(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The mapping `--write-config-to` writes for a constructed configuration."""
    document = printed(configuration)
    later = {point for point, rule in LATER_POINTS.items() if not configuration.gates.get(rule)}
    for profile in document["profiles"]:
        sets = profile["plugins"].items()
        profile["plugins"] = {point: plugins for point, plugins in sets if point not in later}
    return document


def without_keys(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The same for pages and logs, without private keys of extenders."""
    document = effective(configuration)
    for extender in document.get("extenders", ()):
        if (extender.get("tlsConfig") or {}).get("keyData"):
            extender["tlsConfig"]["keyData"] = REDACTED
    return document


def deciding(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The same for recordings, which are replayed on other machines: without file names and
    credentials, which do not affect decisions.
    """
    document = effective(configuration)
    document["clientConnection"]["kubeconfig"] = ""
    for extender in document.get("extenders", ()):
        extender.pop("tlsConfig", None)
    return document


def printed(record: ConfigRecord) -> dict[str, Any]:
    """A record as the mapping that a file may have, with the fields that Go prints."""
    found: dict[str, Any] = {}
    if isinstance(record, ConfigDocument):
        found = {"apiVersion": API_VERSION, "kind": record_name(type(record))}
    for name, field in fields_of(type(record)).items():
        value = getattr(record, field.attribute)
        if FieldMark.PRINTED not in field.marks:
            may_be_omitted = isinstance(field.type, ListOf) or FieldMark.OMIT_EMPTY in field.marks
            if value is None or (may_be_omitted and not value):
                continue
        found[name] = _printed(value, field)
    return found


def _printed(value: Any, field: DeclaredField) -> Any:
    if isinstance(value, Mapping) and isinstance(field.type, type):
        value = build(field.type, value)
    if isinstance(value, ConfigRecord):
        return printed(value)
    if isinstance(value, tuple):
        return [printed(item) if isinstance(item, ConfigRecord) else item for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if field.type is Scalar.FLOAT32:
        short = shortest_single(value)
        return int(short) if short.is_integer() else short
    return shown(value, field)


def shown(value: Any, field: DeclaredField) -> Any:
    """A value in messages: durations as Go writes them."""
    is_duration = field.type in (Scalar.DURATION, Scalar.OPTIONAL_DURATION)
    return duration.render(value) if is_duration and value is not None else value


def internal(value: Any) -> Any:
    """A value as kube-scheduler prints its internal form in an error: Go's names, for `go_json`."""
    if isinstance(value, DefaultSpreadConstraint):  # a type of the API, which has one form
        return printed(value)
    if isinstance(value, tuple):
        return [internal(item) for item in value]
    if not isinstance(value, ConfigRecord):
        return value
    found: dict[str, Any] = {}
    for name, field in fields_of(type(value)).items():
        own = shown(getattr(value, field.attribute), field)
        is_missing = own == () and not field.is_nullable
        found[f"{name[0].upper()}{name[1:]}"] = None if is_missing else internal(own)
    return found


def to_yaml(document: Mapping[str, Any]) -> str:
    """The mapping as YAML in kube-scheduler's layout."""
    return "\n".join(_block(document, 0)) + "\n"


def _block(value: Any, column: int) -> list[str]:
    """The lines of a mapping or list that is not empty."""
    lines: list[str] = []
    is_mapping = isinstance(value, Mapping)
    for key, item in sorted(value.items()) if is_mapping else enumerate(value):
        head = f"{' ' * column}{_scalar(key)}:" if is_mapping else f"{' ' * column}-"
        if not isinstance(item, Mapping | list | tuple) or not item:
            lines += f"{head} {_scalar(item, column + 2)}".split("\n")
        elif is_mapping:
            lines += [head, *_block(item, column + 2 * isinstance(item, Mapping))]
        else:
            first, *rest = _block(item, column + 2)
            lines += [f"{head} {first.lstrip()}", *rest]
    return lines


def _scalar(value: Any, column: int = 0) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > UINT64_MAX):
        return short_float(float(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return written(str(value), column)
