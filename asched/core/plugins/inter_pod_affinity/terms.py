"""What the terms of an incoming pod count, and which terms of placed pods match it.

Rules   a term of the incoming pod covers the namespaces it names and those that its selector
        selects now; an empty selector selects every namespace, existing or not. Terms of placed
        pods have their selector evaluated on the labels of the incoming pod's namespace.
        Terminating pods count.
Differs kube-scheduler takes a selector that also holds for no labels (NotIn or DoesNotExist alone)
        for an empty one (kubernetes#141526).
Bounds  each distinct namespace selector is resolved once per version of the namespaces.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/plugin.go,
        staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm)
"""

from typing import NamedTuple

from asched.core.cluster.affinity_terms import AffinityTerm
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.counters import CounterKey, MatchingTerm, PodPredicate
from asched.core.cluster.pods import LabelSet, PodClass
from asched.core.model.kinds import NAMESPACE
from asched.core.model.selector import Labels, Selector

NO_LABELS: dict[str, str] = {}
Terms = tuple[AffinityTerm, ...]


class Namespaces:
    """Resolves namespace selectors and caches the results."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._epoch = -1
        self._selected: dict[Selector, frozenset[str]] = {}

    def epoch(self) -> int:
        """Changes with every change of a namespace."""
        return self.cluster.epoch_of(NAMESPACE)

    def labels_of(self, name: str) -> dict[str, str]:
        """The labels of a namespace; none if it is unknown."""
        namespace = self.cluster.get(NAMESPACE, name)
        return NO_LABELS if namespace is None else namespace.metadata.labels or NO_LABELS

    def selected(self, selector: Selector) -> frozenset[str]:
        """The names of all namespaces with matching labels."""
        epoch = self.epoch()
        if epoch != self._epoch:
            self._epoch = epoch
            self._selected = {}
        names = self._selected.get(selector)
        if names is None:
            names = self._selected[selector] = frozenset(
                name
                for name, namespace in self.cluster.all(NAMESPACE).items()
                if selector.matches(namespace.metadata.labels or NO_LABELS)
            )
        return names

    def predicate(self, term: AffinityTerm) -> PodPredicate | None:
        """The pods that a term of an incoming pod matches; None if it can match none."""
        if term.selector is None:
            return None
        wanted = term.namespace_selector
        if wanted is None:
            return PodPredicate(term.namespaces, term.selector)
        if wanted.is_everything:
            return PodPredicate(None, term.selector)
        return PodPredicate(term.namespaces | self.selected(wanted), term.selector)


class CountedTerm(NamedTuple):
    """Pods of one counter, seen by one topology key; `weight` is for scores."""

    counter_key: CounterKey
    topology_key: str
    weight: int = 0


def all_matching(namespaces: Namespaces, terms: Terms) -> CounterKey | None:
    """The pods that match every term; None if no pod can."""
    predicates = []
    for term in terms:
        predicate = namespaces.predicate(term)
        if predicate is None:
            return None
        predicates.append(predicate)
    return CounterKey(tuple(dict.fromkeys(predicates)), counts_terminating=True)


class ByKey:
    """Terms that each count for themselves, by topology key. Their counters are created when a node
    has the key.
    """

    def __init__(self, namespaces: Namespaces, terms: Terms, sign: int = 1) -> None:
        self._namespaces = namespaces
        self._sign = sign
        self._terms: dict[str, list[AffinityTerm]] = {}
        for term in terms:
            self._terms.setdefault(term.topology_key, []).append(term)
        self._counted_terms: dict[str, list[CountedTerm]] = {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def carried(self) -> list[CountedTerm]:
        """For the keys that nodes have: the pods that the terms match."""
        is_carried = self._namespaces.cluster.nodes.is_carried
        return [term for key in self._terms if is_carried(key) for term in self._counted(key)]

    def _counted(self, key: str) -> list[CountedTerm]:
        counted = self._counted_terms.get(key)
        if counted is None:
            terms, sign = self._terms[key], self._sign
            predicates = [(term, self._namespaces.predicate(term)) for term in terms]
            counted = self._counted_terms[key] = [
                CountedTerm(
                    CounterKey((predicate,), counts_terminating=True), key, sign * term.weight
                )
                for term, predicate in predicates
                if predicate is not None
            ]
        return counted


class MatchingTerms:
    """The distinct terms of placed pods that match the pods of one label set. Valid for one version
    of the namespaces.
    """

    def __init__(self, cluster: Cluster, namespaces: Namespaces, cls: PodClass) -> None:
        self._cluster = cluster
        self._label_set: LabelSet = cls.label_set
        self._namespace_labels = namespaces.labels_of(cls.label_set.namespace)
        self._generation = -1
        self._terms: tuple[MatchingTerm, ...] = ()

    def terms(self) -> tuple[MatchingTerm, ...]:
        """The terms now: the same tuple while they are the same."""
        topology = self._cluster.topology
        generation = topology.terms_generation
        if self._generation != generation:
            terms = tuple(topology.matching_terms(self._label_set, self._namespace_labels))
            self._generation = generation
            if terms != self._terms:
                self._terms = terms
        return self._terms


def term_matches(term: AffinityTerm, namespace: str, labels: Labels) -> bool:
    """Whether a term matches a pod, with its namespace selector evaluated on no labels, as hints
    do.
    """
    inside = term.covers_namespace(namespace, NO_LABELS)
    return inside and term.selector is not None and term.selector.matches(labels)
