"""Which metrics a page shows, and with which labels: kube-scheduler's metrics flags. `page.py`
carries them out.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics (options.go, opts.go)
"""

from collections.abc import Iterable, Mapping

import msgspec


class Exposition(msgspec.Struct, frozen=True):
    """What was asked for: names of metrics, and by metric and label the values to be shown."""

    disabled: frozenset[str] = frozenset()
    allowed: Mapping[str, Mapping[str, frozenset[str]]] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(disabled: Iterable[str], allow_lists: Mapping[str, str]) -> "Exposition":
        """From the flags' forms; `allow_lists` maps "metric,label" to values between commas."""
        allowed: dict[str, dict[str, frozenset[str]]] = {}
        for key, values in allow_lists.items():
            metric, label = key.split(",")
            allowed.setdefault(metric, {})[label] = frozenset(values.split(","))
        return Exposition(frozenset(disabled), allowed)
