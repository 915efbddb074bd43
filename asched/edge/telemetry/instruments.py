"""Counters, gauges and histograms cheap enough for the deciding loop, exported through
prometheus-client.

prometheus-client's own instruments take a lock and look a child up by its labels at each use, some
2 µs each; these are plain attributes and one bisection, a quarter of a microsecond. They are
written by one thread (the event loop) and read by another (the one that renders a page); a page may
therefore be one observation ahead of itself, never broken.

Bounds  CHILDREN_MAX label sets per family; further ones share the child whose labels are all
        "other", so that no input can grow a page without end.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

#: Far above what plugins x events x hints of a real configuration come to. A guess.
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
    """Observations by bucket; `bounds` are upper bounds, +Inf left out."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def reset(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0


Child = TypeVar("Child", Value, Histogram)


class Family(Generic[Child]):
    """All children of one metric. `of` finds or makes the child of a label set."""

    def __init__(
        self,
        name: str,
        kind: str,
        text: str,
        label_names: Labels,
        make: Callable[[], Child],
    ) -> None:
        self.name = name
        self.kind = kind
        self.text = text
        self.label_names = label_names
        self._make: Callable[[], Child] = make
        self.children: dict[Labels, Child] = {}

    def of(self, *labels: str) -> Child:
        """The child of these label values, in the order of the label names."""
        child = self.children.get(labels)
        if child is None:
            if len(self.children) >= CHILDREN_MAX:
                labels = (OTHER,) * len(labels)
            child = self.children.setdefault(labels, self._make())
        return child

    def reset(self) -> None:
        """Forget all observations and their label sets, as `DELETE /metrics` asks. Gauges tell
        states, which cannot be forgotten.
        """
        if self.kind == "gauge":
            return
        for child in self.children.values():
            child.reset()
        self.children = {labels: child for labels, child in self.children.items() if not labels}

    def metric(self) -> Metric:
        """What prometheus-client writes to a page."""
        return _metric(self.name, self.kind, self.text, self._samples())

    def _samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, child in sorted(self.children.copy().items()):
            named = dict(zip(self.label_names, labels, strict=True))
            if isinstance(child, Value):
                yield self.name, named, child.value
            else:
                yield from _histogram_samples(self.name, named, child)


def _histogram_samples(
    name: str, named: dict[str, str], child: Histogram
) -> Iterator[tuple[str, dict[str, str], float]]:
    reached = 0
    counts = child.counts.copy()
    for bound, count in zip((*child.bounds, float("inf")), counts, strict=True):
        reached += count
        yield f"{name}_bucket", {**named, "le": _bound_text(bound)}, reached
    yield f"{name}_sum", named, child.total
    yield f"{name}_count", named, reached


def _bound_text(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def _metric(
    name: str, kind: str, text: str, samples: Iterable[tuple[str, dict[str, str], float]]
) -> Metric:
    """prometheus-client appends `_total` to a counter's name when it writes the head lines."""
    metric = Metric(name.removesuffix("_total") if kind == "counter" else name, text, kind)
    for sample_name, labels, value in samples:
        metric.add_sample(sample_name, labels, value)
    return metric


class Pulled:
    """A family whose values are looked up when a page is made."""

    def __init__(
        self,
        name: str,
        kind: str,
        text: str,
        label_names: Labels,
        read: Callable[[], Mapping[Labels, float]],
    ) -> None:
        self.name = name
        self.kind = kind
        self.text = text
        self.label_names = label_names
        self._read = read

    def reset(self) -> None:
        """What is looked up cannot be forgotten."""

    def metric(self) -> Metric:
        values = sorted(self._read().items())
        named = (
            (self.name, dict(zip(self.label_names, labels, strict=True)), value)
            for labels, value in values
        )
        return _metric(self.name, self.kind, self.text, named)


class Families(Collector):
    """The families of a process, as a collector of prometheus-client."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Value] | Family[Histogram] | Pulled] = {}

    def counter(self, name: str, text: str, labels: Labels = ()) -> Family[Value]:
        return self._value(name, "counter", text, labels)

    def gauge(self, name: str, text: str, labels: Labels = ()) -> Family[Value]:
        return self._value(name, "gauge", text, labels)

    def histogram(
        self, name: str, text: str, bounds: Sequence[float], labels: Labels = ()
    ) -> Family[Histogram]:
        family = Family(name, "histogram", text, labels, lambda: Histogram(bounds))
        if not labels:
            family.of()
        self._families[name] = family
        return family

    def pulled(
        self,
        name: str,
        kind: str,
        text: str,
        labels: Labels,
        read: Callable[[], Mapping[Labels, float]],
    ) -> None:
        """A counter or gauge that `read` answers for when a page is made."""
        self._families[name] = Pulled(name, kind, text, labels, read)

    def reset(self) -> None:
        for family in self._families.values():
            family.reset()

    def collect(self) -> Iterable[Metric]:
        """All families that have a sample, by name."""
        for _, family in sorted(self._families.items()):
            metric = family.metric()
            if metric.samples:
                yield metric

    def _value(self, name: str, kind: str, text: str, labels: Labels) -> Family[Value]:
        family: Family[Value] = Family(name, kind, text, labels, Value)
        if not labels:
            family.of()
        self._families[name] = family
        return family


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bucket bounds, each `factor` times the one before, multiplied up as Go does it."""
    bounds = []
    bound = start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)
