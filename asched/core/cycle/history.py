"""The history: the steps of each pod's attempts, in bounded memory. `explain` and the logs read it.

A line is a time, a `DecisionStep` and its details; texts are made on reading. Lines are stored in a
ring that the garbage collector does not traverse, each linked to the previous line of the same pod.
A successful binding, which follows most choices of a node, is stored in the line of the choice and
read as a line of its own.

Bounds  LINES_MAX lines and BYTES_MAX bytes of content (the oldest lines go), READ_MAX lines of
        one pod; a search for the newest of a kind goes back NEWEST_WITHIN lines; LINKED_MAX
        lines are linked at a time.

Records of decisions: compact when written, converted to JSON when read.

    a node     the points that each plugin gave it, raw and weighted, at each decision; from time to
               time also the best nodes of the class of pods
    no node    the verdict of each node, one byte a node, packed; equal patterns are stored once

Between two records of the best nodes of a class mostly the nodes that received pods have changed.
The details are plain tuples, which the garbage collector stops tracking; `read` names their parts.

Bounds  BEST_MAX nodes, once in BEST_EVERY decisions of a class; the first records of classes are
        BEST_APART_S apart, since each pod may be the first of its class; PATTERNS_MAX patterns are
        compared with a new one, VERDICTS_MAX verdicts are distinguished.
"""

import zlib
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.nodes import NodeTable
from asched.core.framework.attempt import Rejection
from asched.core.framework.results.ranking import Ranking, Scorers
from asched.core.framework.runner import Decision
from asched.core.model.footprint import footprint
from asched.core.model.lru import Lru
from asched.core.queue.queued import QueuedPod

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


class StoredLine(msgspec.Struct, gc=False):
    """A stored line. `size_bytes` includes its contents. `key` is that of its pod, and empty once
    the line was dropped.
    """

    key: str
    at_s: float
    attempt: int
    size_bytes: int


class StepRecord(StoredLine, gc=False):
    step: DecisionStep
    details: Any = None


_GONE: Final = StoredLine("", 0.0, 0, 0)


class Line(NamedTuple):
    at_s: float
    attempt: int
    step: DecisionStep
    details: Any


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
            found += _lines(self._lines[number % self._lines_max])
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
            for line in _lines(self._lines[slot]):
                if line.step in steps:
                    return line
            number = self._before[slot]
        return None

    def latest(self, count: int) -> Iterator[tuple[str, Line]]:
        """Yield (pod, line) of the last `count` stored lines, newest first."""
        for number in range(self._end - 1, max(self._start, self._end - count) - 1, -1):
            kept = self._lines[number % self._lines_max]
            for line in _lines(kept):
                yield kept.key, line


def _lines(kept: StoredLine) -> tuple[Line, ...]:
    """The lines that a stored line is read as, the newest first."""
    if isinstance(kept, StepRecord):
        return (Line(kept.at_s, kept.attempt, kept.step, kept.details),)
    assert isinstance(kept, RecordedChoice)
    line = Line(kept.at_s, kept.attempt, DecisionStep.NODE, kept)
    if kept.bound_s is None:
        return (line,)
    return Line(kept.bound_s, kept.attempt, DecisionStep.BOUND, kept.node), line


BEST_MAX: Final = 5
#: Finding the best of 5,000 nodes costs some 70 µs, two thirds of a decision.
BEST_EVERY: Final = 256
BEST_APART_S: Final = 0.01
PATTERNS_MAX: Final = 64
VERDICTS_MAX: Final = 255
#: Nodes that a report names for each verdict.
NAMED_MAX: Final = 20
#: Size of a CPython object with its header.
_OBJECT_BYTES: Final = 100
_NUMBER_BYTES: Final = 24
_CHOSEN_BYTES: Final = 3 * _OBJECT_BYTES
_PACK_LEVEL: Final = 1


