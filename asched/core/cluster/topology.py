"""Counts of pods per node row and per topology domain, updated as single pods come and go.

Affinity and spread need two numbers. How many pods in a domain match a selector: a `PodCounter` is
a predicate on pods with counts per row, and per value of any label key in use. Which domains have
pods whose own terms match a given pod: a `TermCounter` is one distinct term of placed pods, with
the number of its pods per domain.

Pods are not recounted: a counter is filled on first use from the distinct label sets of its
namespaces; then every pod that is added to or leaves a row changes it by one. The counters that a
pod changes are cached per label set. An index by namespace and the first `key In (value)`
requirement keeps that lookup short for thousands of counters.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final
from weakref import WeakKeyDictionary

from asched.core.cluster.budget import Budget
from asched.core.cluster.counters import (
    CounterKey,
    MatchingTerm,
    PodCounter,
    SelectorIndex,
    TermCounter,
    TermKey,
    term_keys,
)
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import LabelSet, PodClass, PodInfo
from asched.core.cluster.populations import Populations
from asched.core.cluster.tallies import Tally, TallyLedger

#: Pod counters before the least recently used are dropped. A guess: no cluster is known with as
#: many distinct selectors in use at one time.
COUNTERS_MAX: Final = 20_000
#: ... and cells of eight bytes they may use if each has counts for all rows (256 MiB).
CELLS_MAX: Final = 1 << 25
#: ... but at least this number of counters.
COUNTERS_MIN: Final = 256
#: Counters, and distinct terms, before those that count nothing are dropped. A guess.
IDLE_MAX: Final = 2048
#: Steps of the budget between two charges while a new counter is filled.
FILLED_STEPS: Final = 100
#: Label sets that are counted per step of the budget.
LABEL_SETS_PER_STEP: Final = 10


class CountTrial:
    """State to be restored at the end of a trial."""

    def __init__(self) -> None:
        self.versions: dict[Tally, int] = {}
        self.made: list[PodCounter] = []


class TopologyCounters:
    """All counters. `generation` grows when one is made or dropped: cached lookups are then old."""

    def __init__(self, nodes: NodeTable, budget: Budget) -> None:
        self._budget = budget
        self._ledger = TallyLedger(nodes)
        self._counters: dict[CounterKey, PodCounter] = {}
        self._index: SelectorIndex[PodCounter] = SelectorIndex()
        self._terms: dict[TermKey, TermCounter] = {}
        self._terms_index: SelectorIndex[TermCounter] = SelectorIndex()
        self._carried: WeakKeyDictionary[PodClass, tuple[Tally, ...]] = WeakKeyDictionary()
        self._populations = Populations(budget)
        #: trials that are adding or removing pods, mostly none; read-only
        self.on_trial: list[CountTrial] = []
        self._sweep_at = self._drop_at = IDLE_MAX
        self._uses = 0
        self.generation = 0
        self._terms_moved = 0

    # --- for readers -----------------------------------------------------------------------------

    @property
    def terms_generation(self) -> int:
        """Grows when a distinct term occurs for the first time or is dropped, and with the label
        keys of nodes: earlier matches are then incomplete.
        """
        return self._terms_moved + self._ledger.nodes.keys_moved

    def counter(self, key: CounterKey) -> PodCounter:
        """The counter of a key; a new one is filled from the present pods. Raises OutOfTurn, and
        continues with that in the next call.
        """
        counter = self._counters.get(key)
        if counter is None:
            if len(self._counters) >= min(self._drop_at, self._counters_max()):
                self._drop_unused()
            counter = self._counters[key] = PodCounter(self._ledger, key)
            self._add_to_index(counter)
            self.generation += 1
            if not key.on_trial_only:
                counter.finding = self._populations.who_may_match(key.indexed_by)
            if self.on_trial:
                self.on_trial[-1].made.append(counter)
        if counter.finding or counter.uncounted:
            self._fill(counter)
        self.keep(counter)
        return counter

    def keep(self, counter: PodCounter) -> None:
        """Mark a counter as recently used."""
        self._uses += 1
        counter.used = self._uses

    def matching_terms(
        self, label_set: LabelSet, namespace_labels: dict[str, str]
    ) -> list[MatchingTerm]:
        """The distinct terms of placed pods (also former ones) that match a pod with these
        labels.
        """
        return [
            MatchingTerm(counter, counter.key.kind, counter.key.topology_key, counter.key.weight)
            for counter in self._terms_index.candidates(label_set)
            if counter.matches_labels(label_set, namespace_labels)
        ]

    def may_match_terms(self, label_set: LabelSet) -> bool:
        """Whether there may be such a term, by labels and namespaces only."""
        return next(self._terms_index.candidates(label_set), None) is not None

    # --- for the owner ---------------------------------------------------------------------------

    def move(self, info: PodInfo, row: int, amount: int) -> bool:
        """A pod was added to (+1) or left (-1) a row, also in a trial; whether counts changed."""
        trial = self.on_trial[-1] if self.on_trial else None
        label_set = info.cls.label_set
        is_terminating = info.pod.metadata.deletion_timestamp is not None
        self._populations.move(label_set, row, amount, is_terminating)
        counters = self._counters_of(label_set)
        for counter in counters:
            if (counter.finding or counter.uncounted) and counter.puts_off(label_set):
                continue
            # Upstream's trials ignore whether the pod terminates, or counted before.
            if trial is not None or counter.key.counts(is_terminating=is_terminating):
                _move(counter, row, amount, trial)
        if not info.cls.has_affinity:
            return bool(counters)
        for term in self._terms_of(info.cls):
            _move(term, row, amount, trial)
        return True

    def relabel_pod(self, info: PodInfo, old: LabelSet) -> bool:
        """A pod on its node has other labels than `old`; whether counts changed.

        Its own terms are unchanged. Not to be called in a trial.
        """
        new, row, is_terminating = info.cls.label_set, info.row, info.pod.is_terminating
        self._populations.move(old, row, -1, is_terminating)
        self._populations.move(new, row, 1, is_terminating)
        before = [c for c in self._counters_of(old) if not c.puts_off(old)]
        after = [c for c in self._counters_of(new) if not c.puts_off(new)]
        gone = [(counter, -1) for counter in before if counter not in after]
        come = [(counter, 1) for counter in after if counter not in before]
        moved = False
        for counter, amount in (*gone, *come):
            if counter.key.counts(is_terminating=is_terminating):
                counter.move(row, amount)
                moved = True
        return moved

    def begin_trial(self) -> None:
        """Changes until `end_trial` must have been reverted by then. Trials may be nested, but not
        overlap.
        """
        self.on_trial.append(CountTrial())

    def end_trial(self) -> None:
        """Restore the versions from before."""
        trial = self.on_trial.pop()
        for tally, version in trial.versions.items():
            tally.version = version
        if trial.made:  # filled during the trial without its rules
            self._drop(trial.made)

    def relabel(self, row: int, keys: Iterable[str]) -> None:
        """Labels with these keys changed on a row."""
        for key in self._ledger.keys.intersection(keys):
            for counter in self._tallies():
                counter.relabel(row, key)
        self.forget_uncarried(keys)

    def forget_uncarried(self, keys: Iterable[str]) -> None:
        """Labels with these keys changed or disappeared: without a node that has the label, its ids
        are invalid.
        """
        for key in self._ledger.keys.intersection(keys):
            if not self._ledger.nodes.is_carried(key):
                self._ledger.keys.discard(key)
                for counter in self._tallies():
                    counter.forget(key)

    # --- inside ----------------------------------------------------------------------------------

    def _tallies(self) -> Iterator[Tally]:
        yield from self._counters.values()
        yield from self._terms.values()

    def _counters_of(self, label_set: LabelSet) -> Sequence[PodCounter]:
        if label_set.generation != self.generation:
            label_set.counters = [
                c for c in self._index.candidates(label_set) if c.matches(label_set)
            ] or ()
            label_set.generation = self.generation
        return label_set.counters  # type: ignore[return-value]

    def _terms_of(self, cls: PodClass) -> tuple[Tally, ...]:
        known = self._carried.get(cls)
        if known is None:
            try:
                terms = cls.terms
            except ValueError:  # an invalid selector matches nothing
                return ()
            if len(self._terms) >= self._sweep_at:
                self._sweep_terms()
            known = tuple(self._term(key) for key in term_keys(terms))
            self._carried[cls] = known
        return known

    def _term(self, key: TermKey) -> TermCounter:
        counter = self._terms.get(key)
        if counter is None:
            counter = self._terms[key] = TermCounter(self._ledger, key)
            self._add_term_to_index(counter)
            self._terms_moved += 1
        return counter

    def _fill(self, counter: PodCounter) -> None:
        """Count the pods older than the counter. Raises OutOfTurn: the rest is counted in the next
        call.
        """
        while counter.finding is not None:
            self._budget.charge(0)
            label_sets = next(counter.finding, None)
            if label_sets is None:
                counter.finding = None
            else:
                counter.uncounted.update(dict.fromkeys(label_sets))
        uncounted, at_once = counter.uncounted, FILLED_STEPS * LABEL_SETS_PER_STEP
        while uncounted:
            self._budget.charge(min(len(uncounted), at_once) / LABEL_SETS_PER_STEP)
            for label_set in list(islice(uncounted, at_once)):
                population = self._populations.of(label_set)
                if population is not None and counter.matches(label_set):
                    for row, number in population.staying.items():
                        counter.move(row, number)
                    if counter.key.counts_terminating:
                        for row, number in population.terminating.items():
                            counter.move(row, number)
                del uncounted[label_set]

    def _add_to_index(self, counter: PodCounter) -> None:
        first = counter.key.indexed_by
        self._index.add(first.namespaces, first.selector, counter)

    def _add_term_to_index(self, counter: TermCounter) -> None:
        key = counter.key
        namespaces = key.namespaces if key.namespace_selector is None else None
        self._terms_index.add(namespaces, key.selector, counter)

    def _counters_max(self) -> int:
        cells = self._ledger.nodes.columns.capacity
        return max(COUNTERS_MIN, min(COUNTERS_MAX, CELLS_MAX // cells))

    def _drop_unused(self) -> None:
        """Drop the least recently used: of counters without pods all but half of IDLE_MAX, and half
        of the others if that leaves too many.
        """
        by_use = sorted(self._counters.values(), key=lambda counter: counter.used)
        idle = [counter for counter in by_use if not counter.total]
        if len(idle) > IDLE_MAX // 2:
            self._drop(idle[: -(IDLE_MAX // 2)])
        if len(self._counters) >= self._counters_max():
            self._drop(
                [counter for counter in by_use if not counter.is_dropped][: len(by_use) // 2]
            )
        self._drop_at = len(self._counters) + IDLE_MAX // 2
        for label_set in self._populations:
            if label_set.counters:  # rarely used label sets would keep them
                label_set.counters, label_set.generation = (), -1

    def _drop(self, unused: Iterable[PodCounter]) -> None:
        for counter in unused:
            counter.is_dropped = True
            self._counters.pop(counter.key, None)
        self._index = SelectorIndex()
        for counter in self._counters.values():
            self._add_to_index(counter)
        self.generation += 1

    def _sweep_terms(self) -> None:
        """Drop the terms without pods."""
        self._terms = {key: counter for key, counter in self._terms.items() if counter.total}
        idle = min(IDLE_MAX, self._counters_max())
        self._sweep_at = max(idle, 2 * len(self._terms))
        self._carried.clear()
        self._terms_index = SelectorIndex()
        for counter in self._terms.values():
            self._add_term_to_index(counter)
        self._terms_moved += 1


def _move(tally: Tally, row: int, amount: int, trial: CountTrial | None) -> None:
    if trial is not None:
        trial.versions.setdefault(tally, tally.version)
    tally.move(row, amount)
