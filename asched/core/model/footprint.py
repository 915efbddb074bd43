"""How much memory a value takes: an upper estimate, for stores that are bounded in bytes."""

from sys import getsizeof
from typing import Any

import msgspec
from msgspec.structs import astuple


def footprint(value: Any) -> int:
    """Bytes of a value and of all that it refers to; what several parts share counts for each."""
    found, left = 0, [value]
    while left:
        one = left.pop()
        if one is None or one is True or one is False:
            continue
        found += getsizeof(one)
        if isinstance(one, str | int | float | bytes):
            continue
        if isinstance(one, msgspec.Struct):
            left += astuple(one)
        elif isinstance(one, dict):
            left += one
            left += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            left += one
        elif isinstance(one, msgspec.Raw):
            found += len(memoryview(one))
    return found