#: The best nodes of a class at one attempt: its number, the scorers, and (node, score, points) of
#: each, points as a `RecordedChoice` has them.
BestNodes = tuple[int, Scorers, tuple[tuple[str, int, tuple[int, ...]], ...]]


class RecordedChoice(StoredLine, gc=False):
    """A chosen node, and when the pod was bound there, if that came next. The line is its own
    `details` when it is read.

    `points`: raw and weighted points, one pair for each of `scorers`; empty if only one node was
    feasible.
    """

    node: str
    bound_s: float | None
    score: int | None
    feasible: int
    evaluated: int
    woken_by: str
    scorers: Scorers
    points: tuple[int, ...]
    best: BestNodes | None

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        report: dict[str, Any] = {
            "node": self.node,
            "score": self.score,
            "feasible": self.feasible,
            "evaluated": self.evaluated,
            "wokenBy": self.woken_by,
        }
        if self.scorers:
            report["scores"] = scores_as_json(self.scorers, self.points)
        if self.best is not None:
            report["bestAsOf"], scorers, nodes = self.best
            report["best"] = [
                {"node": node, "score": score, "scores": scores_as_json(scorers, points)}
                for node, score, points in nodes
            ]
        return report


def scores_as_json(
    plugins: Sequence[tuple[str, int]], points: Sequence[int]
) -> list[dict[str, Any]]:
    """Points of `Ranking.points_of` as JSON."""
    return [
        {
            "plugin": name,
            "raw": points[2 * at],
            "normalized": points[2 * at + 1] // weight,
            "weight": weight,
            "weighted": points[2 * at + 1],
        }
        for at, (name, weight) in enumerate(plugins)
    ]


def _best(ranking: Ranking, attempt: int, nodes: NodeTable) -> BestNodes | None:
    """None if the ranking covers only part of the nodes."""
    if not ranking.is_whole:
        return None
    best = []
    for row, total in ranking.peaks.first(BEST_MAX):
        node = nodes.node_at[row]
        if node is not None:
            scorers, points = ranking.points_of(row)
            best.append((node.name, total, points))
    return (attempt, scorers, tuple(best)) if best else None


class Nominated(NamedTuple):
    """A nominated node, and (key, priority) of each victim, the most important first. The order of
    preference among nodes: the fewest victims that a PodDisruptionBudget protects, the lowest
    highest priority of a victim, the lowest sum of priorities, the fewest victims.
    """

    node: str
    victims: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        victims = [{"pod": key, "priority": priority} for key, priority in self.victims]
        return {"node": self.node, "victims": victims}


# --- no node -------------------------------------------------------------------------------------


class NodePattern:
    """The verdict of each node: one byte a row, 0 for none, packed."""

    __slots__ = ("names", "packed")

    def __init__(self, packed: bytes, names: tuple[str, ...]) -> None:
        self.packed = packed
        self.names = names

    def nodes(self) -> list[list[str]]:
        """The names of NAMED_MAX nodes for each verdict, in the order of verdicts."""
        rows = np.frombuffer(zlib.decompress(self.packed), dtype=np.uint8)
        count = int(rows.max(initial=0))
        return [
            [self.names[row] for row in np.flatnonzero(rows == verdict)[:NAMED_MAX].tolist()]
            for verdict in range(1, count + 1)
        ]


class RecordedRejection(NamedTuple):
    """`summary` as `Rejection.summary` has it; `pattern`: the nodes of each of its entries."""

    summary: tuple[tuple[str, str, str, int], ...]
    woken_by: str
    pattern: NodePattern

    def as_json(self) -> dict[str, Any]:
        """As JSON, with NAMED_MAX nodes for each verdict."""
        nodes = self.pattern.nodes()
        return {
            "wokenBy": self.woken_by,
            "reasons": [
                {
                    "plugin": plugin,
                    "code": code,
                    "reason": reason,
                    "nodes": count,
                    "named": nodes[at] if at < len(nodes) else [],
                }
                for at, (plugin, code, reason, count) in enumerate(self.summary)
            ],
        }


