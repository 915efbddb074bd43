"""Counters and their keys: pods that match, and terms that placed pods have.

`topology.py` owns and updates them; this module defines their meaning, and the index that finds the
counters a pod may change.

Tallies: counts per row and per topology domain, updated one by one.

A tally stores its counts per row sparsely; the dense column over all rows, and the counts per value
of a label key, are made on first use and updated from then on. A domain costs nothing until it is
used, and decisions never iterate over pods.

`version` identifies a state of the counts: it is drawn from one counter for all tallies, so equal
versions mean equal counts. A trial draws versions that are not used again, and its end restores the
old ones.

The pods of each label set by row, and the label sets that a selector may match.

New counters are filled from them. Each waiting pod may have a selector of its own, and each running
pod a label of its own: the sets with a label key are therefore indexed by its value, for keys that
selectors use.

There may be a hundred thousand sets: they are returned in parts, and a key that is used for the
first time is indexed in parts, one key at a time, for any caller. Sets that are added or removed
meanwhile are indexed at once.

Bounds  KEYS_MAX keys are indexed, those used last, and ENTRIES_MAX entries: one for each set with
        such a key. The last key is indexed whatever its number of sets.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, count
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from asched.core.cluster.budget import Budget
from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import AMOUNTS, NodeTable
from asched.core.cluster.pods import AffinityTerms, LabelSet
from asched.core.model.arrays import I64
from asched.core.model.selector import Matcher, Selector

#: An object with a selector.
C = TypeVar("C")
#: One set or several: usually it is one, and a dict for each would be large.
Sets = LabelSet | dict[LabelSet, None]

#: The counts of a label that no node has.
NOWHERE: Final[I64] = np.zeros(1, dtype=np.int64)
NOWHERE.flags.writeable = False
#: Changes that a tally stores: a reader that is further behind reads all. There are thousands of
#: tallies, and usually one change between two reads.
LOGGED_MAX: Final = 32
#: Arrays grow by this factor, so that a stream of new nodes does not copy them each time.
GROWTH: Final = 2


class TallyLedger:
    """Shared by all tallies of a cluster: the nodes, the counter of versions, the label keys in
    use.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.ticks = count(1)
        #: label keys by whose values any tally counts
        self.keys: set[str] = set()


class Tally:
    """Counts per row, and per domain for each topology key in use."""

    __slots__ = ("_by_row", "_dense", "_domains", "_ledger", "log", "total", "version")

    def __init__(self, ledger: TallyLedger) -> None:
        self._ledger = ledger
        self._by_row: dict[int, int] = {}
        self._dense: I64 | None = None
        self._domains: dict[str, I64] = {}
        self.total = 0
        self.version = next(ledger.ticks)
        #: the rows whose counts changed, in trials too
        self.log = RowLog(LOGGED_MAX)

    def move(self, row: int, amount: int) -> None:
        """Add an amount, possibly negative, at a row."""
        remaining = self._by_row.get(row, 0) + amount
        if remaining:
            self._by_row[row] = remaining
        else:
            self._by_row.pop(row, None)
        self.total += amount
        self.version = next(self._ledger.ticks)
        self.log.add(row, AMOUNTS)
        if self._dense is not None:
            if row >= len(self._dense):
                self._dense = _grown(self._dense, self._ledger.nodes.columns.capacity)
            self._dense[row] += amount
        for key, counts in self._domains.items():
            value = self._ledger.nodes.label_column(key).ids.item(row)
            if value:
                if value >= len(counts):
                    counts = self._domains[key] = _grown(counts, value + 1)  # noqa: PLW2901
                counts[value] += amount

    def rows(self) -> I64:
        """int64[H] counts of all rows up to the table's height. Read-only; must not be stored."""
        nodes = self._ledger.nodes
        if self._dense is None:
            self._dense = np.zeros(nodes.columns.capacity, dtype=np.int64)
            for row, number in self._by_row.items():
                self._dense[row] = number
        elif len(self._dense) < nodes.height:
            self._dense = _grown(self._dense, nodes.columns.capacity)
        elif len(self._dense) > GROWTH * nodes.columns.capacity:
            self._dense = self._dense[: nodes.columns.capacity].copy()
        return self._dense[: nodes.height]

    def at(self, row: int) -> int:
        """The count of one row."""
        return self._by_row.get(row, 0)

    def domain(self, key: str) -> I64:
        """int64[D] counts per value id of a label key; index 0 (no such label) is always 0.

        At least as long as the column has values. Read-only; must not be stored: it changes.
        """
        column = self._ledger.nodes.label_column(key)
        counts = self._domains.get(key)
        if counts is None:
            if not self._ledger.nodes.is_carried(key):
                return NOWHERE
            self._ledger.keys.add(key)
            counts = np.zeros(len(column.values), dtype=np.int64)
            by_row, size = self._by_row, len(self._by_row)
            numbers = np.fromiter(by_row.values(), dtype=np.int64, count=size)
            np.add.at(counts, column.ids[np.fromiter(by_row, dtype=np.int64, count=size)], numbers)
            counts[0] = 0
            self._domains[key] = counts
        elif len(counts) < len(column.values):
            counts = self._domains[key] = _grown(counts, len(column.values))
        return counts[: len(column.values)]

    def of_domain(self, key: str, id_: int) -> int:
        """The count of one domain."""
        counts = self._domains.get(key, NOWHERE)
        return counts.item(id_) if id_ < len(counts) else self.domain(key).item(id_)

    def relabel(self, row: int, key: str) -> None:
        """A label value of a row has changed: if the row has counts, the key is summed again on
        next use.
        """
        if row in self._by_row and self._domains.pop(key, None) is not None:
            self.version = next(self._ledger.ticks)
            self.log.forget()

    def forget(self, key: str) -> None:
        """No node has the label any more."""
        if self._domains.pop(key, None) is not None:
            self.version = next(self._ledger.ticks)
            self.log.forget()


