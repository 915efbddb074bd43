"""The pods of each label set by row, and the label sets that a selector may match.

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
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from asched.core.cluster.budget import Budget
from asched.core.cluster.counters import PodPredicate
from asched.core.cluster.pods import LabelSet

#: One set or several: usually it is one, and a dict for each would be large.
Sets = LabelSet | dict[LabelSet, None]

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
