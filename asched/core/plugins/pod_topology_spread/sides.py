"""The sides of spread constraints: the hard one filters, the soft one scores. Both count matching
pods in domains.

Filter  in each constraint, skew = pods in the node's domain + 1 if the pod itself would count
        - the smallest number in any domain; it must not exceed maxSkew. With fewer domains than
        minDomains the smallest number is 0. A node that is not counted has a domain of 0 pods,
        unless counted nodes share it. Constraints are checked in order; the first that fails
        decides. Each domain is evaluated once, then one gather over the rows.
Score   raw = the rounded sum (halves away from zero), over the constraints whose key the node has,
        of pods in its domain * ln(domains among the feasible nodes + 2) + maxSkew - 1.
        For `kubernetes.io/hostname` the pods on the node itself count, whatever the policies say,
        and every feasible node is a domain. Points are 100 * (max + min - raw) / max.
        Where the constraints are not the system's defaults, a node that lacks any of the keys is
        ignored: it counts nowhere and gets 0.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/filtering.go,
        scoring.go
"""

import math
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import PodCounter
from asched.core.cluster.nodes import ALL_ASPECTS
from asched.core.cluster.pods import PodClass
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Codes, Mask
from asched.core.framework.status import Reason
from asched.core.model.arrays import F64
from asched.core.plugins.moved_rows import CountsSeen, MovedRows, difference
from asched.core.plugins.pod_topology_spread.constraints import Constraints, SpreadConstraint
from asched.core.plugins.pod_topology_spread.domains import (
    Domains,
    DomainsKey,
    DomainsMemory,
    admission_of,
)


class Side:
    """Constraints of one action, for one class of pods. Nodes without `required` do not count.

    Only the first `evaluated_count` constraints are evaluated: those after them cannot change the
    result.
    """

    def __init__(
        self,
        cluster: Cluster,
        memory: DomainsMemory,
        cls: PodClass,
        constraints: Constraints,
        required: frozenset[str],
    ) -> None:
        self._cluster = cluster
        self._memory = memory
        self.constraints = constraints
        self._evaluated_count, self._counted_at = 0, -1
        self._seen = CountsSeen()
        #: rows with a changed verdict or score, since counts changed
        self.moved = MovedRows(cluster.nodes)
        self._namespace = cls.label_set.namespace
        self._counters: list[PodCounter | None] = [None] * len(constraints)
        admissions = {p: admission_of(cls, *p) for p in set(map(_policies, constraints))}
        self._domain_keys = [
            DomainsKey(constraint.topology_key, required, admissions[_policies(constraint)])
            for constraint in constraints
        ]

    def count_evaluated(self) -> int:
        """How many constraints matter on the current nodes."""
        return len(self.constraints)

    @property
    def evaluated_count(self) -> int:
        layout = self._memory.layout()
        if layout != self._counted_at:
            self._evaluated_count, self._counted_at = self.count_evaluated(), layout
        return self._evaluated_count

    def counter(self, index: int) -> PodCounter | None:
        """The counter of a constraint; None if its selector matches nothing."""
        counter = self._counters[index]
        if counter is None or counter.is_dropped:
            key = self.constraints[index].counter_key(self._namespace)
            counter = self._counters[index] = None if key is None else self._cluster.counter(key)
        return counter

    def domains(self, index: int) -> Domains:
        return self._memory.get(self._domain_keys[index], self._namespace)

    def moved_rows(self) -> Iterable[int] | None:
        """Rows whose counts changed since the last call; None if unknown. Marks the counters as
        used.
        """
        return self._seen.rows(self.keep())

    def keep(self) -> list[PodCounter]:
        """Mark the counters as used; create them before any trial begins."""
        keep = self._cluster.topology.keep
        kept: list[PodCounter] = []
        for index in range(self.evaluated_count):
            counter = self.counter(index)
            if counter is not None:
                keep(counter)
                kept.append(counter)
        return kept


def _policies(constraint: SpreadConstraint) -> tuple[bool, bool, bool]:
    return constraint.honors_affinity, constraint.honors_taints, constraint.compares_taints


NO_LABEL: Final = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    resolvable=False,
)
SKEWED: Final = Reason("node(s) didn't match pod topology spread constraints", resolvable=True)

CODE_NO_LABEL: Final = 1
CODE_SKEWED: Final = 2


