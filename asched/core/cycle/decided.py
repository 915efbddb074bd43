"""Records of decisions: compact when written, converted to JSON when read.

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
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from asched.core.cycle.history import DecisionStep, Line, NodeChoice
from asched.core.framework.attempt import Rejection
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.results.weighted import Share, paired
from asched.core.framework.runner import Decision
from asched.core.model.footprint import footprint
from asched.core.state.nodes import NodeTable

if TYPE_CHECKING:
    from asched.core.cycle.context import Attempt, SchedulerContext

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


class Best(NamedTuple):
    """The best nodes of a class at one attempt: each with its score, and its `numbers` as a
    `RecordedChoice` has them.
    """

    attempt: int
    shares: tuple[Share, ...]
    nodes: tuple[tuple[str, int, tuple[int, ...]], ...]


class RecordedChoice(NodeChoice, gc=False):
    """`numbers`: the node's own points, to be `paired` with `shares`; empty if only one node was
    feasible.
    """

    score: int | None
    feasible: int
    evaluated: int
    woken_by: str
    shares: tuple[Share, ...]
    numbers: tuple[int, ...]
    #: the parts of a `Best`
    best: tuple[int, tuple[Share, ...], tuple[tuple[str, int, tuple[int, ...]], ...]] | None
    #: end of the cluster's journal when the node was chosen
    position: int

    @property
    def points(self) -> tuple[int, ...]:
        """Raw and weighted, one pair for each plugin."""
        return paired(self.shares, self.numbers)

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        report: dict[str, Any] = {
            "node": self.node,
            "score": self.score,
            "feasible": self.feasible,
            "evaluated": self.evaluated,
            "wokenBy": self.woken_by,
            "position": self.position,
        }
        if self.shares:
            report["scores"] = scores_as_json(_plugins(self.shares), self.points)
        if self.best is not None:
            best = Best(*self.best)
            plugins = _plugins(best.shares)
            report["bestAsOf"] = best.attempt
            report["best"] = [
                {
                    "node": node,
                    "score": score,
                    "scores": scores_as_json(plugins, paired(best.shares, numbers)),
                }
                for node, score, numbers in best.nodes
            ]
        return report


def _plugins(shares: Sequence[Share]) -> list[tuple[str, int]]:
    """(name, weight) of each plugin."""
    return [share[:2] for share in shares]


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


class FirstRecords:
    """Limits how often the best nodes of a new class are recorded."""

    __slots__ = ("_last_s",)

    def __init__(self) -> None:
        self._last_s = -BEST_APART_S

    def may_look(self, now_s: float) -> bool:
        """Whether a new class may be recorded now; True at most once in BEST_APART_S."""
        if now_s - self._last_s < BEST_APART_S:
            return False
        self._last_s = now_s
        return True


def chosen(context: "SchedulerContext", attempt: "Attempt", decision: Decision) -> RecordedChoice:
    """Record a chosen node, before the pod is counted there.

    Later records of the class share the best nodes. Called for each pod, so it calls little.
    """
    attempt.evaluated, attempt.feasible = decision.evaluated, decision.feasible
    if context.on_decision is not None:
        context.on_decision(attempt, decision)
    now_s, queued = context.now_s, attempt.queued
    score = decision.score
    shares: tuple[Share, ...] = ()
    numbers: tuple[int, ...] = ()
    best: tuple[Any, ...] | None = None
    size = _CHOSEN_BYTES
    if score is not None:
        ranking = decision.state.ranking
        if ranking.reading is None:
            shares, numbers = ranking.numbers_of(decision.row)
        else:
            shares, read_numbers = ranking.reading
            numbers = read_numbers(decision.row)
        size += _NUMBER_BYTES * len(numbers)
        best = ranking.best
        ranking.records = records = ranking.records + 1
        if records >= BEST_EVERY or (best is None and context.first_looks.may_look(now_s)):
            best = ranking.best = _best(ranking, attempt.id, context.cluster.nodes)
            ranking.records = 0
            if best is not None:
                size += (3 * _OBJECT_BYTES + _NUMBER_BYTES * len(numbers)) * len(best[2])
    return RecordedChoice(
        queued.key,
        now_s,
        attempt.id,
        size,
        decision.node,
        None,
        score,
        decision.feasible,
        decision.evaluated,
        queued.woken_by,
        shares,
        numbers,
        best,
        context.cluster.journal.end,
    )


def _best(ranking: Ranking, attempt: int, nodes: NodeTable) -> tuple[Any, ...] | None:
    """The parts of a `Best`; None if the ranking covers only part of the nodes."""
    if not ranking.is_whole:
        return None
    best = []
    for row, total in ranking.peaks.first(BEST_MAX):
        node = nodes.node_at[row]
        if node is not None:
            shares, numbers = ranking.numbers_of(row)
            best.append((node.name, total, numbers))
    return (attempt, shares, tuple(best)) if best else None


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


class RejectionRecorder:
    """Makes records of rejections."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, NodePattern] = OrderedDict()
        self._names: tuple[str, ...] = ()
        self._names_of = -1

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
                self._known.clear()
                size += 8 * len(names)
        raw = rows.tobytes()
        pattern = self._known.get(raw)
        if pattern is None:
            pattern = self._known[raw] = NodePattern(zlib.compress(raw, _PACK_LEVEL), self._names)
            size += len(pattern.packed) + _OBJECT_BYTES
            if len(self._known) > PATTERNS_MAX:
                self._known.popitem(last=False)
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
