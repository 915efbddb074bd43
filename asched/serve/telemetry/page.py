"""The metrics page: families as prometheus-client's metrics, filtered by the metrics flags.

Imported for the first page: prometheus-client takes 50 ms, which start-up need not wait for.

Rules   a disabled metric is left out; a label with an allow list shows the listed values, and all
        other values summed up as "unexpected". Both are applied when a page is made, so that
        counting costs the same with and without them.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics (options.go, opts.go)
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from asched.serve.telemetry.instruments import (
    AnyFamily,
    Exposition,
    Families,
    Histogram,
    Labels,
    Pulled,
    Value,
)

#: Upstream's label value for values that are not listed.
UNEXPECTED: Final = "unexpected"

#: Name, labels, value.
Sample = tuple[str, dict[str, str], float]


class Collected(Collector):
    """A collector made of a function."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def exposed(collect: Callable[[], Iterable[Metric]]) -> bytes:
    """Metrics in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected(collect))
    return generate_latest(registry)


class MetricsPage:
    """Families, and prometheus-client's metrics of the process; filtered."""

    def __init__(self, families: Families, exposition: Exposition) -> None:
        self._exposition = exposition
        self._all = CollectorRegistry(auto_describe=False)
        self._all.register(
            Collected(lambda: filter(lambda metric: metric.samples, map(metric_of, families)))
        )
        ProcessCollector(registry=self._all, pid=os.getpid)
        GCCollector(registry=self._all)

    def text(self) -> bytes:
        return exposed(self._shown)

    def _shown(self) -> Iterable[Metric]:
        for metric in self._all.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            if name in self._exposition.disabled:
                continue
            allowed = self._exposition.allowed.get(name)
            yield _constrained(metric, allowed) if allowed else metric


def _constrained(metric: Metric, allowed: Mapping[str, frozenset[str]]) -> Metric:
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in metric.samples:
        shown = {
            label: UNEXPECTED if label in allowed and value not in allowed[label] else value
            for label, value in sample.labels.items()
        }
        key = (sample.name, tuple(shown.items()))
        sums[key] = sums.get(key, 0.0) + sample.value
    constrained = Metric(metric.name, metric.documentation, metric.type)
    for (name, labels), value in sums.items():
        constrained.add_sample(name, dict(labels), value)
    return constrained


def metric_of(family: AnyFamily) -> Metric:
    """prometheus-client appends `_total` to a counter's name when it writes the head lines."""
    name, kind = family.name, family.kind
    metric = Metric(name.removesuffix("_total") if kind == "counter" else name, family.text, kind)
    for sample_name, labels, value in _samples(family):
        metric.add_sample(sample_name, labels, value)
    return metric


def _samples(family: AnyFamily) -> Iterator[Sample]:
    def named(labels: Labels) -> dict[str, str]:
        return dict(zip(family.label_names, labels, strict=True))

    if isinstance(family, Pulled):
        for labels, value in family.values():
            yield family.name, named(labels), value
        return
    children: Mapping[Labels, Value | Histogram] = {**family.children}
    for labels, child in sorted(children.items()):
        if isinstance(child, Value):
            yield family.name, named(labels), child.value
        else:
            yield from _histogram_samples(family.name, named(labels), child)


def _histogram_samples(name: str, named: dict[str, str], child: Histogram) -> Iterator[Sample]:
    reached = 0
    counts = child.counts.copy()
    for bound, count in zip((*child.bounds, float("inf")), counts, strict=True):
        reached += count
        yield f"{name}_bucket", {**named, "le": _bound_text(bound)}, reached
    yield f"{name}_sum", named, child.total
    yield f"{name}_count", named, reached


def _bound_text(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]
