"""LoadAwareScheduling: prefer nodes with little load, by Koordinator's NodeMetric.

Rejects   nodes that would be loaded beyond a threshold with the pod on them, but not for pods of
          DaemonSets. Nodes without a report take any pod. A report that has expired counts as
          none, unless `enableScheduleWhenNodeMetricsExpired` is false.
Prefers   nodes with most left of each resource, by weight, and of the scarcest.
Retry     a pod leaves its node; a node's report or annotations change.
Cost      a few passes over the rows for each report; a report reads the pods of its row.
Source    koordinator-sh/koordinator pkg/scheduler/plugins/loadaware. Deliberate difference:
                    `enableScheduleWhenNodeMetricsExpired` is true by default, so that failing
                    agents do not stop scheduling; more in `node_load.py`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.hardware.koordinator.node_load import (
    ANNOTATIONS,
    ASPECTS,
    CPU,
    FILTER,
    MEMORY,
    NODE_METRIC,
    PROD_LOAD,
    SCORE,
    Aggregated,
    Estimator,
    LoadProfile,
    NodeLoads,
    Reading,
    duration_s,
)
from asched.hardware.load.usage import rounded
from asched.hardware.rows import UpstreamArgs, right_to_watch
from asched.plugin import (
    I64,
    Action,
    Cluster,
    Codes,
    FilterPlugin,
    NodeView,
    PodInfo,
    Registration,
    ScorePlugin,
    Status,
    Trigger,
    unschedulable,
)

EXPIRED: Final = "node(s) nodeMetric expired"
PERCENTILES: Final = ("avg", "p50", "p90", "p95", "p99")
DEFAULT_ESTIMATOR: Final = "defaultEstimator"
_PERCENT: Final = 100


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
    def resources(self) -> tuple[str, ...]:
        """Every resource that is named in any field, in order."""
        named = {CPU, MEMORY, *self.weights, *self.thresholds, *self.prod_usage_thresholds}
        named |= {*self.factors, *self.supported_resources}
        if self.aggregated is not None:
            named |= self.aggregated.usage_thresholds.keys()
        return tuple(sorted(named))


def _check_range(where: str, given: Mapping[str, int], least: int) -> None:
    for name, value in given.items():
        if not least <= value <= _PERCENT:
            path = f"{where}.{name}" if where else name
            raise ValueError(f"{path} {value} is not in {least}..{_PERCENT}")


class LoadAwareScheduling(FilterPlugin, ScorePlugin):
    """See the module's documentation."""

    name = "LoadAwareScheduling"
    depends_on = ASPECTS
    kinds = (NODE_METRIC,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_METRIC)]

    def __init__(self, args: LoadAwareSchedulingArgs, cluster: Cluster) -> None:
        self._args = args
        self._resources = args.resources
        self._weights = [args.weights.get(name, 0) for name in self._resources]
        aggregated = args.aggregated or AggregatedArgs()
        usage = aggregated.usage
        profile = LoadProfile(
            args.thresholds,
            args.prod_usage_thresholds,
            usage,
            aggregated.usage_thresholds if usage is not None else None,
        )
        reading = Reading(
            self._resources,
            profile,
            aggregated.score,
            args.prod_usage_include_sys,
            args.node_metric_expiration_seconds,
        )
        seconds = (
            args.estimated_seconds_after_pod_scheduled,
            args.estimated_seconds_after_initialized,
        )
        is_custom = args.allow_customize_estimation
        if is_custom:
            cluster.classes.tell_apart_by(ANNOTATIONS)
        estimator = Estimator(self._resources, args.factors, seconds, is_custom=is_custom)
        self._loads = NodeLoads(cluster, reading, estimator)

    def registrations(self) -> Sequence[Registration]:
        changed = Action.ADD | Action.UPDATE | Action.DELETE
        offers = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_ANNOTATION
        return (
            Registration(Trigger(POD.resource, Action.DELETE)),
            Registration(Trigger(NODE.resource, offers)),
            Registration(Trigger(NODE_METRIC.resource, changed)),
        )

    def share_key(self, pod: PodInfo) -> Hashable:
        estimate = self._loads.estimate(pod.cls)
        amounts = () if estimate.amounts is None else tuple(estimate.amounts.tolist())
        return amounts, estimate.is_prod, _is_of_daemon_set(pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        self._loads.refresh()
        return self._loads.version

    def explain(self, pod: PodInfo, code: int) -> Status:  # noqa: ARG002
        """1: expired; then two for each resource, usage and a percentile of it."""
        if code == 1:
            return unschedulable(EXPIRED)
        at, is_aggregated = divmod(code - 2, 2)
        kind = "aggregated usage" if is_aggregated else "usage"
        return unschedulable(f"node(s) {self._resources[at]} {kind} exceed threshold")

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        found: Codes = np.zeros(nodes.size, dtype=np.int32)
        if _is_of_daemon_set(pod):
            return found
        self._loads.refresh()
        loads, rows = self._loads, nodes.row_numbers()
        estimate = loads.estimate(pod.cls)
        thresholds = loads.thresholds[:, :, rows]
        by_prod = thresholds[1].any(axis=0) & estimate.is_prod
        wanted = np.where(by_prod, thresholds[1], thresholds[0])
        load = np.where(by_prod, loads.loads[PROD_LOAD][:, rows], loads.loads[FILTER][:, rows])
        if estimate.amounts is not None:
            load = load + estimate.amounts[:, np.newaxis]
        is_judged = wanted.any(axis=0) & loads.has_report[rows]
        expired = is_judged & loads.is_expired[rows]
        if self._args.filter_expired_node_metrics:
            is_judged &= ~expired
            if not self._args.enable_schedule_when_node_metrics_expired:
                found[expired] = 1
        is_judged &= loads.has_info[rows]
        offered = loads.allocatable[:, rows]
        aggregated = (loads.is_aggregated[rows] & ~by_prod).astype(np.int32)
        for at in range(len(self._resources)):
            over = (wanted[at] > 0) & (percent(load[at], offered[at]) > wanted[at])
            over &= is_judged & (found == 0)
            found[over] = 2 + 2 * at + aggregated[over]
        return found

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
        self._loads.refresh()
        loads, rows = self._loads, nodes.row_numbers()
        estimate = loads.estimate(pod.cls)
        by_prod = self._args.score_according_prod_usage and estimate.is_prod
        load = loads.loads[PROD_LOAD if by_prod else SCORE][:, rows]
        if estimate.amounts is not None:
            load = load + estimate.amounts[:, np.newaxis]
        points = self._points(load, loads.allocatable[:, rows])
        points[~(loads.has_info[rows] & ~loads.is_expired[rows])] = 0
        return points

    def _points(self, load: I64, offered: I64) -> I64:
        """int64[M]: the weighted mean of the free shares, and of the scarcest."""
        divisor = np.maximum(offered, 1)
        left = np.where((offered > 0) & (load <= offered), (offered - load) * 100 // divisor, 0)
        dominant = self._args.dominant_resource_weight
        total = np.zeros(load.shape[1], dtype=np.int64)
        for at, weight in enumerate(self._weights):
            total += left[at] * weight
        if dominant:
            total += np.minimum(left.min(axis=0), 100) * dominant
        weights = sum(self._weights) + dominant
        found: I64 = np.clip(total // weights, 0, 100) if weights else np.zeros_like(total)
        return found


def percent(load: I64, offered: I64) -> I64:
    """int64[M], rounded, halves away from zero; 0 where nothing is offered."""
    share = np.where(offered > 0, np.maximum(load, 0) / np.maximum(offered, 1) * 100, 0.0)
    found: I64 = rounded(share).astype(np.int64)
    return found


def _is_of_daemon_set(pod: PodInfo) -> bool:
    controller = pod.cls.example.metadata.controller
    return controller is not None and controller.kind == "DaemonSet"
