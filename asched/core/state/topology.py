"""Counts of pods per node row and per topology domain, kept up to date as single pods come and go.

Affinity and spread ask two questions. *How many pods that match this selector are in that domain?*
A `PodCounter` answers it: a predicate on pods with counts per row, and per value of any label key
that somebody asked for. *Which domains hold pods whose own terms speak of me?* A `TermCounter`
answers it: one distinct term that placed pods carry, with the number of carriers per domain.

Nothing is recounted from pods: a counter is filled once when it is first asked for, then every pod
that appears on or leaves a row moves it by one. Which counters a pod moves is remembered per set of
labels. An index by the first `key In (value)` requirement keeps that lookup short when there are
thousands.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.model.selector import Selector
from asched.core.state.nodes import NodeTable
from asched.core.state.pods import LabelSet, PodInfo

I64 = npt.NDArray[np.int64]

#: Pod counters kept before the ones unused for longest go. A guess: a cluster with as many distinct
#: selectors in use at one time was never seen.
COUNTERS_MAX: Final = 20_000


class PodPredicate(NamedTuple):
    """A pod matches if it is in the namespaces (None: in any) and all of the selector holds."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, label_set: LabelSet) -> bool:
        return (
            self.namespaces is None or label_set.namespace in self.namespaces
        ) and self.selector.matches(label_set.labels)


class CounterKey(NamedTuple):
    """What is counted: pods that match *all* the predicates; terminating ones or not."""

    predicates: tuple[PodPredicate, ...]
    counts_terminating: bool


class Tally:
    """Counts per row, and per domain for each topology key that was asked for."""

    __slots__ = ("_nodes", "by_row", "domains", "total", "version")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.by_row: I64 = np.zeros(nodes.columns.capacity, dtype=np.int64)
        self.domains: dict[str, I64] = {}
        self.version = 0
        self.total = 0

    def move(self, row: int, amount: int) -> None:
        """Add (or with a negative amount take away) at a row."""
        if row >= len(self.by_row):
            self._grow(self._nodes.columns.capacity)
        self.by_row[row] += amount
        self.total += amount
        self.version += 1
        for key, counts in self.domains.items():
            value = self._nodes.label_column(key).ids[row]
            if value >= len(counts):
                counts = self.domains[key] = _grown(counts, 2 * int(value) + 1)  # noqa: PLW2901
            counts[value] += amount
            counts[0] = 0

    def rows(self) -> I64:
        """int64[H] counts for all rows up to the table's height."""
        if len(self.by_row) < self._nodes.height:
            self._grow(self._nodes.columns.capacity)
        return self.by_row[: self._nodes.height]

    def domain(self, key: str) -> I64:
        """int64[D] counts per value id of a label key; index 0 (no such label) is always 0."""
        column = self._nodes.label_column(key)
        counts = self.domains.get(key)
        if counts is None:
            ids = column.ids[: self._nodes.height]
            counts = np.zeros(len(column.values), dtype=np.int64)
            np.add.at(counts, ids, self.rows())
            counts[0] = 0
            self.domains[key] = counts
        if len(counts) < len(column.values):
            counts = self.domains[key] = _grown(counts, len(column.values))
        return counts

    def relabel(self, key: str) -> None:
        """A label moved on some row: the domains of that key are summed anew when next asked
        for.
        """
        if self.domains.pop(key, None) is not None:
            self.version += 1

    def _grow(self, size: int) -> None:
        self.by_row = _grown(self.by_row, size)


def _grown(counts: I64, size: int) -> I64:
    if size <= len(counts):
        return counts
    fresh = np.zeros(size, dtype=np.int64)
    fresh[: len(counts)] = counts
    return fresh


class PodCounter(Tally):
    """How many pods that match a key are where."""

    __slots__ = ("key", "used")

    def __init__(self, nodes: NodeTable, key: CounterKey) -> None:
        super().__init__(nodes)
        self.key = key
        self.used = 0

    def matches(self, label_set: LabelSet) -> bool:
        return all(predicate.matches(label_set) for predicate in self.key.predicates)


class TermKind(Enum):
    """Which stanza of the carrier a term stands in."""

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


class TermCounter(Tally):
    """Where the carriers of a term are."""

    __slots__ = ("key",)

    def __init__(self, nodes: NodeTable, key: TermKey) -> None:
        super().__init__(nodes)
        self.key = key

    def speaks_of(self, label_set: LabelSet, namespace_labels: dict[str, str]) -> bool:
        """Whether the term matches a pod with these labels in a namespace with those labels."""
        key = self.key
        inside = label_set.namespace in key.namespaces or (
            key.namespace_selector is not None and key.namespace_selector.matches(namespace_labels)
        )
        return inside and key.selector.matches(label_set.labels)


C = TypeVar("C", PodCounter, TermCounter)


