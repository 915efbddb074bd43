"""Counters, gauges and histograms cheap enough for the scheduling loop; `page.py` exposes them with
prometheus-client.

prometheus-client's instruments lock each sum and bucket and scan the buckets one by one; these are
plain attributes and one bisection (DECISIONS 16 has figures). One thread (the event loop) writes
them and another one (which renders a page) reads them; a page may therefore contain a part of an
observation, but no invalid value.

Label values come from objects, too, and any text may be one. `label_value` cuts them at one spot,
before they are stored.

Bounds  LABEL_MAX characters per label value; CHILDREN_MAX label sets and FAMILY_BYTES_MAX per
        family, PAGE_BYTES_MAX for all families of a process. Further label sets share the child
        whose labels are all "other", so that a page cannot grow without limit.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec

#: Far above the label sets of a real configuration (plugins, events, hints). A guess.
CHILDREN_MAX: Final = 5_000
LABEL_MAX: Final = 64
FAMILY_BYTES_MAX: Final = 8 << 20
PAGE_BYTES_MAX: Final = 32 << 20
#: Of a line: its value, and the bound of a bucket.
LINE_BYTES: Final = 32
OTHER: Final = "other"

Labels = tuple[str, ...]


def label_value(text: str) -> str:
    """The part of a text that a label shows, as a page can encode it."""
    return text[:LABEL_MAX].encode(errors="replace").decode()


class PageBytes:
    """The bytes that the families of a process may still add to the page."""

    def __init__(self) -> None:
        self.left = PAGE_BYTES_MAX


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

    def set_bytes(self, labels: Labels, lines: int = 1) -> int:
        """The bytes of a label set on the page, about."""
        line = len(self.name) + sum(map(len, self.label_names)) + LINE_BYTES
        return lines * (line + sum(len(label.encode()) + len('="",') for label in labels))


class Family(Described, Generic[Child], eq=False):
    """All children of one metric. `of` finds or makes the child of a label set."""

    make: Callable[[], Child]
    page: PageBytes
    #: Of one child on the page.
    lines: int = 1
    children: dict[Labels, Child] = msgspec.field(default_factory=dict)
    bytes_used: int = 0

    def of(self, *labels: str) -> Child:
        """The child of these label values, in the order of the label names."""
        child = self.children.get(labels)
        return self._of_new(labels) if child is None else child

    def _of_new(self, labels: Labels) -> Child:
        labels = tuple(map(label_value, labels))
        child = self.children.get(labels)
        if child is None:
            size = self.set_bytes(labels, self.lines)
            if (
                len(self.children) >= CHILDREN_MAX
                or size > FAMILY_BYTES_MAX - self.bytes_used
                or size > self.page.left
            ):
                labels = (OTHER,) * len(labels)
                size = 0 if labels in self.children else self.set_bytes(labels, self.lines)
            self._use(size)
            child = self.children.setdefault(labels, self.make())
        return child

    def _use(self, size: int) -> None:
        self.bytes_used += size
        self.page.left -= size

    def reset(self) -> None:
        """Drop all observations and their label sets, for `DELETE /metrics`. Gauges show states and
        are kept.
        """
        if self.kind == "gauge":
            return
        for child in self.children.values():
            child.reset()
        self.children = {labels: child for labels, child in self.children.items() if not labels}
        self._use(-self.bytes_used)


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
        """By labels, sorted; with the limits of `Family`."""
        found: dict[Labels, float] = {}
        size = 0
        for labels, value in sorted(self.read().items()):
            shown = tuple(map(label_value, labels))
            if shown not in found:
                size += self.set_bytes(shown)
                if len(found) >= CHILDREN_MAX or size > FAMILY_BYTES_MAX:
                    shown = (OTHER,) * len(labels)
            found[shown] = found.get(shown, 0.0) + value
        yield from found.items()


F = TypeVar("F", CounterFamily, Family[Value], Family[Histogram])

AnyFamily = Family[Value] | Family[Histogram] | Pulled


class Families:
    """The families of a process; iterated over by name."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}
        self._page = PageBytes()

    def __iter__(self) -> Iterator[AnyFamily]:
        for _, family in sorted(self._families.items()):
            yield family

    def drop(self, name: str) -> None:
        del self._families[name]

    def counter(self, name: str, text: str, labels: Labels = ()) -> CounterFamily:
        return self._add(CounterFamily(name, "counter", text, labels, Value, self._page))

    def gauge(self, name: str, text: str, labels: Labels) -> Family[Value]:
        return self._add(Family(name, "gauge", text, labels, Value, self._page))

    def histogram(
        self, name: str, text: str, bounds: Sequence[float], labels: Labels = ()
    ) -> Family[Histogram]:
        lines = len(bounds) + 3  # the bucket +Inf, sum and count
        return self._add(
            Family(name, "histogram", text, labels, lambda: Histogram(bounds), self._page, lines)
        )

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
