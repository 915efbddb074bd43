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
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError, check, milli, whole
from asched.core.model.requests import exact_limits, pod_requests, to_units
from asched.core.model.timestamp import seconds
from asched.hardware.numa.zones import QoS, qos_of
from asched.hardware.rows import ExpiringReports, Mask, UpstreamArgs, decoded_json, scheduled_s
from asched.plugin import I64, Aspect, Cluster, PerClass, PodClass

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
THRESHOLDS: Final = "scheduling.koordinator.sh/usage-thresholds"
PERCENTILES: Final = ("avg", "p50", "p90", "p95", "p99")
DEFAULT_ESTIMATOR: Final = "defaultEstimator"

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


class LoadProfile(NamedTuple):
    """Thresholds in percent by resource: of usage or a percentile of it, and of koord-prod."""

    usage: Mapping[str, int]
    prod: Mapping[str, int]
    aggregated: Aggregated | None = None

    def of(self, node: Node) -> "LoadProfile":
        """The profile with the node's annotation applied."""
        text = (node.metadata.annotations or {}).get(THRESHOLDS)
        annotated: CustomThresholds | None = decoded_json(text, CustomThresholds)
        if annotated is None:
            return self
        usage, aggregated = self.usage, self.aggregated
        custom = annotated.aggregated_usage
        if custom is not None and custom.usage_thresholds and custom.usage_aggregation_type:
            try:
                long_s = duration_s(custom.usage_aggregated_duration or "")
            except ValueError:
                return self
            usage = custom.usage_thresholds
            aggregated = Aggregated(custom.usage_aggregation_type, long_s)
        elif aggregated is None:
            usage = annotated.usage_thresholds or usage
        return LoadProfile(usage, annotated.prod_usage_thresholds or self.prod, aggregated)


@dataclass(frozen=True, slots=True)
class AggregatedArgs:
    """Percentiles in place of the last usage. Raises ValueError for invalid values."""

    usage_thresholds: dict[str, int] = field(default_factory=dict)
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str = ""
    score_aggregation_type: str = ""
    score_aggregated_duration: str = ""

    def __post_init__(self) -> None:
        _check_range("aggregated.usageThresholds", self.usage_thresholds, 0)
        for name, kind, long in (
            ("usage", self.usage_aggregation_type, self.usage_aggregated_duration),
            ("score", self.score_aggregation_type, self.score_aggregated_duration),
        ):
            if kind and kind not in PERCENTILES:
                known = ", ".join(PERCENTILES)
                raise ValueError(f'aggregated.{name}AggregationType "{kind}" is none of {known}')
            try:
                duration_s(long)
            except ValueError as error:
                raise ValueError(f"aggregated.{name}AggregatedDuration: {error}") from error

    @property
    def usage(self) -> Aggregated | None:
        """For the filter; only with thresholds."""
        if not (self.usage_thresholds and self.usage_aggregation_type):
            return None
        return Aggregated(self.usage_aggregation_type, duration_s(self.usage_aggregated_duration))

    @property
    def score(self) -> Aggregated | None:
        if not self.score_aggregation_type:
            return None
        return Aggregated(self.score_aggregation_type, duration_s(self.score_aggregated_duration))