class DecisionRecorder:
    """Makes records of choices and rejections."""

    def __init__(self) -> None:
        #: when the best nodes of a new class were recorded last
        self._first_s = -BEST_APART_S
        self._known: Lru[bytes, NodePattern] = Lru(PATTERNS_MAX)
        self._names: tuple[str, ...] = ()
        self._names_of = -1

    def chosen(
        self,
        decision: Decision,
        attempt: int,
        queued: QueuedPod,
        now_s: float,
        nodes: NodeTable,
    ) -> RecordedChoice:
        """Record a chosen node, before the pod is counted there.

        Later records of the class share the best nodes. Called for each pod, so it calls little.
        """
        score = decision.score
        scorers: Scorers = ()
        points: tuple[int, ...] = ()
        best: BestNodes | None = None
        size = _CHOSEN_BYTES
        if score is not None:
            ranking, row = decision.state.ranking, decision.row
            scorers, columns = ranking.reading or ranking.read()
            points = tuple([(c if type(c) is int else c.item(row)) * f for c, f in columns])
            size += _NUMBER_BYTES * len(points)
            best = ranking.best
            ranking.records = records = ranking.records + 1
            is_due = records >= BEST_EVERY
            if not is_due and best is None and now_s - self._first_s >= BEST_APART_S:
                self._first_s, is_due = now_s, True
            if is_due:
                best = ranking.best = _best(ranking, attempt, nodes)
                ranking.records = 0
                if best is not None:
                    size += (3 * _OBJECT_BYTES + _NUMBER_BYTES * len(points)) * len(best[2])
        return RecordedChoice(
            queued.key,
            now_s,
            attempt,
            size,
            decision.node,
            None,
            score,
            decision.feasible,
            decision.evaluated,
            queued.woken_by,
            scorers,
            points,
            best,
        )

    def refused(
        self, rejection: Rejection, woken_by: str, nodes: NodeTable
    ) -> tuple[tuple[Any, ...], int]:
        """(the parts of a `RecordedRejection`, how many bytes this record adds)."""
        summary = rejection.summary()
        size = 3 * _OBJECT_BYTES + footprint(summary)
        rows = np.zeros(len(rejection.live), dtype=np.uint8)
        verdicts = 0
        for _, members in rejection.groups:
            if len(members):
                verdicts = min(verdicts + 1, VERDICTS_MAX)
                rows[members] = verdicts
        for row in rejection.overrides:
            verdicts = min(verdicts + 1, VERDICTS_MAX)
            rows[row] = verdicts
        if rejection.absent_count and rejection.looked_at is not None:
            verdicts = min(verdicts + 1, VERDICTS_MAX)
            rows[np.flatnonzero(rejection.live & ~rejection.looked_at)] = verdicts
        if self._names_of != nodes.labels_moved:  # grows when a node is added or removed
            self._names_of = nodes.labels_moved
            names = tuple([node.name if node is not None else "" for node in nodes.node_at])
            if names != self._names:
                self._names = names
                self._known = Lru(PATTERNS_MAX)
                size += 8 * len(names)
        raw = rows.tobytes()
        pattern = self._known.get(raw)
        if pattern is None:
            pattern = NodePattern(zlib.compress(raw, _PACK_LEVEL), self._names)
            self._known.put(raw, pattern)
            size += len(pattern.packed) + _OBJECT_BYTES
        return (summary, woken_by, pattern), size


def read(line: Line) -> RecordedChoice | Nominated | RecordedRejection | None:
    """The details of a line with their names; None if they are plain."""
    match line.step:
        case DecisionStep.NODE:
            assert isinstance(line.details, RecordedChoice)
            return line.details
        case DecisionStep.NOMINATED:
            return Nominated(*line.details)
        case DecisionStep.REJECTED:
            return RecordedRejection(*line.details)
    return None