def _grown(counts: I64, size: int) -> I64:
    fresh = np.zeros(max(size, GROWTH * len(counts)), dtype=np.int64)
    fresh[: len(counts)] = counts
    return fresh


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


#: A guess: selectors of a cluster use a handful of keys.
KEYS_MAX: Final = 64
#: Some 100 bytes each if all values are distinct, 350 if two sets share each value.
ENTRIES_MAX: Final = 1 << 17
#: Up to this number of sets in a namespace all are returned, without an index.
SETS_FEW: Final = 64
#: Sets per part, and per step of the budget: to be returned, and to be indexed.
PART: Final = 1_000
SETS_PER_STEP: Final = 50
READ_PER_STEP: Final = 25


class Population:
    """The pods of one label set: row -> number, terminating ones apart."""

    __slots__ = ("staying", "terminating")

    def __init__(self) -> None:
        self.staying: dict[int, int] = {}
        self.terminating: dict[int, int] = {}


class Populations:
    """All populations, by namespace. Work is noted in `budget` and never refused."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._inside: dict[str, dict[LabelSet, Population]] = defaultdict(dict)
        #: (namespace, label key) -> value -> the sets with that label
        self._by_value: OrderedDict[tuple[str, str], dict[str, Sets]] = OrderedDict()
        self._known_keys: dict[str, list[str]] = {}  # namespace -> indexed keys
        self._entries = 0
        #: the key of `_by_value` that is being indexed, and the sets still to be read
        self._reading: tuple[str, str] | None = None
        self._unread: list[LabelSet] = []

    def __iter__(self) -> Iterator[LabelSet]:
        """The label sets of all counted pods."""
        return chain.from_iterable(self._inside.values())

    def of(self, label_set: LabelSet) -> Population | None:
        """None without pods."""
        return self._inside.get(label_set.namespace, _NONE).get(label_set)

    def who_may_match(self, predicate: PodPredicate) -> Iterator[Sequence[LabelSet]]:
        """The label sets that may match, in parts, which may be empty: complete for sets whose pods
        neither come nor go between two parts.
        """
        named = next((r for r in predicate.selector.requirements if r.operator == "In"), None)
        namespaces = predicate.namespaces
        for namespace in tuple(self._inside) if namespaces is None else namespaces:
            inside = self._inside.get(namespace, _NONE)
            if len(inside) <= SETS_FEW:
                yield list(inside)
            elif named is None:
                yield from self._in_parts(list(inside))
            else:
                while not self._knows(namespace, named.key):
                    self._read()
                    yield ()
                by_value = self._by_value.get((namespace, named.key), {})
                label_sets: list[LabelSet] = []
                for value in sorted(named.values):
                    sets = by_value.get(value, ())
                    label_sets += (sets,) if isinstance(sets, LabelSet) else sets
                yield from self._in_parts(label_sets)

    def _in_parts(self, label_sets: Sequence[LabelSet]) -> Iterator[Sequence[LabelSet]]:
        if len(label_sets) <= SETS_FEW:
            yield label_sets
            return
        for start in range(0, len(label_sets), PART):
            part = label_sets[start : start + PART]
            self._budget.note(len(part) / SETS_PER_STEP)
            yield part

    def move(self, label_set: LabelSet, row: int, amount: int, is_terminating: bool) -> None:
        """A pod with these labels was added to (+1) or left (-1) a row."""
        namespace = label_set.namespace
        inside = self._inside[namespace]
        population = inside.get(label_set)
        if population is None:
            population = inside[label_set] = Population()
            for key in self._known_keys.get(namespace, ()):
                self._entries += _add(self._by_value[namespace, key], key, label_set)
            self._cut()
        rows = population.terminating if is_terminating else population.staying
        remaining = rows.get(row, 0) + amount
        if remaining:
            rows[row] = remaining
            return
        del rows[row]
        if not (population.staying or population.terminating):
            del inside[label_set]
            self._forget(label_set)
            if not inside:
                del self._inside[namespace]
                for key in self._known_keys.pop(namespace, ()):
                    self._drop((namespace, key))

    def _forget(self, label_set: LabelSet) -> None:
        namespace = label_set.namespace
        for key in self._known_keys.get(namespace, ()):
            value = label_set.labels.get(key)
            if value is not None:
                by_value = self._by_value[namespace, key]
                known = by_value.get(value, _NO_SETS)
                if known is label_set or known == {label_set: None}:
                    del by_value[value]
                elif isinstance(known, dict) and label_set in known:
                    del known[label_set]
                else:  # not indexed yet
                    continue
                self._entries -= 1

    def _knows(self, namespace: str, key: str) -> bool:
        """Whether a namespace is indexed by a key. If not, it is being indexed, or another key has
        to be indexed before.
        """
        index_key = namespace, key
        inside = self._inside.get(namespace)
        if inside is None:
            return True
        if index_key not in self._by_value:
            if self._reading is None:
                self._reading, self._unread = index_key, list(inside)
                self._by_value[index_key] = {}
                self._known_keys.setdefault(namespace, []).append(key)
            return False
        self._by_value.move_to_end(index_key)
        return index_key != self._reading

    def _read(self) -> None:
        """Index a part of the remaining sets."""
        assert self._reading is not None
        namespace, key = self._reading
        self._by_value.move_to_end(self._reading)
        inside, by_value = self._inside[namespace], self._by_value[self._reading]
        part = self._unread[-PART:]
        del self._unread[-PART:]
        self._budget.note(len(part) / READ_PER_STEP)
        for label_set in part:
            if label_set in inside:
                self._entries += _add(by_value, key, label_set)
        if not self._unread:
            self._reading = None
        self._cut()

    def _cut(self) -> None:
        """Drop the least recently used keys while there are too many keys or entries."""
        while len(self._by_value) > 1 and (
            len(self._by_value) > KEYS_MAX or self._entries > ENTRIES_MAX
        ):
            namespace, key = index_key = next(iter(self._by_value))
            by_value = self._by_value[index_key]
            self._entries -= sum(
                1 if isinstance(s, LabelSet) else len(s) for s in by_value.values()
            )
            self._drop(index_key)
            self._known_keys[namespace].remove(key)

    def _drop(self, index_key: tuple[str, str]) -> None:
        del self._by_value[index_key]
        if index_key == self._reading:
            self._reading, self._unread = None, []


def _add(by_value: dict[str, Sets], key: str, label_set: LabelSet) -> bool:
    """Add a set; returns whether it has the label and was not indexed."""
    value = label_set.labels.get(key)
    if value is None:
        return False
    known = by_value.get(value)
    if known is None:
        by_value[value] = label_set
    elif known is label_set:
        return False
    elif isinstance(known, LabelSet):
        by_value[value] = {known: None, label_set: None}
    elif label_set in known:
        return False
    else:
        known[label_set] = None
    return True


_NONE: Final[dict[LabelSet, Population]] = {}
_NO_SETS: Final[Sets] = {}
