"""Records of decisions: compact when written, converted to JSON when read.

    a node     the points that each plugin gave it, raw and weighted, at each decision; from time to
               time also the best nodes of the class of pods
    no node    the verdict of each node, one byte a node, packed; equal patterns are stored once

Between two records of the best nodes of a class mostly the nodes that received pods have changed.
The details are plain tuples, which the garbage collector stops tracking; `read` names their parts.

Bounds  BEST_MAX nodes, once in BEST_EVERY decisions of a class; the first records of classes are
        BEST_APART_S apart, since each pod may be the first of its class; STATES_MAX classes are
        counted, PATTERNS_MAX patterns compared with a new one, VERDICTS_MAX verdicts distinguished.
"""

import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.nodes import NodeTable
from asched.core.cycle.history import DecisionStep, HistoryEntry, StoredEntry
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.ranking import Ranking, Scorers
from asched.core.framework.runner import Decision
from asched.core.model.footprint import footprint
from asched.core.model.lru import Lru
from asched.core.queue.queued import QueuedPod

BEST_MAX: Final = 5
#: Finding the best of 5,000 nodes costs some 70 µs, two thirds of a decision.
BEST_EVERY: Final = 256
BEST_APART_S: Final = 0.01
STATES_MAX: Final = 1_024
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


class RecordedChoice(StoredEntry, gc=False):
    """A chosen node, and when the pod was bound there, if that came next. The entry is its own
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

    def entries(self) -> tuple[HistoryEntry, ...]:
        entry = HistoryEntry(self.at_s, self.attempt, DecisionStep.NODE, self)
        if self.bound_s is None:
            return (entry,)
        return HistoryEntry(self.bound_s, self.attempt, DecisionStep.BOUND, self.node), entry

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


class _BestOfClass(msgspec.Struct):
    """The best nodes of a class when they were read last, and the number of decisions since."""

    nodes: BestNodes | None = None
    decisions: int = 0


class DecisionRecords:
    """Makes records of choices and rejections."""

    def __init__(self) -> None:
        #: when the best nodes of a new class were recorded last
        self._first_s = -BEST_APART_S
        #: by the number of the class's state
        self._best: dict[int, _BestOfClass] = {}
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
            ranking = decision.state.ranking
            scorers, points = ranking.points_of(decision.row)
            size += _NUMBER_BYTES * len(points)
            known = self._best.get(decision.state.number)
            if known is None:
                known = self._best[decision.state.number] = _BestOfClass()
                if len(self._best) > STATES_MAX:
                    del self._best[next(iter(self._best))]
            known.decisions += 1
            best, is_due = known.nodes, known.decisions >= BEST_EVERY
            if not is_due and best is None and now_s - self._first_s >= BEST_APART_S:
                self._first_s, is_due = now_s, True
            if is_due:
                best = known.nodes = _best(ranking, attempt, nodes)
                known.decisions = 0
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


def read(entry: HistoryEntry) -> RecordedChoice | Nominated | RecordedRejection | None:
    """The details of an entry with their names; None if they are plain."""
    match entry.step:
        case DecisionStep.NODE:
            assert isinstance(entry.details, RecordedChoice)
            return entry.details
        case DecisionStep.NOMINATED:
            return Nominated(*entry.details)
        case DecisionStep.REJECTED:
            return RecordedRejection(*entry.details)
    return None
