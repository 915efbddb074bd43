"""Counters and their keys: pods that match, and terms that placed pods have.

`topology.py` owns and updates them; this module defines their meaning, and the index that finds the
counters a pod may change.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

from asched.core.cluster.affinity_terms import AffinityTerms
from asched.core.cluster.pods import LabelSet
from asched.core.cluster.tallies import Tally, TallyLedger
from asched.core.model.selector import Matcher, Selector

#: An object with a selector.
C = TypeVar("C")


class PodPredicate(NamedTuple):
    """A pod matches if it is in the namespaces (None: any) and the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, label_set: LabelSet) -> bool:
        return (
            self.namespaces is None or label_set.namespace in self.namespaces
        ) and self.selector.matches(label_set.labels)


#: Matches every pod.
EVERYBODY: Final = PodPredicate(None, Selector(()))


class CounterKey(NamedTuple):
    """What is counted: pods that match *all* the predicates, including terminating ones or not.

    With `on_trial_only` existing pods do not count, only those that a trial adds or removes (for
    instance a spread constraint that selects everything).
    """

    predicates: tuple[PodPredicate, ...]
    counts_terminating: bool
    on_trial_only: bool = False

    @property
    def indexed_by(self) -> PodPredicate:
        """A predicate that all counted pods match."""
        return self.predicates[0] if self.predicates else EVERYBODY

    def counts(self, *, is_terminating: bool) -> bool:
        """Whether a matching existing pod counts."""
        return not self.on_trial_only and (self.counts_terminating or not is_terminating)


class PodCounter(Tally):
    """The number of pods that match a key, by row. A dropped counter is no longer updated.

    `uncounted` are label sets whose pods are still to be counted, possibly too many for one turn.
    Until then changes of their pods are ignored. `finding` yields more of them, in parts; until it
    ends, changes of any pods are ignored.
    """

    __slots__ = ("_matcher", "_namespaces", "finding", "is_dropped", "key", "uncounted", "used")

    def __init__(self, ledger: TallyLedger, key: CounterKey) -> None:
        super().__init__(ledger)
        self.key = key
        self.used = 0
        self.is_dropped = False
        self.uncounted: dict[LabelSet, None] = {}
        self.finding: Iterator[Sequence[LabelSet]] | None = None
        named = [p.namespaces for p in key.predicates if p.namespaces is not None]
        self._namespaces = frozenset.intersection(*named) if named else None
        self._matcher = Matcher(r for p in key.predicates for r in p.selector.requirements)

    def matches(self, label_set: LabelSet) -> bool:
        """Whether all predicates of the key match."""
        return (
            self._namespaces is None or label_set.namespace in self._namespaces
        ) and self._matcher.matches(label_set.labels)

    @property
    def is_filling(self) -> bool:
        """Whether pods older than the counter are still to be counted."""
        return self.finding is not None or bool(self.uncounted)

    def puts_off(self, label_set: LabelSet) -> bool:
        """Whether pods with these labels will be counted later."""
        if self.finding is not None:
            self.uncounted[label_set] = None
        return label_set in self.uncounted


class TermKind(Enum):
    """The field of a pod's affinity that has the term, in the order of `AffinityTerms`."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


class TermKey(NamedTuple):
    """A distinct term of placed pods.

    The `namespace_selector` applies to the *incoming* pod's namespace.
    """

    kind: TermKind
    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    weight: int


class MatchingTerm(NamedTuple):
    """A term of placed pods that matches a pod; `tally`: the nodes of the pods that have it."""

    tally: Tally
    kind: TermKind
    topology_key: str
    weight: int


class TermCounter(Tally):
    """The nodes of the pods that have a term."""

    __slots__ = ("_matcher", "key")

    def __init__(self, ledger: TallyLedger, key: TermKey) -> None:
        super().__init__(ledger)
        self.key = key
        self._matcher = Matcher(key.selector.requirements)

    def matches_labels(self, label_set: LabelSet, namespace_labels: dict[str, str]) -> bool:
        """Whether the term matches a pod with these labels in a namespace with those labels."""
        key = self.key
        inside = label_set.namespace in key.namespaces or (
            key.namespace_selector is not None and key.namespace_selector.matches(namespace_labels)
        )
        return inside and self._matcher.matches(label_set.labels)


class SelectorIndex(Generic[C]):
    """Counters by namespace and one `key In (…)` requirement, so that few are candidates."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str | None, str, str], list[C]] = defaultdict(list)
        self._rest: dict[str | None, list[C]] = defaultdict(list)

    def add(self, namespaces: frozenset[str] | None, selector: Selector, counter: C) -> None:
        """`namespaces`: the only ones in which it can match; None: any."""
        places: Iterable[str | None] = (None,) if namespaces is None else namespaces
        required = next((r for r in selector.requirements if r.operator == "In"), None)
        for place in places:
            if required is None:
                self._rest[place].append(counter)
            else:
                for value in required.values:
                    self._by_label[place, required.key, value].append(counter)

    @property
    def deepest(self) -> int:
        """The largest number of entries with an equal key: the maximum of candidates per lookup."""
        return max(map(len, (*self._by_label.values(), *self._rest.values())), default=0)

    def candidates(self, label_set: LabelSet) -> Iterator[C]:
        """Each counter that might match, once."""
        for place in (None, label_set.namespace):
            yield from self._rest.get(place, ())
            for key, value in label_set.labels.items():
                yield from self._by_label.get((place, key, value), ())


def term_keys(terms: AffinityTerms) -> Iterator[TermKey]:
    """Keys of a pod's terms; terms without a selector match nothing and are left out."""
    for kind, group in zip(TermKind, terms, strict=True):
        for term in group:
            if term.selector is not None:
                yield TermKey(
                    kind,
                    term.topology_key,
                    term.selector,
                    term.namespaces,
                    term.namespace_selector,
                    term.weight,
                )