class SelectorIndex(Generic[C]):
    """Counters by one `key In (…)` requirement of their selector, so that few must be asked."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[C]] = defaultdict(list)
        self._rest: list[C] = []

    def add(self, selector: Selector, counter: C) -> None:
        for requirement in selector.requirements:
            if requirement.operator == "In":
                for value in requirement.values:
                    self._by_label[requirement.key, value].append(counter)
                return
        self._rest.append(counter)

    def candidates(self, labels: dict[str, str]) -> Iterator[C]:
        yield from self._rest
        for item in labels.items():
            yield from self._by_label.get(item, ())


class Topology:
    """All counters. `generation` moves when a counter is made or dropped: what was found before is
    old.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._counters: dict[CounterKey, PodCounter] = {}
        self._index: SelectorIndex[PodCounter] = SelectorIndex()
        self._terms: dict[TermKey, TermCounter] = {}
        self._terms_index: SelectorIndex[TermCounter] = SelectorIndex()
        self._uses = 0
        self.generation = 0
        #: moves when a distinct term is carried for the first time: matches found before are
        #: incomplete
        self.terms_generation = 0

    def counter(self, key: CounterKey, placed: Iterable[PodInfo]) -> PodCounter:
        """The counter of a key; a new one is filled from the pods that are placed now."""
        counter = self._counters.get(key)
        if counter is None:
            if len(self._counters) >= COUNTERS_MAX:
                self._drop_unused()
            counter = self._counters[key] = PodCounter(self._nodes, key)
            self._index.add(key.predicates[0].selector if key.predicates else Selector(()), counter)
            self.generation += 1
            self._fill(counter, placed)
        self._uses += 1
        counter.used = self._uses
        return counter

    def terms_speaking_of(
        self, label_set: LabelSet, namespace_labels: dict[str, str]
    ) -> list[TermCounter]:
        """The distinct terms of placed pods (past ones too) that match a pod with these labels."""
        return [
            counter
            for counter in self._terms_index.candidates(label_set.labels)
            if counter.speaks_of(label_set, namespace_labels)
        ]

    def move(self, info: PodInfo, row: int, amount: int) -> None:
        """A pod appeared on (+1) or left (-1) a row."""
        for counter in self._counters_of(info.cls.label_set):
            if counter.key.counts_terminating or not info.pod.is_terminating:
                counter.move(row, amount)
        if info.cls.has_affinity:
            for term in self._terms_of(info):
                term.move(row, amount)

    def relabel(self, keys: Iterable[str]) -> None:
        """Labels with these keys changed on some row."""
        for key in keys:
            for counter in (*self._counters.values(), *self._terms.values()):
                counter.relabel(key)

    def _counters_of(self, label_set: LabelSet) -> list[PodCounter]:
        if label_set.generation != self.generation:
            label_set.counters = [
                c for c in self._index.candidates(label_set.labels) if c.matches(label_set)
            ]
            label_set.generation = self.generation
        return label_set.counters  # type: ignore[return-value]

    def _terms_of(self, info: PodInfo) -> list[TermCounter]:
        try:
            terms = info.cls.terms
        except ValueError:  # a selector that makes no sense speaks of nobody
            return []
        kinds = zip(
            (
                TermKind.REQUIRED_AFFINITY,
                TermKind.REQUIRED_ANTI_AFFINITY,
                TermKind.PREFERRED_AFFINITY,
                TermKind.PREFERRED_ANTI_AFFINITY,
            ),
            terms,
            strict=True,
        )
        found = []
        for kind, group in kinds:
            for term in group:
                if term.selector is None:
                    continue
                key = TermKey(
                    kind,
                    term.topology_key,
                    term.selector,
                    term.namespaces,
                    term.namespace_selector,
                    term.weight,
                )
                counter = self._terms.get(key)
                if counter is None:
                    counter = self._terms[key] = TermCounter(self._nodes, key)
                    self._terms_index.add(key.selector, counter)
                    self.terms_generation += 1
                found.append(counter)
        return found

    def _fill(self, counter: PodCounter, placed: Iterable[PodInfo]) -> None:
        matched: dict[int, bool] = {}
        rows: dict[int, int] = defaultdict(int)
        for info in placed:
            label_set = info.cls.label_set
            hit = matched.get(label_set.number)
            if hit is None:
                hit = matched[label_set.number] = counter.matches(label_set)
            if hit and (counter.key.counts_terminating or not info.pod.is_terminating):
                rows[info.row] += 1
        for row, count in rows.items():
            counter.move(row, count)

    def _drop_unused(self) -> None:
        kept = sorted(self._counters.values(), key=lambda c: c.used)[COUNTERS_MAX // 2 :]
        self._counters = {counter.key: counter for counter in kept}
        self._index = SelectorIndex()
        for counter in kept:
            predicates = counter.key.predicates
            self._index.add(predicates[0].selector if predicates else Selector(()), counter)
        self.generation += 1
