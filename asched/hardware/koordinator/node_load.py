"""The load of nodes, by row: measured, plus estimates for what is not measured yet.

    load  = usage + the estimates of pods beyond their measured use
            (for pods that are not measured, that were bound within the last interval before the
            report, or whose estimate applies for longer)
    prod  = the same for pods of koord-prod alone
    without a percentile of that kind: the sum of the estimates of all pods

A report is valid until it expires; thresholds and the true capacity of a node may be in its
annotations. That a pod is initialized takes effect with the next report.

Source  koordinator-sh/koordinator pkg/scheduler/plugins/loadaware/pod_assign_cache.go, helper.go
Bounds  a few numbers a row, one time for each pod that is on a node
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.model.decode import MalformedError, parse
from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError, check, milli, whole
from asched.core.model.requests import exact_limits, pod_requests, to_units
from asched.core.model.timestamp import seconds
from asched.hardware.numa.zones import QoS, qos_of
from asched.hardware.rows import F64, ByNode, ChangedRows, Mask, scheduled_s
from asched.plugin import I64, Aspect, Cluster, PerClass, PodClass, Rows

# NodeMetric: load of a node and of its pods, reported by an agent on the node.
#
# Source  slo.koordinator.sh/v1alpha1 NodeMetric (koordinator-sh/koordinator
#         apis/slo/v1alpha1/nodemetric_types.go). Of usages only named resources are read.

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

#: Quantities by resource; devices are lists beside them.
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


def decoded(text: str, kind: Any) -> Any:
    """JSON of an annotation; None if it is invalid."""
    try:
        return parse(partial(msgspec.json.decode, type=kind), text)
    except MalformedError:
        return None


# Estimated use of a pod, and how long the estimate takes precedence over measurements.
#
#     estimate   the limit, or the request if that is more, times a factor in percent; never more
#                than the limit. 250m of CPU and 200 MiB without requests.
#     class      koord-prod and the like: by label, by priority, by the quality of service. Pods of
#                koord-batch and koord-mid have resources of their own.
#
# Source  koordinator-sh/koordinator pkg/scheduler/plugins/loadaware/estimator, apis/extension

CPU, MEMORY = "cpu", "memory"
PROD, MID, BATCH, FREE = "koord-prod", "koord-mid", "koord-batch", "koord-free"
CLASS_LABEL: Final = "koordinator.sh/priority-class"
QOS_LABEL: Final = "koordinator.sh/qosClass"
FACTORS: Final = "scheduling.koordinator.sh/load-estimated-scaling-factors"
AFTER_SCHEDULED: Final = "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
AFTER_INITIALIZED: Final = "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
#: Annotations by which a pod may override these values, if that is allowed.
ANNOTATIONS: Final = (FACTORS, AFTER_SCHEDULED, AFTER_INITIALIZED)

_RANGES: Final = ((9000, PROD), (7000, MID), (5000, BATCH), (3000, FREE))
_OF_QOS: Final[Mapping[str, str]] = {
    "SYSTEM": PROD,
    "LSE": PROD,
    "LSR": PROD,
    "LS": PROD,
    "BE": BATCH,
}
_OWN_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    BATCH: {CPU: "kubernetes.io/batch-cpu", MEMORY: "kubernetes.io/batch-memory"},
    MID: {CPU: "kubernetes.io/mid-cpu", MEMORY: "kubernetes.io/mid-memory"},
    FREE: {},
}
_DEFAULTS: Final[Mapping[str, int]] = {
    CPU: 250,
    MEMORY: 200 << 20,
    "kubernetes.io/batch-cpu": 250,
    "kubernetes.io/batch-memory": 200 << 20,
}


class Estimate(NamedTuple):
    """`amounts` int64[R]; None: nothing is expected. The seconds are None where they are
    not set.
    """

    amounts: I64 | None
    is_prod: bool
    after_scheduled_s: int | None
    after_initialized_s: int | None


class Estimator:
    """The estimate of a class of pods."""

    def __init__(
        self,
        resources: Sequence[str],
        factors: Mapping[str, int],
        seconds: tuple[int | None, int | None],
        *,
        is_custom: bool,
    ) -> None:
        self._resources = resources
        self._factors = factors
        self._seconds = seconds
        self._is_custom = is_custom

    def __call__(self, cls: PodClass) -> Estimate:
        pod = cls.example
        annotations = (pod.metadata.annotations or {}) if self._is_custom else {}
        given: dict[str, int] = decoded(annotations.get(FACTORS, "{}"), dict[str, int]) or {}
        factors = {**self._factors, **given}
        kind = class_of(pod)
        requests, limits = pod_requests(pod), to_units(exact_limits(pod))
        amounts = np.zeros(len(self._resources), dtype=np.int64)
        for at, name in enumerate(self._resources):
            if name in factors:
                real = _OWN_NAMES[kind].get(name, "") if kind in _OWN_NAMES else name
                asked, allowed = requests.get(real, 0), limits.get(real, 0)
                amounts[at] = min(used(real, asked, allowed, factors[name]), AMOUNT_MAX)
        scheduled, initialized = self._seconds
        return Estimate(
            amounts if amounts.any() else None,
            kind == PROD,
            _seconds(annotations.get(AFTER_SCHEDULED, ""), scheduled),
            _seconds(annotations.get(AFTER_INITIALIZED, ""), initialized),
        )


def used(resource: str, request: int, limit: int, factor: int) -> int:
    """Estimate for one resource, in its units."""
    most = max(request, limit)
    if not most:
        return _DEFAULTS.get(resource, 0)
    found = (2 * most * factor + 100) // 200  # halves away from zero
    return min(found, limit) if limit > 0 else found


def class_of(pod: Pod) -> str:
    """Koordinator's priority class; empty for none."""
    label = pod.labels.get(CLASS_LABEL)
    if label is not None:
        found = label if label in {PROD, MID, BATCH, FREE} else ""
    else:
        priority = pod.priority
        found = next((name for low, name in _RANGES if low <= priority <= low + 999), "")
    if found:
        return found
    qos = pod.labels.get(QOS_LABEL, "")
    if qos not in _OF_QOS:
        qos = "BE" if qos_of(pod) is QoS.BEST_EFFORT else "LS"
    return _OF_QOS[qos]


