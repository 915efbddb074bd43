"""Decode external data, with a single kind of error.

Decoders raise more exceptions than documented: msgspec and json a RecursionError for deeply nested
text, msgspec a UnicodeDecodeError, PyYAML KeyError, IndexError and AttributeError for odd tags.
`parse` converts all of them to one error. The client's decoders read bytes (`kube/parsing.py`);
`decode` converts a mapping to a record, for recordings, tests and answers that are parsed already.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from asched.core.model.meta import Record

R = TypeVar("R", bound=Record)
S = TypeVar("S")
T = TypeVar("T")


class MalformedError(ValueError):
    """Text that cannot be decoded; the message says why, in one line."""


class MalformedObjectError(MalformedError):
    """An object whose fields have impossible types; the message says which field and why."""


def parse(decoder: Callable[[S], T], source: S) -> T:
    """Decode a source. Raises MalformedError for any exception of the decoder."""
    try:
        return decoder(source)
    except MemoryError:
        raise
    except Exception as error:
        raise MalformedError(_reason_of(error)) from error


def _reason_of(error: Exception) -> str:
    """Why a decoder failed, in one line."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return " ".join(str(error).split()) or type(error).__name__


def decode(record: type[R], mapping: Mapping[str, Any]) -> R:
    """Convert a parsed JSON object. Raises MalformedObjectError."""
    try:
        return parse(lambda value: msgspec.convert(value, record), mapping)
    except MalformedError as error:
        metadata = mapping.get("metadata") if isinstance(mapping, Mapping) else None
        name = metadata.get("name", "?") if isinstance(metadata, Mapping) else "?"
        raise MalformedObjectError(f"{record.__name__} {name!r}: {error}") from error
