"""Which pods are vast: whatever is made of one takes long. To find out, nothing is made."""

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final

from msgspec import Struct, structs

from asched.core.model.pod import Pod

#: Entries of lists and maps. A guess: pods that people write have a few dozens.
ENTRIES_MAX: Final = 1_000
_PLAIN: Final = frozenset((NoneType, str, int, float, bool))


def is_vast(pod: Pod) -> bool:
    """Whether its lists and maps have more than ENTRIES_MAX entries in all, at any depth."""
    left = ENTRIES_MAX
    unread: list[Any] = [pod.spec]
    if pod.metadata.labels:
        unread.append(pod.metadata.labels)
    while unread:
        value = unread.pop()
        parts: Iterable[Any]
        if isinstance(value, Struct):
            parts = structs.astuple(value)
        else:
            left -= len(value)
            if left < 0:
                return True
            parts = value.values() if isinstance(value, dict) else value
        unread += [part for part in parts if part.__class__ not in _PLAIN]
    return False
