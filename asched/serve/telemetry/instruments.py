"""Counters, gauges and histograms cheap enough for the scheduling loop; `page.py` exposes them with
prometheus-client.

prometheus-client's instruments lock each sum and bucket and scan the buckets one by one; these are
plain attributes and one bisection (DECISIONS 16 has figures). One thread (the event loop) writes
them and another one (which renders a page) reads them; a page may therefore contain a part of an
observation, but no invalid value.

Bounds  CHILDREN_MAX label sets per family; further ones share the child whose labels are all
        "other", so that a page cannot grow without limit.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec

#: Far above the label sets of a real configuration (plugins, events, hints). A guess.
CHILDREN_MAX: Final = 5_000
OTHER: Final = "other"

Labels = tuple[str, ...]


class Value:
    """A counter or a gauge: add to `value`, or set it."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def reset(self) -> None:
        self.value = 0.0


class Histogram:
    """Observations by bucket; `bounds` are upper bounds, without +Inf."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def reset(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0


Child = TypeVar("Child", Value, Histogram)


class Described(msgspec.Struct, eq=False):
    """What the page says of a family."""

    name: str
    kind: str
    text: str
    label_names: Labels


class Family(Described, Generic[Child], eq=False):
    """All children of one metric. `of` finds or makes the child of a label set."""

    make: Callable[[], Child]
    children: dict[Labels, Child] = msgspec.field(default_factory=dict)

    def of(self, *labels: str) -> Child:
        """The child of these label values, in the order of the label names."""
        child = self.children.get(labels)
        if child is None:
            if len(self.children) >= CHILDREN_MAX:
                labels = (OTHER,) * len(labels)
            child = self.children.setdefault(labels, self.make())
        return child

    def reset(self) -> None:
        """Drop all observations and their label sets, for `DELETE /metrics`. Gauges show states and
        are kept.
        """
        if self.kind == "gauge":
            return
        for child in self.children.values():
            child.reset()
        self.children = {labels: child for labels, child in self.children.items() if not labels}


class CounterFamily(Family[Value], eq=False):
    """Counters, of which callers add to one at a time."""

    def add(self, *labels: str, by: float = 1.0) -> None:
        self.of(*labels).value += by


class Pulled(Described, eq=False):
    """A family whose values are read when a page is made."""

    read: Callable[[], Mapping[Labels, float]]

    def reset(self) -> None:
        """Do nothing: values are read on demand."""

    def values(self) -> Iterator[tuple[Labels, float]]:
        """By labels, sorted."""
        yield from sorted(self.read().items())


F = TypeVar("F", CounterFamily, Family[Value], Family[Histogram])

AnyFamily = Family[Value] | Family[Histogram] | Pulled


class Families:
    """The families of a process; iterated over by name."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}

    def __iter__(self) -> Iterator[AnyFamily]:
        for _, family in sorted(self._families.items()):
            yield family

    def drop(self, name: str) -> None:
        del self._families[name]

    def counter(self, name: str, text: str, labels: Labels = ()) -> CounterFamily:
        return self._add(CounterFamily(name, "counter", text, labels, Value))

    def gauge(self, name: str, text: str, labels: Labels) -> Family[Value]:
        return self._add(Family(name, "gauge", text, labels, Value))

    def histogram(
        self, name: str, text: str, bounds: Sequence[float], labels: Labels = ()
    ) -> Family[Histogram]:
        return self._add(Family(name, "histogram", text, labels, lambda: Histogram(bounds)))

    def pulled(
        self,
        name: str,
        kind: str,
        text: str,
        labels: Labels,
        read: Callable[[], Mapping[Labels, float]],
    ) -> None:
        """A counter or gauge whose values `read` returns when a page is made."""
        self._families[name] = Pulled(name, kind, text, labels, read)

    def reset(self) -> None:
        for family in self._families.values():
            family.reset()

    def _add(self, family: F) -> F:
        if not family.label_names:
            family.of()
        self._families[family.name] = family
        return family


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bucket bounds, each `factor` times the previous one, computed as Go does."""
    bounds = []
    bound = start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)


class Exposition(msgspec.Struct, frozen=True):
    """Disabled metrics, and by metric and label the values to show."""

    disabled: frozenset[str] = frozenset()
    allowed: Mapping[str, Mapping[str, frozenset[str]]] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(disabled: Iterable[str], allow_lists: Mapping[str, str]) -> "Exposition":
        """From the flags' values; `allow_lists` maps "metric,label" to comma-separated values."""
        allowed: dict[str, dict[str, frozenset[str]]] = {}
        for key, values in allow_lists.items():
            metric, label = key.split(",")
            allowed.setdefault(metric, {})[label] = frozenset(values.split(","))
        return Exposition(frozenset(disabled), allowed)
