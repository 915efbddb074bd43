"""Nearness: the half of affinity that filters.

Affinity: the node has every term's key, and each of those domains holds a pod that matches all
terms; the first pod of a group, which matches its own terms, may go anywhere with the keys while no
domain holds such a pod. Anti-affinity: no domain of the node holds a pod that one of the pod's
terms matches; nor a pod with a term that matches this pod. Checked in this order.

Cost    each domain is evaluated once, then one gather over the rows for each key.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go
"""

from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import MatchingTerm, PodCounter, TermKind
from asched.core.cluster.pods import PodClass
from asched.core.cluster.tallies import Tally
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Codes, Mask
from asched.core.framework.status import Reason
from asched.core.plugins.inter_pod_affinity.terms import (
    ByKey,
    CountedTerm,
    MatchingTerms,
    Namespaces,
    all_matching,
)
from asched.core.plugins.moved_rows import CountsSeen, MovedRows, difference

NOT_NEAR: Final = Reason("node(s) didn't match pod affinity rules", resolvable=False)
TOO_NEAR: Final = Reason("node(s) didn't match pod anti-affinity rules", resolvable=True)
UNWANTED: Final = Reason(
    "node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True
)
CODE_NOT_NEAR: Final = 1
CODE_TOO_NEAR: Final = 2
CODE_UNWANTED: Final = 3

NO_TERMS: Final[tuple[MatchingTerm, ...]] = ()
NONE_REFUSED: Final[Mask] = np.zeros(1, dtype=np.bool_)


class DomainVerdicts(NamedTuple):
    """Verdict of one rule on the domains of a topology key: bool[D] of those it refuses. `tallies`
    are the counts that decide.
    """

    code: int
    key: str
    refused: Mask
    tallies: tuple[Tally, ...]

    def refuses(self, id_: int) -> bool:
        """Whether a domain is refused by the newest counts."""
        key = self.key
        if self.code == CODE_NOT_NEAR:
            return all(tally.of_domain(key, id_) <= 0 for tally in self.tallies)
        return any(tally.of_domain(key, id_) > 0 for tally in self.tallies)


