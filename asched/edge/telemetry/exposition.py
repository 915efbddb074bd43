"""Which metrics a page shows, and with which labels: kube-scheduler's metrics flags.

Rules   a disabled metric is left out; a label with an allow list shows the values on it, and every
        other value as "unexpected": what those counted is added up under that one value. Both are
        done as a page is made, so that counting costs the same with and without them.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics (options.go, opts.go)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

#: What upstream shows instead of a value that is not on the list.
UNEXPECTED: Final = "unexpected"


@dataclass(frozen=True)
class Exposition:
    """What was asked for: names of metrics, and by metric and label the values to be shown."""

    disabled: frozenset[str] = frozenset()
    allowed: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)

    @staticmethod
    def of(disabled: Iterable[str], allow_lists: Mapping[str, str]) -> "Exposition":
        """From the flags' forms; `allow_lists` maps "metric,label" to values between commas."""
        allowed: dict[str, dict[str, frozenset[str]]] = {}
        for key, values in allow_lists.items():
            metric, label = key.split(",")
            allowed.setdefault(metric, {})[label] = frozenset(values.split(","))
        return Exposition(frozenset(disabled), allowed)


class Exposed(Collector):
    """Another collector's metrics, as far as they are to be shown."""

    def __init__(self, inner: Any, exposition: Exposition) -> None:
        self._inner = inner
        self._exposition = exposition

    def collect(self) -> Iterable[Metric]:
        for metric in self._inner.collect():
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
