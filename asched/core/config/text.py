"""The effective configuration as kube-scheduler writes it, as a mapping.

Rules   what Go omits when empty is omitted, what it always prints is printed (`weight: 0`).
Source  `--write-config-to` of kube-scheduler 1.36.2, Go's json tags of the v1 types
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

from asched.core.config import duration
from asched.core.config.fields import (
    ConfigDocument,
    ConfigRecord,
    DeclaredField,
    FieldMark,
    ListOf,
    Scalar,
    build,
    fields_of,
)
from asched.core.config.scalars import shortest_single
from asched.core.config.v1 import API_VERSION, LATER_POINTS, SchedulerConfiguration

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
    mapping: dict[str, Any] = {}
    if isinstance(record, ConfigDocument):
        mapping = {"apiVersion": API_VERSION, "kind": record.kind or type(record).__name__}
    for name, field in fields_of(type(record)).items():
        value = getattr(record, field.attribute)
        if FieldMark.PRINTED not in field.marks:
            may_be_omitted = isinstance(field.type, ListOf) or FieldMark.OMIT_EMPTY in field.marks
            if value is None or (may_be_omitted and not value):
                continue
        mapping[name] = _printed(value, field)
    return mapping


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