class Nearness:
    """The required terms that concern a class of pods, with a verdict on each domain for the newest
    counts. `moved` logs the rows of domains whose verdict changed.

    Valid for one version of the namespaces. Raises ValueError for an invalid term.
    """

    def __init__(
        self, cluster: Cluster, namespaces: Namespaces, matching_terms: MatchingTerms, cls: PodClass
    ) -> None:
        terms = cls.terms
        self._cluster = cluster
        self.has_terms = bool(terms.required_affinity or terms.required_anti_affinity)
        wanted = terms.required_affinity
        self._affinity = all_matching(namespaces, wanted) if wanted else None
        self._affinity_keys = tuple(dict.fromkeys(term.topology_key for term in wanted))
        self._anti = ByKey(namespaces, terms.required_anti_affinity)
        self._label_set = cls.label_set
        self._generation = -1
        #: a key of affinity that no node has: then no node fits
        self._missing: str | None = None
        #: `_affinity` (if it can match at all) and the terms of `_anti` whose keys nodes have ...
        self._counted: list[CountedTerm] = []
        #: ... and their counters, as far as the budget sufficed to create them
        self._counters: list[PodCounter] = []
        #: terms of placed pods that match this class; of these, required anti-affinity
        self._matching_terms, self._terms = matching_terms, NO_TERMS
        self._unwanted: tuple[MatchingTerm, ...] = ()
        #: verdicts, the weakest rule first; and what they were made for
        self._verdicts: list[DomainVerdicts] = []
        #: a generation of nodes, and which terms of other pods counted then
        self._evaluated_for: tuple[int, list[bool]] = (-1, [])
        self._seen = CountsSeen()
        self._refused_count = 0
        self._is_first = False  # the first pod of its group: no pod to be near to exists
        self.moved = MovedRows(cluster.nodes)

    @property
    def is_idle(self) -> bool:
        """Whether no node can be refused: no own term, and no pod's anti-affinity matches this
        class.
        """
        self._update()
        return not self.has_terms and not self._refused_count

    @property
    def is_untouched(self) -> bool:
        """Whether no term is involved, wherever pods may be: a stricter `is_idle`."""
        self._renew()
        return not self.has_terms and not self._unwanted

    def stamp(self) -> Hashable:
        """Whether it is idle. `moved` has the rows with changed verdicts. Marks the counters as
        used; creates them before any trial begins.
        """
        is_idle = self.is_idle
        for counter in self._counters:
            self._cluster.topology.keep(counter)
        return is_idle

    def codes(self, nodes: NodeView) -> Codes:
        """int32[M]: 0 fits, else the code of the first rule that refuses the row."""
        self._update()
        codes = np.zeros(nodes.size, dtype=np.int32)
        for verdicts in self._verdicts:  # the first rule last: it overwrites the other codes
            codes[verdicts.refused[nodes.label(verdicts.key)[0]]] = verdicts.code
        return codes

    def code_of(self, row: int) -> int:
        """The same for one row."""
        self._update()
        code, label = 0, self._cluster.nodes.label_column
        for verdicts in self._verdicts:
            if verdicts.refused.item(label(verdicts.key).ids.item(row)):
                code = verdicts.code
        return code

    def _renew(self) -> None:
        terms = self._matching_terms.terms()
        if terms is not self._terms:
            self._terms = terms
            self._unwanted = tuple(
                term for term in terms if term.kind is TermKind.REQUIRED_ANTI_AFFINITY
            )
        if self._generation != self._cluster.nodes.generation:
            self._generation = self._cluster.nodes.generation
            self._choose()
        elif self._counters and any(counter.is_dropped for counter in self._counters):
            self._counters = []
        for counted in self._counted[len(self._counters) :]:
            self._counters.append(self._cluster.counter(counted.counter_key))

    def _choose(self) -> None:
        """Leave out terms that can refuse no node."""
        is_carried = self._cluster.nodes.is_carried
        self._missing = next((k for k in self._affinity_keys if not is_carried(k)), None)
        self._counters, self._counted = [], []
        if self._missing is None:
            near = [] if self._affinity is None else [CountedTerm(self._affinity, "")]
            self._counted = near + self._anti.carried()

    def _update(self) -> None:
        """Evaluate the domains again whose counts have changed; or all domains if these are
        unknown, or if other terms count.
        """
        self._renew()
        carriers = [term.tally for term in self._unwanted]
        rows = self._seen.rows((*self._counters, *carriers))
        if rows is not None and not rows and self._evaluated_for[0] == self._generation:
            return
        are_counted = [tally.total > 0 for tally in carriers]
        evaluated_for = (self._generation, are_counted)
        if rows is None or evaluated_for != self._evaluated_for or self._is_first:
            self._evaluate_all()
            self._evaluated_for = evaluated_for
        elif not all(map(self._evaluate_row, rows)):
            self._evaluate_all()

    def _evaluate_row(self, row: int) -> bool:
        """Evaluate the domains of a row again. False if all domains have to be."""
        for verdicts in self._verdicts:
            column = self._cluster.nodes.label_column(verdicts.key)
            id_ = column.ids.item(row)
            if not id_:
                continue
            now = verdicts.refuses(id_)
            if now == verdicts.refused.item(id_):
                continue
            if now and verdicts.code == CODE_NOT_NEAR:
                return False  # perhaps the last pod of its group
            verdicts.refused[id_] = now
            self._refused_count += 1 if now else -1
            self.moved.turn_row(row, column, id_)
        return True

    def _evaluate_all(self) -> None:
        old = {(rule.code, rule.key): rule.refused for rule in self._verdicts}
        self._verdicts = self._evaluate()
        self._refused_count = sum(int(np.count_nonzero(rule.refused)) for rule in self._verdicts)
        now = {(rule.code, rule.key): rule.refused for rule in self._verdicts}
        for rule in old.keys() | now.keys():
            before, after = old.get(rule, NONE_REFUSED), now.get(rule, NONE_REFUSED)
            code, key = rule
            if code == CODE_NOT_NEAR and (before is NONE_REFUSED or after is NONE_REFUSED):
                self.moved.forget()
                return
            changed = difference(before, after)
            if len(changed):
                self.moved.turn(self._cluster.nodes.label_column(key), changed.tolist())

    def _evaluate(self) -> list[DomainVerdicts]:
        """Verdicts, the weakest rule first."""
        self._is_first = False
        if self._missing is not None:
            return [DomainVerdicts(CODE_NOT_NEAR, self._missing, np.ones(1, dtype=np.bool_), ())]
        unwanted: dict[str, list[Tally]] = {}
        is_carried = self._cluster.nodes.is_carried
        for term in self._unwanted:
            if term.tally.total and is_carried(term.topology_key):
                unwanted.setdefault(term.topology_key, []).append(term.tally)
        too_near: dict[str, list[Tally]] = {}
        first = 0 if self._affinity is None else 1
        own = zip(self._counted[first:], self._counters[first:], strict=True)
        for counted, counter in own:
            too_near.setdefault(counted.topology_key, []).append(counter)
        verdicts = [_forbidden(CODE_UNWANTED, *rule) for rule in unwanted.items()]
        verdicts += [_forbidden(CODE_TOO_NEAR, *rule) for rule in too_near.items()]
        return verdicts + self._evaluate_affinity()

    def _evaluate_affinity(self) -> list[DomainVerdicts]:
        label = self._cluster.nodes.label_column
        if self._affinity is None:  # no terms, or terms that no pod can match
            return [
                DomainVerdicts(
                    CODE_NOT_NEAR, key, np.ones(len(label(key).values), dtype=np.bool_), ()
                )
                for key in self._affinity_keys
            ]
        counter = self._counters[0]
        refused = {key: counter.domain(key) <= 0 for key in self._affinity_keys}
        if counter.matches(self._label_set) and all(mask.all() for mask in refused.values()):
            self._is_first = True
            for mask in refused.values():  # the first pod of its group needs only the keys
                mask[1:] = False
        return [
            DomainVerdicts(CODE_NOT_NEAR, key, mask, (counter,)) for key, mask in refused.items()
        ]


def _forbidden(code: int, key: str, tallies: list[Tally]) -> DomainVerdicts:
    refused = tallies[0].domain(key) > 0
    for tally in tallies[1:]:
        refused |= tally.domain(key) > 0
    return DomainVerdicts(code, key, refused, tuple(tallies))
