"""What audits found: each difference, and how each part of the audit ended last.

Bounds  KEPT_MAX differences, the newest; a line for each part of the audit.
"""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.model.timestamp import rfc3339

#: As many as somebody may want to read.
KEPT_MAX: Final = 1000


class What(StrEnum):
    """How what is known of an object differed from what the API server holds."""

    ADDITION = "missed addition"
    CHANGE = "missed change"
    DELETION = "missed deletion"
    QUEUE = "wrong place in the queue"
    COUNT = "wrong count"


class Difference(NamedTuple):
    """One object, by its kind's plural and its key. `known` and `found` say what was known, and
    what is so; `obj` is the object as it is, for whoever tells it at once.
    """

    resource: str
    key: str
    what: What
    known: str
    found: str
    obj: Any = None

    def told(self) -> dict[str, Any]:
        told = {**self._asdict(), "what": self.what.value}
        del told["obj"]
        return told


class Ended(msgspec.Struct):
    """How a part of the audit ended last: when (seconds since 1970, by a clock that is not set),
    how many objects it looked at, and what kept it from looking at all of them.
    """

    at_s: float
    compared: int = 0
    undecided: int = 0
    error: str = ""


class Report(msgspec.Struct):
    """What is known of audits so far."""

    ended: dict[str, Ended] = msgspec.field(default_factory=dict)
    differences: deque[tuple[float, Difference]] = msgspec.field(
        default_factory=lambda: deque(maxlen=KEPT_MAX)
    )
    found: int = 0

    def told(self) -> Mapping[str, Any]:
        """As JSON has it; differences in the order in which they were found."""
        return {
            "parts": {
                name: {
                    "at": rfc3339(ended.at_s),
                    "compared": ended.compared,
                    "undecided": ended.undecided,
                    "error": ended.error,
                }
                for name, ended in self.ended.items()
            },
            "found": self.found,
            "differences": [
                {"at": rfc3339(at_s), **difference.told()} for at_s, difference in self.differences
            ],
        }