class HardSide(Side):
    """The hard constraints of a class of pods, with a verdict on each domain for the newest
    counts.
    """

    def __init__(
        self, cluster: Cluster, memory: DomainsMemory, cls: PodClass, constraints: Constraints
    ) -> None:
        required = frozenset(constraint.topology_key for constraint in constraints)
        super().__init__(cluster, memory, cls, constraints, required)
        self._labels = cls.label_set.labels
        self._self_matches: dict[int, int] = {}
        self._domain_codes: list[Codes] = []
        #: of each constraint: the smallest number of its last verdicts
        self._least: list[int] = []
        self._evaluated_at = -1  # a layout of the nodes

    def count_evaluated(self) -> int:
        """Up to the first key that no node has: no node passes that constraint."""
        is_carried = self._cluster.nodes.is_carried
        for index, constraint in enumerate(self.constraints):
            if not is_carried(constraint.topology_key):
                return index + 1
        return len(self.constraints)

    def stamp(self) -> Hashable:
        """None: `moved` has the rows in domains with changed verdicts."""
        self.keep()
        self._update()
        return None

    def codes(self, nodes: NodeView) -> Codes:
        """int32[M]: 0 fits, else the code of the first constraint that refuses the row."""
        self._update()
        codes: Codes | None = None
        evaluated = self.constraints[: self.evaluated_count]
        for constraint, domain_codes in zip(evaluated, self._domain_codes, strict=True):
            row_codes = domain_codes.take(nodes.label(constraint.topology_key)[0])
            codes = row_codes if codes is None else np.where(codes, codes, row_codes)
        assert codes is not None, "a filter without hard constraints is skipped"
        return codes

    def code_of(self, row: int) -> int:
        """The same for one row."""
        self._update()
        label = self._cluster.nodes.label_column
        for constraint, domain_codes in zip(self.constraints, self._domain_codes, strict=False):
            code: int = domain_codes.item(label(constraint.topology_key).ids.item(row))
            if code:
                return code
        return 0

    def _update(self) -> None:
        """Evaluate the domains again whose counts have changed; or all domains if these are
        unknown, if the smallest number changed, or if other nodes count.
        """
        layout = self._memory.layout()
        rows = self.moved_rows()
        if layout == self._evaluated_at and rows is not None and all(map(self._evaluate_row, rows)):
            return
        for index in range(self.evaluated_count):
            self.domains(index)  # may raise OutOfTurn
        old, self._domain_codes, self._least = self._domain_codes, [], []
        for index in range(self.evaluated_count):
            counts, least = self._counts(index)
            codes = (counts > self._allowed(index, least)).astype(np.int32) * CODE_SKEWED
            codes[0] = CODE_NO_LABEL
            self._domain_codes.append(codes)
            self._least.append(least)
        self._evaluated_at = layout
        if len(old) != len(self._domain_codes):
            self.moved.forget()
            return
        for constraint, before, after in zip(
            self.constraints, old, self._domain_codes, strict=False
        ):
            changed = difference(before, after)
            if len(changed):
                column = self._cluster.nodes.label_column(constraint.topology_key)
                self.moved.turn(column, changed.tolist())

    def _evaluate_row(self, row: int) -> bool:
        """Evaluate the domains of a row again. False if all domains have to be."""
        for index, domain_codes in enumerate(self._domain_codes):
            column = self._cluster.nodes.label_column(self.constraints[index].topology_key)
            id_ = column.ids.item(row)
            counts, least = self._counts(index)
            if least != self._least[index]:
                return False
            code = CODE_SKEWED if id_ and counts.item(id_) > self._allowed(index, least) else 0
            if id_ and code != domain_codes.item(id_):
                domain_codes[id_] = code
                self.moved.turn_row(row, column, id_)
        return True

    def _counts(self, index: int) -> tuple[I64, int]:
        """int64[D] pods by domain, and the number they are compared with."""
        domains: Domains = self.domains(index)
        counts = domains.counts(self.counter(index))
        is_enough = domains.count >= max(self.constraints[index].min_domains, 1)
        return counts, domains.least(counts) if is_enough else 0

    def _allowed(self, index: int, least: int) -> int:
        constraint, own = self.constraints[index], self._self_matches.get(index)
        if own is None:
            own = self._self_matches[index] = int(constraint.matches(self._labels))
        return constraint.max_skew + least - own


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
            self.moved.forget()
            return layout
        evaluated = self.constraints[: self.evaluated_count] if rows else ()
        for row in rows:
            for constraint in evaluated:
                column = self._cluster.nodes.label_column(constraint.topology_key)
                if constraint.topology_key == names.LABEL_HOSTNAME:
                    self.moved.add(row, ALL_ASPECTS)
                else:
                    self.moved.turn_row(row, column, column.ids.item(row))
        return layout

    def count_evaluated(self) -> int:
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
            for constraint in self.constraints[: self.evaluated_count]
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
            # Where rows that lack the key are ignored, it does not matter what they get.
            return part if self.is_strict else np.where(ids > 0, part, 0.0)
        by_value: F64 = self.domains(index).counts(counter).astype(np.float64) * weight + least
        by_value[0] = 0.0
        return by_value.take(ids)


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
