"""Memory of a value: an upper estimate, for caches that are bounded in bytes."""

from sys import getsizeof
from typing import Any

import msgspec
from msgspec.structs import astuple


def footprint(value: Any) -> int:
    """Bytes of a value and of everything it refers to; shared parts count each time."""
    size_bytes, parts = 0, [value]
    for part in parts:  # grows in the loop
        if part is None or part is True or part is False:
            continue
        size_bytes += getsizeof(part)
        kind = part.__class__
        if kind is str or kind is int:  # most parts
            continue
        if isinstance(part, msgspec.Struct):
            parts += astuple(part)
        elif isinstance(part, dict):
            parts += part
            parts += part.values()
        elif isinstance(part, list | tuple | set | frozenset):
            parts += part
        elif isinstance(part, msgspec.Raw):
            size_bytes += len(memoryview(part))
    return size_bytes
