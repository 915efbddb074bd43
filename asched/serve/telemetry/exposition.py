"""Which metrics and label values are exposed: kube-scheduler's metrics flags, applied by `page.py`.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics (options.go, opts.go)
"""

from collections.abc import Iterable, Mapping

import msgspec


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
