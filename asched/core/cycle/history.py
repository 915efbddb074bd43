"""The history: the steps of each pod's attempts, in bounded memory. `explain` and the logs read it.

A line is a time, a `DecisionStep` and its details; texts are made on reading. Lines are stored in a
ring that the garbage collector does not traverse, each linked to the previous line of the same pod.
A successful binding, which follows most choices of a node, is stored in the line of the choice and
read as a line of its own.

Bounds  LINES_MAX lines and BYTES_MAX bytes of content (the oldest lines go), READ_MAX lines of
        one pod; a search for the newest of a kind goes back NEWEST_WITHIN lines; LINKED_MAX
        lines are linked at a time.
"""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from asched.core.model.footprint import footprint

#: More than the last 100,000 attempts: most leave one line. 40 bytes each, beside the pod's name
#: and the details.
LINES_MAX: Final = 1 << 18
#: A guess at the memory an operator accepts for the history; enough for 100,000 attempts of pods
#: that ten plugins score.
BYTES_MAX: Final = 96 << 20
#: Size of a line and of a pod's name, without their contents.
LINE_BYTES, KEY_BYTES = 100, 60
#: More lines, as of a pod that is tried for days, would make reading slow.
READ_MAX: Final = 1_000
#: An attempt leaves four lines at most.
NEWEST_WITHIN: Final = 8
#: Some 0.3 ms.
LINKED_MAX: Final = 1_024


class DecisionStep(Enum):
    """The kind of a line."""

    NODE = "node chosen"
    REJECTED = "no node"
    ERROR = "error"
    NOMINATED = "nominated"
    WAITING = "waiting on permit"
    UNKNOWN = "binding's outcome unknown"
    BOUND = "bound"
    FAILED = "binding failed"
    REFUSED = "refused"


class Line(NamedTuple):
    at_s: float
    attempt: int
    step: DecisionStep
    details: Any


class StoredLine(msgspec.Struct, gc=False):
    """A stored line. `size_bytes` includes its contents. `key` is that of its pod, and empty once
    the line was dropped.
    """

    key: str
    at_s: float
    attempt: int
    size_bytes: int

    def lines(self) -> tuple[Line, ...]:
        """The lines that it is read as, the newest first."""
        return ()


class StepRecord(StoredLine, gc=False):
    step: DecisionStep
    details: Any = None

    def lines(self) -> tuple[Line, ...]:
        return (Line(self.at_s, self.attempt, self.step, self.details),)


_GONE: Final = StoredLine("", 0.0, 0, 0)


class Histories:
    """All histories by `namespace/name`."""

    def __init__(self, lines_max: int = 0, bytes_max: int = 0) -> None:
        """0: LINES_MAX and BYTES_MAX."""
        self._lines_max = lines_max or LINES_MAX
        self._bytes_max = bytes_max or BYTES_MAX
        #: numbers of the next line, of the oldest stored line, and of the first line that is not
        #: linked; a slot is the number modulo the bound
        self._end = self._start = self._unlinked = 0
        self._bytes = 0
        self._lines: list[StoredLine] = []
        self._last: dict[str, int] = {}
        self._before: list[int] = []

    def tell(
        self,
        key: str,
        at_s: float,
        attempt: int,
        step: DecisionStep,
        details: Any = None,
        size_bytes: int = 0,
    ) -> StepRecord:
        """Add a line. `size_bytes` as in `StoredLine`; 0: computed from the details."""
        size_bytes = size_bytes or LINE_BYTES + footprint(details)
        line = StepRecord(key, at_s, attempt, size_bytes, step, details)
        self.add(line)
        return line

    def add(self, line: StoredLine) -> None:
        line.size_bytes += KEY_BYTES + len(line.key)
        number = self._end
        if number < self._lines_max:
            self._lines.append(line)
        else:
            if number - self._start == self._lines_max:
                self._drop_oldest()
            self._lines[number % self._lines_max] = line
        self._end = number + 1
        self._bytes += line.size_bytes
        while self._bytes > self._bytes_max and self._start < number:
            self._drop_oldest()

    def link(self) -> bool:
        """Link LINKED_MAX more lines to their predecessors; whether there are more. A reader links
        all remaining lines first.
        """
        lines, before, last, bound = self._lines, self._before, self._last, self._lines_max
        before += [-1] * (len(lines) - len(before))
        begin = max(self._unlinked, self._start)
        end = min(begin + LINKED_MAX, self._end)
        for number in range(begin, end):
            slot = number % bound
            key = lines[slot].key
            before[slot] = last.get(key, -1)
            last[key] = number
        self._unlinked = end
        return end < self._end

    def _link(self) -> None:
        while self.link():
            pass

    def _drop_oldest(self) -> None:
        slot = self._start % self._lines_max
        line = self._lines[slot]
        if self._last.get(line.key) == self._start:
            del self._last[line.key]
        self._lines[slot] = _GONE
        self._bytes -= line.size_bytes
        line.key = ""
        self._start += 1

    def of(self, key: str) -> tuple[Line, ...]:
        """The lines of a pod, oldest first, READ_MAX at most; empty if nothing is remembered."""
        self._link()
        found: list[Line] = []
        number = self._last.get(key, -1)
        while number >= self._start and len(found) < READ_MAX:
            found += self._lines[number % self._lines_max].lines()
            number = self._before[number % self._lines_max]
        return tuple(reversed(found[:READ_MAX]))

    def newest(self, key: str, steps: Collection[DecisionStep]) -> Line | None:
        """The newest line of one of these kinds among a pod's last NEWEST_WITHIN; None if there is
        none.
        """
        self._link()
        number = self._last.get(key, -1)
        for _ in range(NEWEST_WITHIN):
            if number < self._start:
                return None
            slot = number % self._lines_max
            for line in self._lines[slot].lines():
                if line.step in steps:
                    return line
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, Line]]:
        """Yield (pod, line) of the last `count` stored lines, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            kept = self._lines[number % self._lines_max]
            for line in kept.lines():
                yield kept.key, line
