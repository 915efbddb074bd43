"""Findings of audits: each difference, and the last result of each part.

Bounds  the newest KEPT_MAX differences; one entry per part of the audit.
"""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.model.timestamp import rfc3339

#: A guess at what is useful to read.
KEPT_MAX: Final = 1000


class What(StrEnum):
    """How a cached object differed from the API server."""

    ADDITION = "missed addition"
    CHANGE = "missed change"
    DELETION = "missed deletion"
    QUEUE = "wrong place in the queue"
    COUNT = "wrong count"


class Difference(NamedTuple):
    """One object, by its kind's plural and its key. `known` and `found` describe the cached and the
    real object; `obj` is the real object, for use at once.
    """

    resource: str
    key: str
    what: What
    known: str
    found: str
    obj: Any = None

    def as_json(self) -> dict[str, Any]:
        fields = {**self._asdict(), "what": self.what.value}
        del fields["obj"]
        return fields


class Ended(msgspec.Struct):
    """The last result of a part: when it ended (seconds since 1970, by a steady clock), how many
    objects were compared, and what kept it from comparing all of them.
    """

    at_s: float
    compared: int = 0
    undecided: int = 0
    error: str = ""


class Report(msgspec.Struct):
    ended: dict[str, Ended] = msgspec.field(default_factory=dict)
    differences: deque[tuple[float, Difference]] = msgspec.field(
        default_factory=lambda: deque(maxlen=KEPT_MAX)
    )
    found: int = 0

    def as_json(self) -> Mapping[str, Any]:
        """As JSON; differences in the order in which they were found."""
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
                {"at": rfc3339(at_s), **difference.as_json()}
                for at_s, difference in self.differences
            ],
        }
