"""The history: what happened to each pod, step by step, in bounded memory. `explain` and the logs
read it.

A line is a time, a word from `Step` and the details as they were at hand; texts are made when
somebody reads. Lines stand in a ring as plain tuples, which the garbage collector learns to leave
alone, with their steps beside them, which it would not. Each points at the one before it that tells
of the same pod: that is looked up when somebody reads. That the binding came off, which is what
follows a chosen node for the most part, is noted beside that line and read as one of its own.

Bounds  LINES_MAX lines and BYTES_MAX bytes of details (the oldest go), TOLD_MAX lines of one pod;
        whoever asks for the newest of a kind goes back NEWEST_WITHIN lines; LINKED_MAX lines are
        linked at a time.
"""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

#: The last 100,000 attempts with room to spare: most leave one line. 40 bytes each, beside the
#: pod's name and the details.
LINES_MAX: Final = 1 << 18
#: Of details: a guess at what an operator would give for looking back, and 100,000 attempts of
#: pods that ten plugins score.
BYTES_MAX: Final = 96 << 20
#: A pod that is tried for days would make reading it slow.
TOLD_MAX: Final = 1_000
#: An attempt leaves four lines at most.
NEWEST_WITHIN: Final = 8
#: Some 0.3 ms.
LINKED_MAX: Final = 1_024

#: HEAD parts (the pod's key, seconds, attempt, bytes of the details), and then the details, whose
#: parts are those of the line where a node was chosen.
Kept = tuple[Any, ...]
HEAD: Final = 4
_GONE: Final[Kept] = ("", 0.0, 0, 0, None)


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

    def __init__(self, lines_max: int = 0, bytes_max: int = 0) -> None:
        """0: LINES_MAX and BYTES_MAX."""
        self._lines_max = lines_max or LINES_MAX
        self._bytes_max = bytes_max or BYTES_MAX
        #: the line that comes next, the oldest that is kept, and the first that is not linked;
        #: slots are these modulo the bound
        self._end = self._start = self._unlinked = 0
        self._bytes = 0
        self._lines: list[Kept] = []
        self._steps: list[Step] = []
        #: of a node that was chosen: when the pod was bound there, if that came next
        self._bound_s: list[float | None] = []
        self._last: dict[str, int] = {}
        self._before: list[int] = []

    def tell(
        self,
        key: str,
        at_s: float,
        attempt: int,
        step: Step,
        details: Any = None,
        size_bytes: int = 0,
    ) -> int:
        """Its number. `size_bytes` of details that are more than a few words, about."""
        return self.add((key, at_s, attempt, size_bytes, details), step)

    def add(self, line: Kept, step: Step) -> int:
        """The same, of a line in the form in which it is kept."""
        number = self._end
        if number < self._lines_max:
            self._lines.append(line)
            self._steps.append(step)
            self._bound_s.append(None)
        else:
            if number - self._start == self._lines_max:
                self._drop_oldest()
            slot = number % self._lines_max
            self._lines[slot] = line
            self._steps[slot] = step
            self._bound_s[slot] = None
        self._end = number + 1
        size_bytes = line[3]
        if size_bytes:
            self._bytes += size_bytes
            while self._bytes > self._bytes_max and self._start < number:
                self._drop_oldest()
        return number

    def bound(self, number: int, at_s: float) -> bool:
        """Note that the binding to the node of this line came off, which is the newest of its pod;
        whether it is kept, and tells of a node.
        """
        slot = number % self._lines_max
        if number < self._start or self._steps[slot] is not Step.NODE:
            return False
        self._bound_s[slot] = at_s
        return True

    def link(self) -> bool:
        """LINKED_MAX more lines, each to the one before it; whether there are more. Whoever reads
        does all that are left, which may be as many as are kept.
        """
        lines, before, last, bound = self._lines, self._before, self._last, self._lines_max
        before += [-1] * (len(lines) - len(before))
        begin = max(self._unlinked, self._start)
        end = min(begin + LINKED_MAX, self._end)
        for number in range(begin, end):
            slot = number % bound
            key = lines[slot][0]
            before[slot] = last.get(key, -1)
            last[key] = number
        self._unlinked = end
        return end < self._end

    def _link(self) -> None:
        while self.link():
            pass

    def _drop_oldest(self) -> None:
        slot = self._start % self._lines_max
        key, _, _, size_bytes, *_ = self._lines[slot]
        if self._last.get(key) == self._start:
            del self._last[key]
        self._lines[slot] = _GONE
        self._bytes -= size_bytes
        self._start += 1

    def of(self, key: str) -> tuple[Line, ...]:
        """The lines of a pod, oldest first, TOLD_MAX at most; empty if nothing is remembered."""
        self._link()
        found: list[Line] = []
        number = self._last.get(key, -1)
        while number >= self._start and len(found) < TOLD_MAX:
            found += self._lines_at(number)
            number = self._before[number % self._lines_max]
        return tuple(reversed(found[:TOLD_MAX]))

    def newest(self, key: str, steps: Collection[Step]) -> Line | None:
        """The newest line of a pod that tells of one of these, of its last NEWEST_WITHIN; None if
        there is none.
        """
        self._link()
        number = self._last.get(key, -1)
        for _ in range(NEWEST_WITHIN):
            if number < self._start:
                return None
            slot = number % self._lines_max
            for line in self._lines_at(number):
                if line.step in steps:
                    return line
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, Line]]:
        """(pod, line) of the last so many, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            for line in self._lines_at(number):
                yield self._lines[number % self._lines_max][0], line

    def _lines_at(self, number: int) -> tuple[Line, ...]:
        """What this line tells, the newest first."""
        slot = number % self._lines_max
        kept, step, bound_s = self._lines[slot], self._steps[slot], self._bound_s[slot]
        _, at_s, attempt, _, *details = kept
        if step is not Step.NODE:
            return (Line(at_s, attempt, step, *details),)
        line = Line(at_s, attempt, step, tuple(details))
        if bound_s is None:
            return (line,)
        return Line(bound_s, attempt, Step.BOUND, details[0]), line
