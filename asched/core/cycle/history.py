"""The history: what happened to each pod, step by step, in bounded memory. `explain` and the logs
read it.

A line is a time, a word from `Step` and the details as they were at hand; texts are made when
somebody reads. Lines stand in a ring, column by column, and each points at the one before it that
tells of the same pod: so many lines are no objects that the garbage collector would walk through.

Bounds  LINES_MAX lines and BYTES_MAX bytes of details (the oldest go), TOLD_MAX lines of one pod;
        whoever asks for the newest of a kind goes back NEWEST_WITHIN lines.
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
        #: the line that comes next, and the oldest that is kept; slots are these modulo the bound
        self._end = self._start = 0
        self._bytes = 0
        self._last: dict[str, int] = {}
        self._keys: list[str] = []
        self._at_s: list[float] = []
        self._attempts: list[int] = []
        self._steps: list[Step] = []
        self._details: list[Any] = []
        self._sizes: list[int] = []
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
        number, last = self._end, self._last
        before = last.get(key, -1)
        if number < self._lines_max:
            self._keys.append(key)
            self._at_s.append(at_s)
            self._attempts.append(attempt)
            self._steps.append(step)
            self._details.append(details)
            self._sizes.append(size_bytes)
            self._before.append(before)
        else:
            if number - self._start == self._lines_max:
                self._drop_oldest()
            slot = number % self._lines_max
            self._keys[slot] = key
            self._at_s[slot] = at_s
            self._attempts[slot] = attempt
            self._steps[slot] = step
            self._details[slot] = details
            self._sizes[slot] = size_bytes
            self._before[slot] = before
        last[key] = number
        self._end = number + 1
        if size_bytes:
            self._bytes += size_bytes
            while self._bytes > self._bytes_max and self._start < number:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        slot = self._start % self._lines_max
        key = self._keys[slot]
        if self._last.get(key) == self._start:
            del self._last[key]
        self._keys[slot], self._details[slot] = "", None
        self._bytes -= self._sizes[slot]
        self._start += 1

    def of(self, key: str) -> tuple[Line, ...]:
        """The lines of a pod, oldest first, TOLD_MAX at most; empty if nothing is remembered."""
        found: list[Line] = []
        number = self._last.get(key, -1)
        while number >= self._start and len(found) < TOLD_MAX:
            slot = number % self._lines_max
            at_s, attempt, step = self._at_s[slot], self._attempts[slot], self._steps[slot]
            found.append(Line(at_s, attempt, step, self._details[slot]))
            number = self._before[slot]
        return tuple(reversed(found))

    def newest(self, key: str, steps: Collection[Step]) -> Line | None:
        """The newest line of a pod that tells of one of these, of its last NEWEST_WITHIN; None if
        there is none.
        """
        number = self._last.get(key, -1)
        for _ in range(NEWEST_WITHIN):
            if number < self._start:
                return None
            slot = number % self._lines_max
            if self._steps[slot] in steps:
                at_s, attempt, step = self._at_s[slot], self._attempts[slot], self._steps[slot]
                return Line(at_s, attempt, step, self._details[slot])
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, Line]]:
        """(pod, line) of the last so many, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            slot = number % self._lines_max
            at_s, attempt, step = self._at_s[slot], self._attempts[slot], self._steps[slot]
            yield self._keys[slot], Line(at_s, attempt, step, self._details[slot])
