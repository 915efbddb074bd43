"""The history: what happened to each pod, step by step, in bounded memory. `explain` and the logs
read it.

A line is a time, a word from `Step` and the details as they were at hand; texts are made when
somebody reads. Lines stand in a ring as plain tuples, which the garbage collector learns to leave
alone, with their steps beside them, which it would not. Each points at the one before it that tells
of the same pod: that is looked up for many at once, or when somebody reads, and not for each as it
comes.

Bounds  LINES_MAX lines and BYTES_MAX bytes of details (the oldest go), TOLD_MAX lines of one pod;
        whoever asks for the newest of a kind goes back NEWEST_WITHIN lines; LINK_EVERY lines are
        not linked yet.
"""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

#: The last 100,000 attempts with room to spare: most leave one line or two. 40 bytes each, beside
#: the pod's name and the details.
LINES_MAX: Final = 1 << 18
#: Of details: a guess at what an operator would give for looking back, and 100,000 attempts of
#: pods that ten plugins score.
BYTES_MAX: Final = 96 << 20
#: A pod that is tried for days would make reading it slow.
TOLD_MAX: Final = 1_000
#: An attempt leaves four lines at most.
NEWEST_WITHIN: Final = 8
#: Some 0.3 ms. One by one it takes twice that.
LINK_EVERY: Final = 1_024

#: (the pod's key, seconds, attempt, details, bytes of the details)
_Kept = tuple[str, float, int, Any, int]
_GONE: Final[_Kept] = ("", 0.0, 0, None, 0)


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
        self._lines: list[_Kept] = []
        self._steps: list[Step] = []
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
    ) -> None:
        """`size_bytes` of details that are more than a few words, about."""
        number = self._end
        line = key, at_s, attempt, details, size_bytes
        if number < self._lines_max:
            self._lines.append(line)
            self._steps.append(step)
        else:
            if number - self._start == self._lines_max:
                self._drop_oldest()
            slot = number % self._lines_max
            self._lines[slot] = line
            self._steps[slot] = step
        self._end = number + 1
        if size_bytes:
            self._bytes += size_bytes
            while self._bytes > self._bytes_max and self._start < number:
                self._drop_oldest()
        if number - self._unlinked >= LINK_EVERY:
            self._link()

    def _link(self) -> None:
        """Each line to the one before it."""
        lines, before, last, bound = self._lines, self._before, self._last, self._lines_max
        for number in range(self._unlinked, self._end):
            slot = number % bound
            key = lines[slot][0]
            if slot == len(before):
                before.append(last.get(key, -1))
            else:
                before[slot] = last.get(key, -1)
            last[key] = number
        self._unlinked = self._end

    def _drop_oldest(self) -> None:
        if self._start == self._unlinked:
            self._link()
        slot = self._start % self._lines_max
        key, *_, size_bytes = self._lines[slot]
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
            found.append(self._line(number))
            number = self._before[number % self._lines_max]
        return tuple(reversed(found))

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
            if self._steps[slot] in steps:
                return self._line(number)
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, Line]]:
        """(pod, line) of the last so many, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            yield self._lines[number % self._lines_max][0], self._line(number)

    def _line(self, number: int) -> Line:
        slot = number % self._lines_max
        _, at_s, attempt, details, _ = self._lines[slot]
        return Line(at_s, attempt, self._steps[slot], details)