def _seconds(text: str, otherwise: int | None) -> int | None:
    """Negative values count as not set."""
    try:
        seconds = int(text[:20])
    except ValueError:
        return otherwise
    return seconds if seconds >= 0 else otherwise


ASPECTS: Final = Aspect.PODS | Aspect.ALLOCATABLE | Aspect.ANNOTATIONS | Aspect.LIVE
THRESHOLDS: Final = "scheduling.koordinator.sh/usage-thresholds"
RAW_ALLOCATABLE: Final = "node.koordinator.sh/raw-allocatable"
#: The loads for the filter, and for the scorer: whole columns.
FILTER, SCORE, PROD_LOAD = range(3)


class Aggregated(NamedTuple):
    """A percentile over a time; 0 s: over the longest reported time."""

    type: str
    duration_s: float


class CustomAggregated(Record, frozen=True, gc=False):
    usage_thresholds: dict[str, int] | None = None
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str | None = None


class CustomThresholds(Record, frozen=True, gc=False):
    usage_thresholds: dict[str, int] | None = None
    prod_usage_thresholds: dict[str, int] | None = None
    aggregated_usage: CustomAggregated | None = None


@dataclass(frozen=True)
class LoadProfile:
    """Thresholds in percent by resource; `aggregated` for the filter, if it uses a percentile."""

    usage: Mapping[str, int]
    prod: Mapping[str, int]
    aggregated: Aggregated | None = None
    aggregated_usage: Mapping[str, int] | None = None

    def of(self, node: Node) -> "LoadProfile":
        """The profile with the node's annotation applied."""
        text = (node.metadata.annotations or {}).get(THRESHOLDS)
        annotated: CustomThresholds | None = decoded(text, CustomThresholds) if text else None
        if annotated is None:
            return self
        aggregated, thresholds = self.aggregated, self.aggregated_usage
        custom = annotated.aggregated_usage
        if custom is not None and custom.usage_thresholds and custom.usage_aggregation_type:
            try:
                long_s = duration_s(custom.usage_aggregated_duration or "")
            except ValueError:
                return self
            aggregated = Aggregated(custom.usage_aggregation_type, long_s)
            thresholds = custom.usage_thresholds
        return LoadProfile(
            annotated.usage_thresholds or self.usage,
            annotated.prod_usage_thresholds or self.prod,
            aggregated,
            thresholds,
        )


