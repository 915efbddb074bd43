"""Attraction: the half of affinity that scores.

raw = the sum over topology keys of what the node's domain has: the weight of each preferred term of
the pod for each pod it matches (less for anti-affinity); the weight of each preferred term of
placed pods that matches the pod; hardPodAffinityWeight for each required affinity term of placed
pods that does. Points are 100 * ((raw - min) / (max - min)), divided first, multiplied then, cut
last (float64); all 0 if max equals min. Where nothing attracts or repels, the plugin is skipped.

Cost    each domain is evaluated once, then one gather over the rows for each key.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/scoring.go
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import MatchingTerm, PodCounter, TermKind
from asched.core.cluster.pods import PodClass
from asched.core.cluster.tallies import Tally
from asched.core.cluster.view import NodeView
from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.points import I64
from asched.core.plugins.inter_pod_affinity.terms import (
    ByKey,
    CountedTerm,
    MatchingTerms,
    Namespaces,
)
from asched.core.plugins.moved_rows import CountsSeen, MovedRows, difference

SCORE_MAX: Final = 100.0
NOTHING: Final[I64] = np.zeros(1, dtype=np.int64)


class Attraction:
    """All terms that attract or repel a class of pods, with the sum of each domain for the newest
    counts.

    Valid for one version of the namespaces. Raises ValueError for an invalid term.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespaces: Namespaces,
        matching_terms: MatchingTerms,
        cls: PodClass,
        args: InterPodAffinityArgs,
    ) -> None:
        terms = cls.terms
        self._cluster = cluster
        self._hard_weight = args.hard_pod_affinity_weight
        self._own = (
            ByKey(namespaces, terms.preferred_affinity),
            ByKey(namespaces, terms.preferred_anti_affinity, -1),
        )
        #: whether the arguments exclude pods without preferred terms
        self.is_barred = args.ignore_preferred_terms_of_existing_pods and not (
            terms.preferred_affinity or terms.preferred_anti_affinity
        )
        self._generation = -1
        #: the terms of `_own` whose keys nodes have, and their counters as far as they exist
        self._counted: list[CountedTerm] = []
        self._counters: list[PodCounter] = []
        self._matching_terms = matching_terms
        self._terms: tuple[MatchingTerm, ...] = ()
        self._drawing: tuple[tuple[MatchingTerm, int], ...] = ()
        #: (counts, topology key, weight) of all terms that may add something
        self._parts: list[tuple[Tally, str, int]] = []
        self._tallies: list[Tally] = []
        self._sums: dict[str, I64] = {}
        #: a generation of nodes, and which parts counted then
        self._summed_for: tuple[int, list[bool]] = (-1, [])
        self._seen = CountsSeen()
        self._is_drawn = False
        self.moved = MovedRows(cluster.nodes)

    @property
    def is_idle(self) -> bool:
        """Whether no domain adds anything."""
        self._sum_anew()
        return not self._is_drawn

    @property
    def is_untouched(self) -> bool:
        """Whether no term is involved, wherever pods may be: a stricter `is_idle`."""
        self._renew()
        return self.is_barred or not (any(self._own) or self._drawing)

    def stamp(self) -> Hashable:
        """Whether it is idle. `moved` has the rows in domains with changed sums. Marks the counters
        as used; creates them before any trial begins.
        """
        is_idle = self.is_idle
        for counter in self._counters:
            self._cluster.topology.keep(counter)
        return is_idle

    def raw(self, nodes: NodeView) -> I64:
        """int64[M] raw scores; they may be negative."""
        self._sum_anew()
        raw: I64 | None = None
        for key, sums in self._sums.items():
            part = sums.take(nodes.label(key)[0])
            raw = part if raw is None else raw + part
        return np.zeros(nodes.size, dtype=np.int64) if raw is None else raw

    def raw_of(self, row: int) -> int:
        """The same for one row."""
        self._sum_anew()
        label = self._cluster.nodes.label_column
        return sum([sums.item(label(key).ids.item(row)) for key, sums in self._sums.items()])

    def _renew(self) -> None:
        terms = self._matching_terms.terms()
        is_same = terms is self._terms
        if not is_same:
            self._terms = terms
            weighed = ((term, self._weight_of(term)) for term in terms)
            self._drawing = tuple((term, weight) for term, weight in weighed if weight)
        nodes = self._cluster.nodes
        if self._generation != nodes.generation:
            self._generation, is_same = nodes.generation, False
            self._counted = [counted for own in self._own for counted in own.carried()]
            self._counters = []
        elif self._counters and any(counter.is_dropped for counter in self._counters):
            self._counters = []
        for counted in self._counted[len(self._counters) :]:
            self._counters.append(self._cluster.counter(counted.counter_key))
            is_same = False
        if not is_same:
            counters = zip(self._counters, self._counted, strict=True)
            self._parts = [(counter, own.topology_key, own.weight) for counter, own in counters]
            self._parts += [
                (term.tally, term.topology_key, weight)
                for term, weight in self._drawing
                if nodes.is_carried(term.topology_key)
            ]
            self._tallies = [tally for tally, _, _ in self._parts]

    def _weight_of(self, term: MatchingTerm) -> int:
        """What one pod with the term adds to its domain."""
        match term.kind:
            case TermKind.REQUIRED_AFFINITY:
                return self._hard_weight
            case TermKind.PREFERRED_AFFINITY:
                return term.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -term.weight
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return 0

    def _sum_anew(self) -> None:
        """Recompute the sums of domains whose counts have changed; of all domains if these are
        unknown, or if the parts have changed.
        """
        self._renew()
        rows = None if self.is_barred else self._seen.rows(self._tallies)
        if rows is not None and not rows and self._summed_for[0] == self._generation:
            return
        are_counted = [tally.total > 0 for tally in self._tallies]
        summed_for = (self._generation, are_counted)
        if rows is None or summed_for != self._summed_for:
            self._sum_all()
            self._summed_for = summed_for
            return
        is_drawn = False
        for row in rows:
            for key, sums in self._sums.items():
                is_drawn |= self._sum_row(row, key, sums)
        if is_drawn != self._is_drawn:
            self._is_drawn = is_drawn or self._find_drawn()

    def _sum_row(self, row: int, key: str, sums: I64) -> bool:
        """Sum the domain of a row again. Returns whether anything counts there."""
        column = self._cluster.nodes.label_column(key)
        id_ = column.ids.item(row)
        if not id_:
            return False
        total, is_drawn = 0, False
        for tally, topology_key, weight in self._parts:
            if topology_key == key:
                count = tally.of_domain(key, id_)
                total += count * weight
                is_drawn |= count != 0
        if total != sums.item(id_):
            sums[id_] = total
            self.moved.turn_row(row, column, id_)
        return is_drawn

    def _sum_all(self) -> None:
        """int64[D] for each topology key."""
        old, self._sums = self._sums, {}
        for tally, key, weight in self._parts if not self.is_barred else ():
            if not tally.total:
                continue
            part = tally.domain(key) * weight
            if key in self._sums:
                self._sums[key] += part
            else:
                self._sums[key] = part
        self._is_drawn = self._find_drawn()
        for key in old.keys() | self._sums.keys():
            changed = difference(old.get(key, NOTHING), self._sums.get(key, NOTHING))
            if len(changed):
                self.moved.turn(self._cluster.nodes.label_column(key), changed.tolist())

    def _find_drawn(self) -> bool:
        return not self.is_barred and any(
            tally.total and tally.domain(key).any() for tally, key, _ in self._parts
        )


def between(raw: I64, least: int, largest: int) -> I64:
    """Scale raw scores of any sign to 0..100, where `least` and `largest` are those of the feasible
    rows; all 0 if they are equal.
    """
    span = largest - least
    if not span:
        return np.zeros_like(raw)
    points = (raw - least) / span
    points *= SCORE_MAX
    return points.astype(np.int64)
