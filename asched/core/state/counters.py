"""What can be counted, and the counters: pods that match, and terms that placed pods carry.

`topology.py` owns them and moves them; here stands what each of them means, and the index that
finds those a pod might move.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from asched.core.model.selector import Matcher, Selector
from asched.core.state.affinity_terms import AffinityTerms
from asched.core.state.pods import LabelSet
from asched.core.state.tally import Tally, TallyLedger


class PodPredicate(NamedTuple):
    """A pod matches if it is in the namespaces (None: in any) and all of the selector holds."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, label_set: LabelSet) -> bool:
        return (
            self.namespaces is None or label_set.namespace in self.namespaces
        ) and self.selector.matches(label_set.labels)


#: What every pod matches.
EVERYBODY: Final = PodPredicate(None, Selector(()))


class CounterKey(NamedTuple):
    """What is counted: pods that match *all* the predicates; terminating ones or not.

    With `on_trial_only` the pods that are really there do not count, only what a trial adds to them
    or takes from them (the spread constraint that selects everything is such a case).
    """

    predicates: tuple[PodPredicate, ...]
    counts_terminating: bool
    on_trial_only: bool = False

    @property
    def found_by(self) -> PodPredicate:
        """What all pods that it counts match at least."""
        return self.predicates[0] if self.predicates else EVERYBODY

    def make(self, ledger: TallyLedger) -> "PodCounter":
        """Its counter, which has counted nothing yet."""
        return PodCounter(ledger, self)

    def counts(self, *, is_terminating: bool) -> bool:
        """Whether a matching pod that is really there counts."""
        return not self.on_trial_only and (self.counts_terminating or not is_terminating)


class AnyCounterKey(Protocol):
    """What a counter may be asked for by: a `CounterKey`, or `many_terms.ManyTerms`."""

    @property
    def counts_terminating(self) -> bool: ...

    @property
    def on_trial_only(self) -> bool: ...

    @property
    def found_by(self) -> PodPredicate: ...

    def make(self, ledger: TallyLedger, /) -> "PodCounter":
        """Its counter, which has counted nothing yet. Raises OutOfTurn."""

    def counts(self, *, is_terminating: bool) -> bool: ...


class PodCounter(Tally):
    """How many pods that match a key are where. A dropped one is not kept up to date any more.

    `uncounted` are label sets whose pods have still to be counted: there may be too many for one
    turn. Until then, their pods come and go unnoticed. `finding` gives more of them, in parts;
    until it ends, so it is with everybody's pods.
    """

    __slots__ = ("_matcher", "_namespaces", "finding", "is_dropped", "key", "uncounted", "used")

    #: whether a pod may count for more than one
    is_weighed = False
    #: label sets for a step of the budget, when its pods are counted
    label_sets_per_step = 10.0

    def __init__(self, ledger: TallyLedger, key: AnyCounterKey) -> None:
        super().__init__(ledger)
        self.key = key
        self.used = 0
        self.is_dropped = False
        self.uncounted: dict[LabelSet, None] = {}
        self.finding: Iterator[Sequence[LabelSet]] | None = None
        self._prepare()

    def _prepare(self) -> None:
        key = self.key
        assert isinstance(key, CounterKey)
        named = [p.namespaces for p in key.predicates if p.namespaces is not None]
        self._namespaces = frozenset.intersection(*named) if named else None
        self._matcher = Matcher(r for p in key.predicates for r in p.selector.requirements)

    def matches(self, label_set: LabelSet) -> bool:
        """Whether all predicates of the key do."""
        return (
            self._namespaces is None or label_set.namespace in self._namespaces
        ) and self._matcher.matches(label_set.labels)

    def weight_of(self, label_set: LabelSet) -> int:
        """For how much a pod with these labels counts."""
        return int(self.matches(label_set))

    @property
    def is_filling(self) -> bool:
        """Whether pods that were there before it have still to be counted."""
        return self.finding is not None or bool(self.uncounted)

    def puts_off(self, label_set: LabelSet) -> bool:
        """Whether pods with these labels will be counted later, as they are then."""
        if self.finding is not None:
            self.uncounted[label_set] = None
        return label_set in self.uncounted


class TermKind(Enum):
    """Which stanza of the carrier a term stands in, in the order of `AffinityTerms`."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


class TermKey(NamedTuple):
    """A distinct term of placed pods.

    `namespace_selector` is judged on the *incoming* pod's namespace.
    """

    kind: TermKind
    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    weight: int


class Spoken(NamedTuple):
    """Terms of one kind and topology key that placed pods carry and that match a pod: where their
    carriers are, and what the terms of one carrier weigh together.
    """

    tally: Tally
    kind: TermKind
    topology_key: str
    weight: int
    #: how many terms these are of one carrier
    number: int = 1


class TermCounter(Tally):
    """Where the carriers of a term are."""

    __slots__ = ("_matcher", "key")

    def __init__(self, ledger: TallyLedger, key: TermKey) -> None:
        super().__init__(ledger)
        self.key = key
        self._matcher = Matcher(key.selector.requirements)

    def speaks_of(self, label_set: LabelSet, namespace_labels: dict[str, str]) -> bool:
        """Whether the term matches a pod with these labels in a namespace with those labels."""
        key = self.key
        inside = label_set.namespace in key.namespaces or (
            key.namespace_selector is not None and key.namespace_selector.matches(namespace_labels)
        )
        return inside and self._matcher.matches(label_set.labels)


#: Whatever speaks for pods by a selector.
C = TypeVar("C")


class SelectorIndex(Generic[C]):
    """Counters by namespace and one `key In (…)` requirement, so that few must be asked."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str | None, str, str], list[C]] = defaultdict(list)
        self._rest: dict[str | None, list[C]] = defaultdict(list)

    def add(self, namespaces: frozenset[str] | None, selector: Selector, counter: C) -> None:
        """`namespaces` are the only ones in which it can match; None: in any."""
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
        """How many it cannot tell apart at most: so many may be candidates at one look."""
        return max(map(len, (*self._by_label.values(), *self._rest.values())), default=0)

    def candidates(self, label_set: LabelSet) -> Iterator[C]:
        """Each counter that might match, once."""
        for place in (None, label_set.namespace):
            yield from self._rest.get(place, ())
            for key, value in label_set.labels.items():
                yield from self._by_label.get((place, key, value), ())


def term_keys(terms: AffinityTerms) -> Iterator[TermKey]:
    """A term without a selector matches nothing, so it is nobody's."""
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