class Reading(NamedTuple):
    """Which loads a plugin needs."""

    resources: Sequence[str]
    profile: LoadProfile
    score: Aggregated | None
    with_system: bool
    expires_s: int


class NodeLoads(ByNode):
    """Columns; `loads` is int64[3, R, N]."""

    def __init__(self, cluster: Cluster, reading: Reading, estimator: Estimator) -> None:
        self._changes = ChangedRows(cluster, NODE_METRIC)
        super().__init__(cluster, ASPECTS, self._changes)
        self._reading = reading
        self.estimate: PerClass[Estimate] = PerClass(estimator, Estimate(None, False, None, None))
        self._since_s: list[dict[str, float]] = []
        self._expires_at_s = np.inf
        self._reset(0)
        #: Changes when a report expires.
        self.version = 0

    def refresh(self) -> None:
        """Process new reports and placements."""
        self._changes.follow()
        super().refresh()
        now_s = self._cluster.wall_clock_s
        if now_s >= self._expires_at_s:
            self._judge_age(now_s)

    def _judge_age(self, now_s: float) -> None:
        until_s = self.updated_s + self._reading.expires_s
        self.is_expired = ~(now_s < until_s)
        alive = until_s[~self.is_expired]
        self._expires_at_s = float(alive.min(initial=np.inf))
        self.version += 1

    # --- rows ------------------------------------------------------------------------------------

    def _reset(self, height: int) -> None:
        before = self._since_s
        self._since_s = (before + [{} for _ in range(height - len(before))])[:height]
        kinds = len(self._reading.resources)
        self.loads: I64 = np.zeros((3, kinds, height), dtype=np.int64)
        self.allocatable: I64 = np.zeros((kinds, height), dtype=np.int64)
        #: thresholds of pods in general, and of koord-prod; 0: none
        self.thresholds: I64 = np.zeros((2, kinds, height), dtype=np.int64)
        self.is_aggregated: Mask = np.zeros(height, dtype=np.bool_)
        self.has_report: Mask = np.zeros(height, dtype=np.bool_)
        self.has_info: Mask = np.zeros(height, dtype=np.bool_)
        self.updated_s: F64 = np.full(height, -np.inf)
        #: rows with a report; true for rows without a report, too
        self.is_expired = np.ones(height, dtype=np.bool_)

    def _make_all(self, _: None) -> None:
        super()._make_all(None)
        self._judge_age(self._cluster.wall_clock_s)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        before = self.updated_s[list(rows)].copy()
        super()._make_rows(None, rows)
        if (before != self.updated_s[list(rows)]).any():
            self._judge_age(self._cluster.wall_clock_s)
        return True

    def _read(self, row: int) -> None:
        node, reading = self._cluster.nodes.node_at[row], self._reading
        metric: NodeMetric | None = self._cluster.get(NODE_METRIC, node.name) if node else None
        self.loads[:, :, row] = 0
        self.thresholds[:, :, row] = 0
        self.allocatable[:, row] = 0
        self.updated_s[row] = -np.inf
        self.has_report[row] = metric is not None
        info = metric.status.node_metric if metric is not None else None
        self.has_info[row] = info is not None
        if node is None:
            self._since_s[row] = {}
            return
        profile = reading.profile.of(node)
        self.allocatable[:, row] = vector(_offered(node), reading.resources)
        general = profile.usage if profile.aggregated_usage is None else profile.aggregated_usage
        for at, name in enumerate(reading.resources):
            self.thresholds[0, at, row] = general.get(name, 0)
            self.thresholds[1, at, row] = profile.prod.get(name, 0)
        self.is_aggregated[row] = profile.aggregated_usage is not None
        if metric is None:
            return
        self.updated_s[row] = seconds(metric.status.update_time, -np.inf)
        expected = self._expected(row, metric)
        self.loads[PROD_LOAD, :, row] = expected.prod
        if info is None:
            return
        if reading.with_system:
            self.loads[PROD_LOAD, :, row] += vector(info.system_usage, reading.resources)
        for at, aggregated in ((FILTER, profile.aggregated), (SCORE, reading.score)):
            usage = usage_of(info, aggregated, reading.resources)
            load = expected.all_of_them if usage is None else usage + expected.beyond
            self.loads[at, :, row] = load

    def _expected(self, row: int, metric: NodeMetric) -> "_Expected":
        """Sums over the pods on a row."""
        resources, cluster = self._reading.resources, self._cluster
        usages: dict[tuple[str, str], tuple[I64, bool]] = {}
        for measured_pod in metric.status.pods_metric or ():
            if measured_pod is not None and measured_pod.pod_usage:
                usage = vector(measured_pod.pod_usage, resources)
                usages[measured_pod.namespace, measured_pod.name] = (
                    usage,
                    measured_pod.priority == PROD,
                )
        pods = cluster.pods_on(row)
        since = self._since_s[row]
        for uid in since.keys() - pods.keys():
            del since[uid]
        found = _Expected(len(resources))
        updated_s = self.updated_s[row]
        for uid, info in pods.items():
            since_s = scheduled_s(info.pod, since.setdefault(uid, cluster.wall_clock_s))
            named = info.pod.metadata.namespace, info.pod.metadata.name
            measured, is_reported_prod = usages.get(named, (None, False))
            estimate = self.estimate(info.cls)
            is_new = updated_s - metric.report_interval_s < since_s
            is_new |= deadline_s(info.pod, estimate, since_s) > updated_s
            found.add(estimate, measured, is_reported_prod=is_reported_prod, is_new=bool(is_new))
        return found