@dataclass(frozen=True, slots=True)
class LoadAwareSchedulingArgs(UpstreamArgs):
    """Koordinator's args, with one different default."""

    filter_expired_node_metrics: bool = True
    node_metric_expiration_seconds: int = 180
    enable_schedule_when_node_metrics_expired: bool = True
    resource_weights: dict[str, int] = field(default_factory=dict)
    dominant_resource_weight: int = 0
    usage_thresholds: dict[str, int] = field(default_factory=dict)
    prod_usage_thresholds: dict[str, int] = field(default_factory=dict)
    prod_usage_include_sys: bool = False
    score_according_prod_usage: bool = False
    estimator: str = DEFAULT_ESTIMATOR
    estimated_scaling_factors: dict[str, int] = field(default_factory=dict)
    estimated_seconds_after_pod_scheduled: int | None = None
    estimated_seconds_after_initialized: int | None = None
    allow_customize_estimation: bool = False
    aggregated: AggregatedArgs | None = None
    supported_resources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.node_metric_expiration_seconds <= 0:
            raise ValueError("nodeMetricExpirationSeconds must be at least 1")
        if self.estimator != DEFAULT_ESTIMATOR:
            raise ValueError(f'estimator "{self.estimator}" is not implemented')
        _check_range("resourceWeights", self.resource_weights, 1)
        _check_range("", {"dominantResourceWeight": self.dominant_resource_weight}, 0)
        _check_range("usageThresholds", self.usage_thresholds, 0)
        _check_range("prodUsageThresholds", self.prod_usage_thresholds, 0)
        _check_range("estimatedScalingFactors", self.estimated_scaling_factors, 1)
        for name in self.resource_weights:
            if name not in self.factors:
                raise ValueError(f"resourceWeights.{name}: estimatedScalingFactors has none")

    @property
    def factors(self) -> dict[str, int]:
        return {CPU: 85, MEMORY: 70, **self.estimated_scaling_factors}

    @property
    def weights(self) -> dict[str, int]:
        if self.resource_weights or self.dominant_resource_weight:
            return self.resource_weights
        return {CPU: 1, MEMORY: 1}

    @property
    def thresholds(self) -> dict[str, int]:
        return self.usage_thresholds or {CPU: 65, MEMORY: 95}

    @property
    def profile(self) -> LoadProfile:
        aggregated = self.aggregated or AggregatedArgs()
        thresholds = aggregated.usage_thresholds if aggregated.usage else self.thresholds
        return LoadProfile(thresholds, self.prod_usage_thresholds, aggregated.usage)

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that is named in any field, in order."""
        named = {CPU, MEMORY, *self.weights, *self.thresholds, *self.prod_usage_thresholds}
        named |= {*self.factors, *self.supported_resources}
        if self.aggregated is not None:
            named |= self.aggregated.usage_thresholds.keys()
        return tuple(sorted(named))


def _check_range(where: str, given: Mapping[str, int], least: int) -> None:
    for name, value in given.items():
        if not least <= value <= 100:
            path = f"{where}.{name}" if where else name
            raise ValueError(f"{path} {value} is not in {least}..{100}")


class Estimate(NamedTuple):
    """`amounts` int64[R]. The seconds are None where they are not set."""

    amounts: I64
    is_prod: bool
    after_scheduled_s: int | None
    after_initialized_s: int | None


def estimate_of(args: LoadAwareSchedulingArgs, cls: PodClass) -> Estimate:
    pod, resources = cls.example, args.resources
    annotations = (pod.metadata.annotations or {}) if args.allow_customize_estimation else {}
    given: dict[str, int] = decoded_json(annotations.get(FACTORS), dict[str, int]) or {}
    factors = {**args.factors, **given}
    kind = class_of(pod)
    requests, limits = pod_requests(pod), to_units(exact_limits(pod))
    amounts = np.zeros(len(resources), dtype=np.int64)
    for at, name in enumerate(resources):
        if name in factors:
            real = _OWN_NAMES[kind].get(name, "") if kind in _OWN_NAMES else name
            request, allowed = requests.get(real, 0), limits.get(real, 0)
            amounts[at] = min(used(real, request, allowed, factors[name]), AMOUNT_MAX)
    return Estimate(
        amounts,
        kind == PROD,
        _seconds(annotations, AFTER_SCHEDULED, args.estimated_seconds_after_pod_scheduled),
        _seconds(annotations, AFTER_INITIALIZED, args.estimated_seconds_after_initialized),
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


def _seconds(annotations: Mapping[str, str], name: str, otherwise: int | None) -> int | None:
    """Negative values count as not set."""
    try:
        seconds = int(annotations.get(name, "")[:20])
    except ValueError:
        return otherwise
    return seconds if seconds >= 0 else otherwise


ASPECTS: Final = Aspect.PODS | Aspect.ALLOCATABLE | Aspect.ANNOTATIONS | Aspect.LIVE
RAW_ALLOCATABLE: Final = "node.koordinator.sh/raw-allocatable"
#: The loads for the filter, and for the scorer: whole columns.
FILTER, SCORE, PROD_LOAD = range(3)


class NodeLoads(ExpiringReports):
    """Columns; `loads` is int64[3, R, N]."""

    def __init__(self, cluster: Cluster, args: LoadAwareSchedulingArgs) -> None:
        super().__init__(cluster, ASPECTS, NODE_METRIC, args.node_metric_expiration_seconds)
        self._args = args
        self._resources, self._profile = args.resources, args.profile
        self._score = args.aggregated.score if args.aggregated is not None else None
        nothing = np.zeros(len(self._resources), dtype=np.int64)
        self.estimate: PerClass[Estimate] = PerClass(
            partial(estimate_of, args), Estimate(nothing, False, None, None)
        )
        self._since_s: list[dict[str, float]] = []
        self._reset(0)

    def _reset(self, height: int) -> None:
        before = self._since_s
        self._since_s = (before + [{} for _ in range(height - len(before))])[:height]
        kinds = len(self._resources)
        self.loads: I64 = np.zeros((3, kinds, height), dtype=np.int64)
        self.allocatable: I64 = np.zeros((kinds, height), dtype=np.int64)
        #: thresholds of pods in general, and of koord-prod; 0: none
        self.thresholds: I64 = np.zeros((2, kinds, height), dtype=np.int64)
        self.is_aggregated: Mask = np.zeros(height, dtype=np.bool_)
        self.has_report: Mask = np.zeros(height, dtype=np.bool_)
        self.has_info: Mask = np.zeros(height, dtype=np.bool_)

    def _read(self, row: int) -> None:
        node, resources = self._cluster.nodes.node_at[row], self._resources
        metric: NodeMetric | None = self._cluster.get(NODE_METRIC, node.name) if node else None
        self.loads[:, :, row] = 0
        self.thresholds[:, :, row] = 0
        self.allocatable[:, row] = 0
        self.made_s[row] = -np.inf
        self.has_report[row] = metric is not None
        info = metric.status.node_metric if metric is not None else None
        self.has_info[row] = info is not None
        if node is None:
            self._since_s[row] = {}
            return
        profile = self._profile.of(node)
        self.allocatable[:, row] = vector(_offered(node), resources)
        for at, thresholds in enumerate((profile.usage, profile.prod)):
            self.thresholds[at, :, row] = [thresholds.get(name, 0) for name in resources]
        self.is_aggregated[row] = profile.aggregated is not None
        if metric is None:
            return
        self.made_s[row] = seconds(metric.status.update_time, -np.inf)
        beyond, total, self.loads[PROD_LOAD, :, row] = self._expected(row, metric)
        if info is None:
            return
        if self._args.prod_usage_include_sys:
            self.loads[PROD_LOAD, :, row] += vector(info.system_usage, resources)
        for at, aggregated in ((FILTER, profile.aggregated), (SCORE, self._score)):
            usage = usage_of(info, aggregated, resources)
            self.loads[at, :, row] = total if usage is None else usage + beyond

    def _expected(self, row: int, metric: NodeMetric) -> I64:
        """int64[3, R], sums over the pods on a row: estimates beyond what was measured, all
        estimates, the load of koord-prod.
        """
        cluster, nothing = self._cluster, np.zeros(len(self._resources), dtype=np.int64)
        usages = {
            (measured.namespace, measured.name): (
                vector(measured.pod_usage, self._resources),
                measured.priority == PROD,
            )
            for measured in metric.status.pods_metric or ()
            if measured is not None and measured.pod_usage
        }
        pods, since = cluster.pods_on(row), self._since_s[row]
        for uid in since.keys() - pods.keys():
            del since[uid]
        sums = np.zeros((3, len(self._resources)), dtype=np.int64)
        beyond, total, prod = sums
        updated_s = self.made_s[row]
        for uid, info in pods.items():
            since_s = scheduled_s(info.pod, since.setdefault(uid, cluster.wall_clock_s))
            named = info.pod.metadata.namespace, info.pod.metadata.name
            usage, is_reported_prod = usages.get(named, (nothing, False))
            estimate = self.estimate(info.cls)
            more = np.zeros_like(nothing)
            if (
                named not in usages
                or updated_s - metric.report_interval_s < since_s
                or deadline_s(info.pod, estimate, since_s) > updated_s
            ):
                more = np.maximum(estimate.amounts - usage, 0)
            beyond += more
            total += estimate.amounts
            if estimate.is_prod:  # else reported with another class, or not at all
                prod += usage + more if is_reported_prod else estimate.amounts
        return sums


def usage_of(
    info: NodeMetricInfo, aggregated: Aggregated | None, resources: Sequence[str]
) -> I64 | None:
    """int64[R]; None if there is no such percentile."""
    if aggregated is None:
        return vector(info.node_usage, resources)
    best_s, best = -1.0, None
    for aggregate in info.aggregated_node_usages or ():
        usage = (aggregate.usage or {}).get(aggregated.type)
        if not usage:
            continue
        try:
            long_s = duration_s(aggregate.duration)
        except ValueError:
            continue
        if aggregated.duration_s in {0.0, long_s} and long_s >= best_s:
            best_s, best = long_s, usage
    if best is not None:
        return vector(best, resources)
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
    raw: dict[str, Any] | None = decoded_json(text, dict[str, str | int | float])
    if raw:
        try:
            vector(raw, tuple(raw))
        except QuantityError:
            return offered
        offered.update(raw)
    return offered
