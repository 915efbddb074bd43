"""NodeMetric: load of a node and of its pods, reported by an agent on the node.

Source  slo.koordinator.sh/v1alpha1 NodeMetric (koordinator-sh/koordinator
        apis/slo/v1alpha1/nodemetric_types.go). Of usages only named resources are read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.quantity import check, milli, whole
from asched.plugin import I64

CPU, MEMORY = "cpu", "memory"
REPORT_INTERVAL_S: Final = 60
#: Larger amounts are clipped to this, so that sums fit 64 bits.
AMOUNT_MAX: Final = 2**50
_UNITS_S: Final[Mapping[str, float]] = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PIECE: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")

#: Quantities by resource; devices are lists of their own.
Amounts = dict[str, Any]


class AggregatedUsage(Record, frozen=True, gc=False):
    """Usage by percentile: avg, p50, p90, p95, p99."""

    usage: dict[str, Amounts | None] | None = None
    duration: str = ""


class NodeMetricInfo(Record, frozen=True, gc=False):
    node_usage: Amounts | None = None
    aggregated_node_usages: tuple[AggregatedUsage, ...] | None = None
    system_usage: Amounts | None = None


class PodMetric(Record, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    pod_usage: Amounts | None = None
    priority: str = ""


class CollectPolicy(Record, frozen=True, gc=False):
    report_interval_seconds: int | None = None


class NodeMetricSpec(Record, frozen=True, gc=False):
    metric_collect_policy: CollectPolicy | None = None


class NodeMetricStatus(Record, frozen=True, gc=False):
    update_time: str | None = None
    node_metric: NodeMetricInfo | None = None
    pods_metric: tuple[PodMetric | None, ...] | None = None


class NodeMetric(ApiObject, frozen=True, gc=False):
    """Has the name of the node."""

    spec: NodeMetricSpec = NodeMetricSpec()
    status: NodeMetricStatus = NodeMetricStatus()

    def __post_init__(self) -> None:
        info, pods = self.status.node_metric, self.status.pods_metric or ()
        usages = [pod.pod_usage for pod in pods if pod is not None]
        if info is not None:
            usages += [info.node_usage, info.system_usage]
            for aggregate in info.aggregated_node_usages or ():
                usages += (aggregate.usage or {}).values()
        for usage in filter(None, usages):
            check(amount for amount in usage.values() if isinstance(amount, str | int | float))

    @property
    def report_interval_s(self) -> int:
        policy = self.spec.metric_collect_policy
        interval_s = policy.report_interval_seconds if policy is not None else None
        return REPORT_INTERVAL_S if interval_s is None else interval_s


NODE_METRIC: Final = Kind.of(NodeMetric, "slo.koordinator.sh/v1alpha1", namespaced=False)


def vector(amounts: Mapping[str, Any] | None, resources: Sequence[str]) -> I64:
    """int64[R]: milli-CPU, and whole units of the rest; 0 for absent resources."""
    found = np.zeros(len(resources), dtype=np.int64)
    for at, name in enumerate(resources):
        amount = (amounts or {}).get(name)
        if isinstance(amount, str | int | float):
            units = milli(amount) if name == "cpu" else whole(amount)
            found[at] = max(min(units, AMOUNT_MAX), -AMOUNT_MAX)
    return found


def duration_s(text: str) -> float:
    """Seconds of a Go duration: `5m0s`. 0 if it is empty. Raises ValueError."""
    if text in {"", "0"}:
        return 0.0
    pieces = _PIECE.findall(text)
    if "".join(number + unit for number, unit in pieces) != text:
        raise ValueError(f'"{text}" is not a duration such as 5m or 1h30m')
    return sum(float(number) * _UNITS_S[unit] for number, unit in pieces)
