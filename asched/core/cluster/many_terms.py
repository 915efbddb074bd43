"""Pods with many affinity terms: all terms are counted as one, and evaluated at once.

A term has a counter of its own if its pod has a few terms. For a pod with thousands

    ManyTerms     counts the pods that its terms match: one counter by topology key, for pods that
                  any term matches, that all terms match, or by the sum of the terms' weights
    ManyCarried   counts the pods of its class: one tally for all terms that they have

Both compile their terms in parts on first use, and raise OutOfTurn meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.affinity_terms import AffinityTerm, TermsOf
from asched.core.cluster.budget import Budget, Gradual
from asched.core.cluster.counters import (
    PodCounter,
    PodPredicate,
    Spoken,
    Tally,
    TallyLedger,
    TermKind,
)
from asched.core.cluster.many_selectors import ManySelectors
from asched.core.cluster.pods import LabelSet
from asched.core.model.selector import Requirement, Selector

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Steps of the budget for compiling a term.
TERM_STEPS: Final = 1.0
#: The namespace as a label key, which no label has.
NAMESPACE: Final = ""
#: Label sets with a cached weight. A guess.
LABEL_SETS_MAX: Final = 4096
#: Namespaces with a cached set of terms that apply to them. A guess.
NAMESPACES_MAX: Final = 64


class Counting(Enum):
    """How much a pod counts: 1 if any term matches it, or if all do; or the sum of the weights of
    the matching terms.
    """

    ANY = "any"
    ALL = "all"
    WEIGHTS = "weights"


class ManyTerms:
    """The key of a counter of pods that the terms of one class match. Keys are never equal."""

    __slots__ = ("__weakref__", "_selectors", "_terms", "_weights", "_weights_of", "counting")

    counts_terminating = True
    on_trial_only = False
    #: such terms may apply to any namespace
    found_by = PodPredicate(None, Selector(()))

    def __init__(
        self,
        budget: Budget,
        terms: Sequence[AffinityTerm],
        predicate: Callable[[AffinityTerm], PodPredicate | None],
        counting: Counting,
        steps: float = 0.0,
    ) -> None:
        """`predicate`: the pods that a term matches, None for none; `steps` of the budget that it
        takes at most.
        """
        self.counting = counting
        self._selectors = ManySelectors()
        self._weights: I64 = np.zeros(0, dtype=np.int64)
        self._terms = Gradual(
            budget, terms, lambda term: self._add(term, predicate(term)), TERM_STEPS + steps
        )
        self._weights_of: dict[int, int] = {}  # by number of the label set

    def counts(self, *, is_terminating: bool) -> bool:  # noqa: ARG002
        """Terminating pods count, too."""
        return True

    def make(self, ledger: TallyLedger) -> PodCounter:
        """A new counter, not filled. Raises OutOfTurn until all terms are compiled."""
        self._weights = np.array(self._terms.all(), dtype=np.int64)
        return _Counter(ledger, self)

    def weight_of(self, label_set: LabelSet) -> int:
        """How much a pod with these labels counts. Only after `make`."""
        known = self._weights_of.get(label_set.number)
        if known is None:
            if len(self._weights_of) >= LABEL_SETS_MAX:
                self._weights_of.clear()
            known = self._weights_of[label_set.number] = self._weigh(label_set)
        return known

    def _add(self, term: AffinityTerm, predicate: PodPredicate | None) -> int:
        if predicate is None:
            self._selectors.add(())
            return 0
        requirements = predicate.selector.requirements
        if predicate.namespaces is not None:
            inside = Requirement(NAMESPACE, "In", predicate.namespaces)
            requirements = (*requirements, inside)
        self._selectors.add(requirements)
        return max(term.weight, 1)

    def _weigh(self, label_set: LabelSet) -> int:
        matching = self._selectors.matching({**label_set.labels, NAMESPACE: label_set.namespace})
        match self.counting:
            case Counting.ANY:
                return int((matching & (self._weights > 0)).any())
            case Counting.ALL:
                return int((matching & (self._weights > 0)).all())
            case Counting.WEIGHTS:
                return int(self._weights[matching].sum())


class _Counter(PodCounter):
    """The counter of `ManyTerms`."""

    __slots__ = ("is_weighed",)

    label_sets_per_step = 0.25
    key: ManyTerms

    def _prepare(self) -> None:
        self.is_weighed = self.key.counting is Counting.WEIGHTS

    def matches(self, label_set: LabelSet) -> bool:
        return self.key.weight_of(label_set) != 0

    def weight_of(self, label_set: LabelSet) -> int:
        return self.key.weight_of(label_set)


class ManyCarried(Tally):
    """The nodes of the pods of a class with many terms."""

    __slots__ = (
        "_budget",
        "_group_of",
        "_groups",
        "_inside",
        "_near_keys",
        "_scopes",
        "_selectors",
        "_terms",
        "_written",
    )

    def __init__(self, ledger: TallyLedger, budget: Budget, written: TermsOf) -> None:
        super().__init__(ledger)
        self._written = written
        self._terms: Gradual[tuple[TermKind, AffinityTerm], tuple[int, int, int]] | None = None
        self._selectors = ManySelectors()
        #: (kind, topology key) -> number, and (namespaces by name, by selector) -> number
        self._groups: dict[tuple[TermKind, str], int] = {}
        self._scopes: dict[tuple[frozenset[str], Selector | None], int] = {}
        self._group_of: tuple[I64, I64, I64] | None = None
        #: the groups whose keys nodes have, with the version of the node labels
        self._near_keys: tuple[int, list[tuple[int, tuple[TermKind, str]]]] = (-1, [])
        self._inside: dict[tuple[str, frozenset[tuple[str, str]]], Mask] = {}
        self._budget = budget

    def spoken(self, label_set: LabelSet, namespace_labels: Mapping[str, str]) -> Iterator[Spoken]:
        """Its terms that match a pod with these labels, in a namespace with those labels, and whose
        keys nodes have: thousands may have a key of their own. Raises OutOfTurn until all terms are
        compiled.
        """
        groups, scopes, weights = self._known()
        nodes = self._ledger.nodes
        if self._near_keys[0] != nodes.keys_moved:
            near = [g for g in enumerate(self._groups) if nodes.is_carried(g[1][1])]
            self._near_keys = nodes.keys_moved, near
        inside = self._looks_into(label_set.namespace, namespace_labels)
        if not inside.any():
            return
        matching = self._selectors.matching(label_set.labels) & inside[scopes]
        numbers = np.bincount(groups[matching], minlength=len(self._groups))
        weighed = np.bincount(groups[matching], weights[matching], minlength=len(self._groups))
        for group, (kind, key) in self._near_keys[1]:
            if number := numbers.item(group):
                yield Spoken(self, kind, key, int(weighed.item(group)), number)

    def _known(self) -> tuple[I64, I64, I64]:
        """For each term: its group, its scope, its weight."""
        if self._group_of is None:
            if self._terms is None:
                self._terms = Gradual(self._budget, self._compiled(), self._add, TERM_STEPS)
            made = np.array(self._terms.all(), dtype=np.int64).reshape(-1, 3)
            self._group_of = made[:, 0], made[:, 1], made[:, 2]
        return self._group_of

    def _compiled(self) -> list[tuple[TermKind, AffinityTerm]]:
        try:
            terms = self._written.all()
        except ValueError:  # an invalid selector matches nothing
            return []
        return [
            (kind, term)
            for kind, group in zip(TermKind, terms, strict=True)
            for term in group
            if term.selector is not None
        ]

    def _add(self, entry: tuple[TermKind, AffinityTerm]) -> tuple[int, int, int]:
        kind, term = entry
        assert term.selector is not None, "terms without a selector are left out"
        self._selectors.add(term.selector.requirements)
        group = self._groups.setdefault((kind, term.topology_key), len(self._groups))
        scope = self._scopes.setdefault(
            (term.namespaces, term.namespace_selector), len(self._scopes)
        )
        return group, scope, term.weight

    def _looks_into(self, namespace: str, labels: Mapping[str, str]) -> Mask:
        """bool[S]: which scopes include a namespace."""
        key = namespace, frozenset(labels.items())
        inside = self._inside.get(key)
        if inside is None:
            if len(self._inside) >= NAMESPACES_MAX:
                self._inside.clear()
            inside = self._inside[key] = np.array(
                [
                    namespace in names or (selector is not None and selector.matches(labels))
                    for names, selector in self._scopes
                ],
                dtype=np.bool_,
            )
        return inside