class _Expected:
    """Sums over the pods of a node."""

    def __init__(self, kinds: int) -> None:
        self.beyond: I64 = np.zeros(kinds, dtype=np.int64)
        self.all_of_them: I64 = np.zeros(kinds, dtype=np.int64)
        self.prod: I64 = np.zeros(kinds, dtype=np.int64)

    def add(
        self, estimate: Estimate, usage: I64 | None, *, is_reported_prod: bool, is_new: bool
    ) -> None:
        is_active = estimate.is_prod and is_reported_prod
        if is_active and usage is not None:
            self.prod += usage
        amounts = estimate.amounts
        if amounts is None:
            return
        counts = usage is None or is_new
        more = np.maximum(amounts - (0 if usage is None else usage), 0)
        if counts:
            self.beyond += more
        self.all_of_them += amounts
        if estimate.is_prod:
            if not is_active:  # reported with another class, or not at all
                self.prod += amounts
            elif counts:
                self.prod += more


def usage_of(
    info: NodeMetricInfo, aggregated: Aggregated | None, resources: Sequence[str]
) -> I64 | None:
    """int64[R]; None if there is no such percentile."""
    if aggregated is None:
        return vector(info.node_usage, resources)
    best_s, found = -1.0, None
    for aggregate in info.aggregated_node_usages or ():
        usage = (aggregate.usage or {}).get(aggregated.type)
        if not usage:
            continue
        try:
            long_s = duration_s(aggregate.duration)
        except ValueError:
            continue
        if aggregated.duration_s in {0.0, long_s} and long_s >= best_s:
            best_s, found = long_s, usage
    if found is not None:
        return vector(found, resources)
    return None if aggregated.duration_s else vector(info.node_usage, resources)


def deadline_s(pod: Pod, estimate: Estimate, since_s: float) -> float:
    """Time until which a pod counts with its estimate in any case; -inf: no longer than
    other pods.
    """
    if estimate.after_initialized_s:
        condition = pod.condition("Initialized")
        if condition is not None and condition.status == "True":
            at_s = seconds(condition.last_transition_time, -np.inf)
            if at_s > -np.inf:
                return at_s + estimate.after_initialized_s
    if estimate.after_scheduled_s:
        return since_s + estimate.after_scheduled_s
    return -np.inf


def _offered(node: Node) -> Mapping[str, Any]:
    """Allocatable before amplification."""
    offered: dict[str, Any] = dict(node.status.allocatable or {})
    text = (node.metadata.annotations or {}).get(RAW_ALLOCATABLE)
    raw: dict[str, Any] | None = decoded(text, dict[str, str | int | float]) if text else None
    if raw:
        try:
            vector(raw, tuple(raw))
        except QuantityError:
            return offered
        offered.update(raw)
    return offered
