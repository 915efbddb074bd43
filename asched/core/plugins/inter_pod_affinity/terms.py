"""What the terms of an incoming pod count, and which terms of placed pods speak of it.

Rules   a term of the incoming pod looks into the namespaces it names and those its selector selects
        now. Terms of placed pods have their selector judged on the labels of the incoming pod's
        namespace. Terminating pods count.
Quirk   a namespace selector that also holds for no labels at all (negative requirements only, or
        none) looks into every namespace, whether it exists or not.
Bounds  each distinct namespace selector is resolved once per version of the namespaces.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/plugin.go,
        staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm)
"""

from typing import NamedTuple

from asched.core.model.kinds import NAMESPACE
from asched.core.model.selector import Labels, Selector
from asched.core.state.cluster import Cluster
from asched.core.state.counters import CounterKey, PodPredicate, TermCounter
from asched.core.state.pods import AffinityTerm, LabelSet, PodClass

NO_LABELS: dict[str, str] = {}


class Namespaces:
    """Resolves namespace selectors, and remembers what they came to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epoch = -1
        self._selected: dict[Selector, frozenset[str]] = {}

    def epoch(self) -> int:
        """Moves with every change of a namespace."""
        return self._cluster.epoch_of(NAMESPACE)

    def labels_of(self, name: str) -> dict[str, str]:
        """The labels of a namespace; none if nobody knows it."""
        namespace = self._cluster.get(NAMESPACE, name)
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
                for name, namespace in self._cluster.all(NAMESPACE).items()
                if selector.matches(namespace.metadata.labels or NO_LABELS)
            )
        return names

    def predicate(self, term: AffinityTerm) -> PodPredicate | None:
        """The pods a term of an incoming pod matches; None if it can match none."""
        if term.selector is None:
            return None
        wanted = term.namespace_selector
        if wanted is None:
            return PodPredicate(term.namespaces, term.selector)
        if wanted.matches(NO_LABELS):
            return PodPredicate(None, term.selector)
        return PodPredicate(term.namespaces | self.selected(wanted), term.selector)


class Counted(NamedTuple):
    """Pods of one counter, seen by one topology key; `weight` is for scores."""

    counter_key: CounterKey
    topology_key: str
    weight: int = 0


def all_matching(namespaces: Namespaces, terms: tuple[AffinityTerm, ...]) -> CounterKey | None:
    """The pods that match every term; None if no pod can."""
    predicates = []
    for term in terms:
        predicate = namespaces.predicate(term)
        if predicate is None:
            return None
        predicates.append(predicate)
    return CounterKey(tuple(dict.fromkeys(predicates)), counts_terminating=True)


def each_matching(
    namespaces: Namespaces, terms: tuple[AffinityTerm, ...], sign: int = 1
) -> list[Counted]:
    """For each term that can match a pod: the pods it matches."""
    found = []
    for term in terms:
        predicate = namespaces.predicate(term)
        if predicate is not None:
            key = CounterKey((predicate,), counts_terminating=True)
            found.append(Counted(key, term.topology_key, sign * term.weight))
    return found


class Speakers:
    """The distinct terms of placed pods that match the pods of one label set."""

    __slots__ = (
        "_cluster",
        "_generation",
        "_label_set",
        "_namespaces",
        "_namespaces_epoch",
        "terms",
    )

    def __init__(self, cluster: Cluster, namespaces: Namespaces, cls: PodClass) -> None:
        self._cluster = cluster
        self._namespaces = namespaces
        self._label_set: LabelSet = cls.label_set
        self._generation = self._namespaces_epoch = -1
        self.terms: tuple[TermCounter, ...] = ()

    def renew(self) -> bool:
        """Look again if there may be others. True if there are."""
        topology, epoch = self._cluster.topology, self._namespaces.epoch()
        if self._generation == topology.terms_generation and self._namespaces_epoch == epoch:
            return False
        self._generation, self._namespaces_epoch = topology.terms_generation, epoch
        labels = self._namespaces.labels_of(self._label_set.namespace)
        terms = tuple(topology.terms_speaking_of(self._label_set, labels))
        if terms == self.terms:
            return False
        self.terms = terms
        return True


def term_matches(term: AffinityTerm, namespace: str, labels: Labels) -> bool:
    """Whether a term matches a pod, with its namespace selector judged on no labels (hints do)."""
    inside = namespace in term.namespaces or (
        term.namespace_selector is not None and term.namespace_selector.matches(NO_LABELS)
    )
    return inside and term.selector is not None and term.selector.matches(labels)
