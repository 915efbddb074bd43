"""The score half: prefer nodes in domains with few matching pods.

Rule    raw = the rounded sum, over the constraints whose key the node has, of
        pods in its domain * ln(domains among the feasible nodes + 2) + maxSkew - 1.
        For `kubernetes.io/hostname` the pods on the node itself count, whatever the policies say,
        and every feasible node is a domain. Points are 100 * (max + min - raw) / max.
        Where the constraints are not the system's defaults, a node that lacks any of the keys is
        ignored: it counts nowhere and gets 0.
Rounding  half away from zero for the raw score, then integer division.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go
"""

import math
from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodClass
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Mask
from asched.core.plugins.pod_topology_spread.constraints import Constraints
from asched.core.plugins.pod_topology_spread.domains import DomainsMemory
from asched.core.plugins.pod_topology_spread.sides import Side

F64 = npt.NDArray[np.float64]

#: The raw score of an ignored node; all others are at least 0.
IGNORED: Final = -1
SCORE_MAX: Final = 100


class Weighted(NamedTuple):
    """Result of PreScore: the weight of each soft constraint for this set of nodes."""

    side: "SoftSide"
    weights: tuple[float, ...]


class SoftSide(Side):
    """The soft constraints of a class of pods."""

    def __init__(
        self,
        cluster: Cluster,
        memory: DomainsMemory,
        cls: PodClass,
        constraints: Constraints,
        *,
        is_strict: bool,
    ) -> None:
        self._keys = frozenset(constraint.topology_key for constraint in constraints)
        super().__init__(
            cluster, memory, cls, constraints, self._keys if is_strict else frozenset()
        )
        self.is_strict = is_strict
        self._weighted = Weighted(self, ())

    def stamp(self) -> Hashable:
        """The set of nodes. `moved` has the rows in domains with changed counts."""
        layout, rows = self._memory.layout(), self.moved_rows()
        if rows is None:
            self.moved.turn_all()
            return layout
        reached = self.constraints[: self.reach] if rows else ()
        for row in rows:
            for constraint in reached:
                column = self._cluster.nodes.label_column(constraint.topology_key)
                if constraint.topology_key == names.LABEL_HOSTNAME:
                    self.moved.turn_alone(row)
                else:
                    self.moved.turn_row(row, column, column.ids.item(row))
        return layout

    def find_reach(self) -> int:
        """0 if no node has all required keys: then every node is ignored."""
        if self.is_strict and not self._memory.complete(self._keys).any():
            return 0
        return len(self.constraints)

    def weigh(self, nodes: NodeView, feasible: Mask) -> Weighted:
        """`nodes` is the view of all rows, `feasible` bool[H] those that will be scored."""
        self._memory.layout()
        scored = feasible & self._memory.complete(self._keys) if self.is_strict else feasible
        weights = tuple(
            math.log(self._size(nodes, constraint.topology_key, scored) + 2)
            for constraint in self.constraints[: self.reach]
        )
        if weights != self._weighted.weights:
            self._weighted = Weighted(self, weights)
        return self._weighted  # the same object, while it is valid

    def raw(self, nodes: NodeView, weights: tuple[float, ...]) -> I64:
        """int64[M] raw scores, `IGNORED` for ignored rows."""
        self._memory.layout()
        total: F64 | None = None
        for index, weight in enumerate(weights):
            part = self._part(index, weight, nodes)
            total = part if total is None else total + part
        if total is None:
            return np.full(nodes.size, IGNORED, dtype=np.int64)
        raw = np.floor(total + 0.5).astype(np.int64)
        if self.is_strict:
            raw[~nodes.gather(self._memory.complete(self._keys))] = IGNORED
        return raw

    def raw_of(self, row: int, weights: tuple[float, ...]) -> int:
        """The same for one row."""
        self._memory.layout()
        if not weights or (self.is_strict and not self._memory.complete(self._keys)[row]):
            return IGNORED
        total = 0.0
        for index, weight in enumerate(weights):
            constraint = self.constraints[index]
            key, counter = constraint.topology_key, self.counter(index)
            id_ = self._cluster.nodes.label_column(key).ids.item(row)
            if not id_:
                continue
            if key == names.LABEL_HOSTNAME:
                count = 0 if counter is None else counter.at(row)
            else:
                count = self.domains(index).counts(counter).item(id_)
            total += float(count) * weight + float(constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def _size(self, nodes: NodeView, key: str, scored: Mask) -> int:
        """Number of domains among the nodes to be scored."""
        if key == names.LABEL_HOSTNAME:
            return int(np.count_nonzero(scored))
        ids, column = nodes.label(key)
        seen = np.bincount(ids[scored], minlength=len(column.values)) > 0
        # Upstream reads the lack of a label as an empty value.
        empty = column.values.find("")
        return int(np.count_nonzero(seen)) - int(seen[0] and empty > 0 and bool(seen[empty]))

    def _part(self, index: int, weight: float, nodes: NodeView) -> F64:
        """float64[M]: what one constraint adds, 0 where the node lacks the key."""
        constraint = self.constraints[index]
        key, least = constraint.topology_key, float(constraint.max_skew - 1)
        counter = self.counter(index)
        ids = nodes.label(key)[0]
        if key == names.LABEL_HOSTNAME:
            if counter is None:
                return np.where(ids > 0, least, 0.0)
            part: F64 = nodes.gather(counter.rows()).astype(np.float64) * weight + least
            return part if self._is_everywhere(key) else np.where(ids > 0, part, 0.0)
        by_value: F64 = self.domains(index).counts(counter).astype(np.float64) * weight + least
        by_value[0] = 0.0
        return by_value.take(ids)

    def _is_everywhere(self, key: str) -> bool:
        """Whether rows that lack the key may be skipped: they are ignored anyway."""
        return self.is_strict and key in self._keys


def extremes(raw: I64) -> tuple[int, int]:
    """(least, largest) of int64[F] raw scores that are not ignored; (0, `IGNORED`) if all are."""
    least = int(raw.min())
    largest = int(raw.max())
    if least == IGNORED:
        least = int(raw.min(initial=largest, where=raw != IGNORED))
    return max(least, 0), largest


def scaled(raw: I64, least: int, largest: int) -> I64:
    """Scale raw scores to 0..100; ignored ones to 0, all others to 100 if none is above 0."""
    if largest > 0:
        points = SCORE_MAX * (largest + least - raw) // largest
    else:
        points = np.full_like(raw, SCORE_MAX)
    points[raw == IGNORED] = 0
    return points


def scaled_one(score: int, least: int, largest: int) -> int | None:
    """The same for one raw score; None if it lies outside."""
    if not least <= score <= largest:
        return None
    return SCORE_MAX * (largest + least - score) // largest if largest > 0 else SCORE_MAX
