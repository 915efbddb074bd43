"""Where the pods of each set of labels are, and which sets a selector may match.

A new counter is filled from them. Each waiting pod may bring a selector of its own, and each
running pod a label of its own: so the sets that carry a label key are found by its value, for keys
that selectors ask about.

There may be a hundred thousand sets: they are found in parts, and a key that is asked about for the
first time is read in parts, one key at a time, whoever asks. What comes and goes meanwhile is
known by value at once.

Bounds  KEYS_MAX keys are known by value, those asked about last, and ENTRIES_MAX entries: one for
        each set that carries such a key. The last key is known however many carry it.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from asched.core.state.budget import Budget
from asched.core.state.counters import PodPredicate
from asched.core.state.pods import LabelSet

#: A guess: selectors of a cluster name a handful of keys.
KEYS_MAX: Final = 64
#: Some 100 bytes each if no two sets have a value in common, 350 if two have.
ENTRIES_MAX: Final = 1 << 17
#: Sets of labels in a namespace that are all looked at: so few are known by no value.
SETS_FEW: Final = 64
#: Sets in a part, and how many of them take a step of the budget: to be found, and to be read.
PART: Final = 1_000
FOUND_PER_STEP: Final = 50
READ_PER_STEP: Final = 25

#: The only one with a value, or all: mostly it is one, and a dict for each of them is large.
Sets = LabelSet | dict[LabelSet, None]


class Population:
    """Where the pods of one label set are: row to number, those that terminate apart."""

    __slots__ = ("staying", "terminating")

    def __init__(self) -> None:
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
    """All of them, by namespace. `budget` is told what was done, and never asked."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._inside: dict[str, dict[LabelSet, Population]] = defaultdict(dict)
        #: (namespace, label key) -> value -> the sets with that label
        self._by_value: OrderedDict[tuple[str, str], dict[str, Sets]] = OrderedDict()
        self._known_keys: dict[str, list[str]] = {}  # namespace -> keys known by value
        self._entries = 0
        #: of `_by_value`, the key that is being read, and the sets that are still to be looked at
        self._reading: tuple[str, str] | None = None
        self._unread: list[LabelSet] = []

    def __iter__(self) -> Iterator[LabelSet]:
        """The sets of labels that pods have somewhere."""
        return chain.from_iterable(self._inside.values())

    def of(self, label_set: LabelSet) -> Population | None:
        """None if nobody is there."""
        return self._inside.get(label_set.namespace, _NONE).get(label_set)

    def who_may_match(self, predicate: PodPredicate) -> Iterator[Sequence[LabelSet]]:
        """In parts, which may be empty: every set of labels that matches, and to which nobody comes
        and from which nobody goes between two parts, is among them.
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
                found: list[LabelSet] = []
                for value in sorted(named.values):
                    sets = by_value.get(value, ())
                    found += (sets,) if isinstance(sets, LabelSet) else sets
                yield from self._in_parts(found)

    def _in_parts(self, found: Sequence[LabelSet]) -> Iterator[Sequence[LabelSet]]:
        if len(found) <= SETS_FEW:
            yield found
            return
        for start in range(0, len(found), PART):
            part = found[start : start + PART]
            self._budget.note(len(part) / FOUND_PER_STEP)
            yield part

    def move(self, label_set: LabelSet, row: int, amount: int, is_terminating: bool) -> None:
        """A pod with these labels appeared on (+1) or left (-1) a row."""
        namespace = label_set.namespace
        inside = self._inside[namespace]
        population = inside.get(label_set)
        if population is None:
            population = inside[label_set] = Population()
            for key in self._known_keys.get(namespace, ()):
                self._entries += _add(self._by_value[namespace, key], key, label_set)
            self._cut()
        population.move(row, amount, is_terminating)
        if population.is_empty:
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
                known = by_value.get(value, _NOBODY)
                if known is label_set or known == {label_set: None}:
                    del by_value[value]
                elif isinstance(known, dict) and label_set in known:
                    del known[label_set]
                else:  # not read yet
                    continue
                self._entries -= 1

    def _knows(self, namespace: str, key: str) -> bool:
        """Whether all sets of a namespace are known by their value of a key. Else this one is being
        read, or another is that has to be read before.
        """
        asked = namespace, key
        inside = self._inside.get(namespace)
        if inside is None:
            return True
        if asked not in self._by_value:
            if self._reading is None:
                self._reading, self._unread = asked, list(inside)
                self._by_value[asked] = {}
                self._known_keys.setdefault(namespace, []).append(key)
            return False
        self._by_value.move_to_end(asked)
        return asked != self._reading

    def _read(self) -> None:
        """Look at a part of the sets that are still unread."""
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
        """Give up the keys unused for longest while there are too many, or too many carry them."""
        while len(self._by_value) > 1 and (
            len(self._by_value) > KEYS_MAX or self._entries > ENTRIES_MAX
        ):
            namespace, key = asked = next(iter(self._by_value))
            by_value = self._by_value[asked]
            self._entries -= sum(
                1 if isinstance(s, LabelSet) else len(s) for s in by_value.values()
            )
            self._drop(asked)
            self._known_keys[namespace].remove(key)

    def _drop(self, asked: tuple[str, str]) -> None:
        del self._by_value[asked]
        if asked == self._reading:
            self._reading, self._unread = None, []


def _add(by_value: dict[str, Sets], key: str, label_set: LabelSet) -> bool:
    """Whether it has the label, and was not known yet."""
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
_NOBODY: Final[Sets] = {}
