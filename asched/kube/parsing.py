"""Decode bytes of a server: lists, watch events, read-backs, discovery. What cannot be decoded is
repaired (`mending.py`) and decoded again, but in the small distribution asched-cli without NumPy.
"""

from collections.abc import Callable
from typing import TypeVar

from asched.core.model.decode import MalformedError, parse

T = TypeVar("T")


def read(decoder: Callable[[bytes], T], data: bytes) -> T:
    """Decode JSON of a server, repaired if necessary. Raises MalformedError."""
    try:
        return parse(decoder, data)
    except MalformedError:
        try:
            from asched.kube.mending import mended
        except ImportError:
            fixed = data
        else:
            fixed = mended(data)
        if fixed == data:
            raise
    return parse(decoder, fixed)
