"""From a mapping to a record: for recordings, tests and whoever has parsed JSON already.

The client's hot path decodes bytes directly (`edge/client/codec.py`); the result is the same
record.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from asched.core.model.meta import Record

R = TypeVar("R", bound=Record)


class MalformedObjectError(ValueError):
    """An object whose fields have impossible types; the message says which field and why."""


def decode(record: type[R], mapping: Mapping[str, Any]) -> R:
    """Convert a parsed JSON object. Raises MalformedObjectError."""
    try:
        return msgspec.convert(mapping, record)
    except msgspec.ValidationError as error:
        metadata = mapping.get("metadata") if isinstance(mapping, Mapping) else None
        name = metadata.get("name", "?") if isinstance(metadata, Mapping) else "?"
        raise MalformedObjectError(f"{record.__name__} {name!r}: {error}") from error
