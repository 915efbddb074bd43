"""Where the pods of each set of labels are, and which sets a selector may match.

A new counter is filled from them. Each waiting pod may bring a selector of its own, and each
running pod a label of its own: so the sets that carry a label key are found by its value, for keys
that selectors ask about.

Bounds  KEYS_MAX keys are known by value, those asked about last, and ENTRIES_MAX entries: one for
        each set that carries such a key. The last key is known however many carry it.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Final

from asched.core.state.counters import PodPredicate
from asched.core.state.pods import LabelSet

#: A guess: selectors of a cluster name a handful of keys.
KEYS_MAX: Final = 64
#: Some 100 bytes each if no two sets have a value in common, 350 if two have.
ENTRIES_MAX: Final = 1 << 17
#: Sets of labels in a namespace that are all looked at: so few are known by no value.
SETS_FEW: Final = 64

#: The only one with a value, or all: mostly it is one, and a dict for each of them is large.
Sets = LabelSet | dict[LabelSet, None]


class Population:
    """Where the pods of one label set are: row to number, those that terminate apart."""

    __slots__ = ("label_set", "staying", "terminating")

    def __init__(self, label_set: LabelSet) -> None:
        self.label_set = label_set
        self.staying: dict[int, int] = {}
        self.terminating: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        return not self.staying and not self.terminating

    def move(self, row: int, amount: int, is_terminating: bool) -> None:
        rows = self.terminating if is_terminating else self.staying
        left = rows.get(row, 0) + amount
        if left:
            rows[row] = left
        else:
            del rows[row]


class Populations:
    """All of them, by namespace."""

    def __init__(self) -> None:
        self._inside: dict[str, dict[LabelSet, Population]] = defaultdict(dict)
        #: (namespace, label key) -> value -> the sets with that label
        self._by_value: OrderedDict[tuple[str, str], dict[str, Sets]] = OrderedDict()
        self._known_keys: dict[str, list[str]] = {}  # namespace -> keys known by value
        self._entries = 0

    def __iter__(self) -> Iterator[LabelSet]:
        """The sets of labels that pods have somewhere."""
        return chain.from_iterable(self._inside.values())

    def of(self, label_set: LabelSet) -> Population | None:
        """None if nobody is there."""
        return self._inside.get(label_set.namespace, _NONE).get(label_set)

    def who_may_match(self, predicate: PodPredicate) -> Iterator[LabelSet]:
        """Every set of labels that matches is among them."""
        named = next((r for r in predicate.selector.requirements if r.operator == "In"), None)
        namespaces = predicate.namespaces
        for namespace in tuple(self._inside) if namespaces is None else namespaces:
            inside = self._inside.get(namespace, _NONE)
            if named is None or len(inside) <= SETS_FEW:
                yield from inside
            else:
                by_value = self._values(namespace, named.key)
                for value in sorted(named.values):
                    found = by_value.get(value, ())
                    yield from (found,) if isinstance(found, LabelSet) else found

    def move(self, label_set: LabelSet, row: int, amount: int, is_terminating: bool) -> None:
        """A pod with these labels appeared on (+1) or left (-1) a row."""
        namespace = label_set.namespace
        inside = self._inside[namespace]
        population = inside.get(label_set)
        if population is None:
            population = inside[label_set] = Population(label_set)
            for key in self._known_keys.get(namespace, ()):
                if key in label_set.labels:
                    by_value = self._by_value[namespace, key]
                    value = label_set.labels[key]
                    known = by_value.setdefault(value, label_set)
                    if known is not label_set:
                        _join(by_value, value, known, label_set)
                    self._entries += 1
            self._cut()
        population.move(row, amount, is_terminating)
        if population.is_empty:
            del inside[label_set]
            self._forget(label_set)
            if not inside:
                del self._inside[namespace]
                for key in self._known_keys.pop(namespace, ()):
                    del self._by_value[namespace, key]

    def _forget(self, label_set: LabelSet) -> None:
        namespace = label_set.namespace
        for key in self._known_keys.get(namespace, ()):
            value = label_set.labels.get(key)
            if value is not None:
                by_value = self._by_value[namespace, key]
                known = by_value[value]
                if isinstance(known, dict):
                    del known[label_set]
                if not known or known is label_set:
                    del by_value[value]
                self._entries -= 1

    def _values(self, namespace: str, key: str) -> dict[str, Sets]:
        by_value = self._by_value.get((namespace, key))
        if by_value is not None:
            self._by_value.move_to_end((namespace, key))
            return by_value
        by_value = self._by_value[namespace, key] = {}
        self._known_keys.setdefault(namespace, []).append(key)
        entries = 0
        for label_set in self._inside[namespace]:  # there may be a hundred thousand
            value = label_set.labels.get(key)
            if value is not None:
                known = by_value.setdefault(value, label_set)
                if known is not label_set:
                    _join(by_value, value, known, label_set)
                entries += 1
        self._entries += entries
        self._cut()
        return by_value

    def _cut(self) -> None:
        """Give up the keys unused for longest while there are too many, or too many carry them."""
        while len(self._by_value) > 1 and (
            len(self._by_value) > KEYS_MAX or self._entries > ENTRIES_MAX
        ):
            (namespace, key), by_value = self._by_value.popitem(last=False)
            self._entries -= sum(
                1 if isinstance(s, LabelSet) else len(s) for s in by_value.values()
            )
            self._known_keys[namespace].remove(key)
            if not self._known_keys[namespace]:
                del self._known_keys[namespace]


def _join(by_value: dict[str, Sets], value: str, known: Sets, label_set: LabelSet) -> None:
    if isinstance(known, dict):
        known[label_set] = None
    else:
        by_value[value] = {known: None, label_set: None}


_NONE: Final[dict[LabelSet, Population]] = {}
