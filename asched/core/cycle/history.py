"""The history: what happened to each pod, step by step, in bounded memory. `explain` and the logs
read it.

A line is a tuple of a time, a word from `Step` and the details as they were at hand; texts are made
when somebody reads.

Bounds  LINES_MAX lines a pod (the oldest go), PODS_MAX pods (those untouched for longest go).
"""

from collections import OrderedDict, deque
from enum import Enum
from typing import Any, Final, NamedTuple

#: About 100 bytes a line: 20,000 pods with 3 lines each are 6 MB, full ones 50 MB. A guess at what
#: an operator looks back at.
LINES_MAX: Final = 24
PODS_MAX: Final = 20_000


class Step(Enum):
    """What a line tells."""

    NODE = "node chosen"
    REJECTED = "no node"
    ERROR = "error"
    NOMINATED = "nominated"
    WAITING = "waiting on permit"
    UNKNOWN = "binding's outcome unknown"
    BOUND = "bound"
    FAILED = "binding failed"


class Line(NamedTuple):
    at_s: float
    attempt: int
    step: Step
    details: Any


class Histories:
    """All histories by `namespace/name`."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Line]] = OrderedDict()

    def tell(self, key: str, at_s: float, attempt: int, step: Step, details: Any = None) -> None:
        lines = self._lines.get(key)
        if lines is None:
            lines = self._lines[key] = deque(maxlen=LINES_MAX)
            if len(self._lines) > PODS_MAX:
                self._lines.popitem(last=False)
        elif len(self._lines) == PODS_MAX:  # order matters only where something has to go
            self._lines.move_to_end(key)
        lines.append(Line(at_s, attempt, step, details))

    def of(self, key: str) -> tuple[Line, ...]:
        """The lines of a pod, oldest first; empty if nothing is remembered."""
        return tuple(self._lines.get(key, ()))
