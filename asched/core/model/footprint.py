"""Memory of a value: an upper estimate, for caches that are bounded in bytes."""

from sys import getsizeof
from types import NoneType
from typing import Any

import msgspec
from msgspec.structs import astuple


def footprint(value: Any) -> int:
    """Bytes of a value and of everything it refers to; shared parts count each time."""
    size_bytes, parts = 0, [value]
    for part in parts:  # grows in the loop
        kind = part.__class__
        if kind is NoneType or kind is bool:
            continue
        size_bytes += getsizeof(part)
        if kind is str or kind is int:  # most parts
            continue
        if kind is tuple or kind is list or kind is set or kind is frozenset:
            parts += part
        elif kind is dict:
            parts += part
            parts += part.values()
        elif isinstance(part, msgspec.Struct):
            parts += astuple(part)
        elif isinstance(part, msgspec.Raw):
            size_bytes += len(memoryview(part))
        elif isinstance(part, tuple):  # named
            parts += part
    return size_bytes
