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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError
from asched.core.model.timestamp import microseconds
from asched.hardware.changed_rows import ChangedRows
from asched.hardware.koordinator.estimate import PROD, Estimate, Estimator
from asched.hardware.koordinator.node_metric import (
    I64,
    NODE_METRIC,
    NodeMetric,
    NodeMetricInfo,
    decoded,
    duration_s,
    vector,
)
from asched.hardware.load.expected import scheduled_s
from asched.plugin import Aspect, ByRow, Cluster, PerClass

Mask = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]

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


class NodeLoads(ByRow[None]):
    """Columns; `loads` is int64[3, R, N]."""

    def __init__(self, cluster: Cluster, reading: Reading, estimator: Estimator) -> None:
        self._changes = ChangedRows(cluster, NODE_METRIC)
        super().__init__(cluster.nodes, int(ASPECTS), self._changes)
        self._cluster = cluster
        self._reading = reading
        self.estimate: PerClass[Estimate] = PerClass(estimator, Estimate(None, False, None, None))
        self._since_s: list[dict[str, float]] = []
        self._expires_at_s = np.inf
        self._reset(0)
        #: Changes when a report expires.
        self.version = 0

    def refresh(self) -> None:
        """Process new reports and placements. Not in a trial, whose changes must not be stored."""
        if not self._cluster.topology.on_trial:
            self._changes.follow()
            self.update(None)
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
        height = self._nodes.height
        before = self._since_s
        self._since_s = (before + [{} for _ in range(height - len(before))])[:height]
        self._reset(height)
        for row in range(height):
            self._read(row)
        self._judge_age(self._cluster.wall_clock_s)

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        before = self.updated_s[list(rows)].copy()
        for row in rows:
            self._read(row)
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
        self.updated_s[row] = _time_s(metric.status.update_time)
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
        at_s = _condition_s(pod, "Initialized")
        if at_s is not None:
            return at_s + estimate.after_initialized_s
    if estimate.after_scheduled_s:
        return since_s + estimate.after_scheduled_s
    return -np.inf


def _condition_s(pod: Pod, kind: str) -> float | None:
    for condition in pod.status.conditions or ():
        if condition.type == kind and condition.status == "True":
            found = _time_s(condition.last_transition_time)
            return found if found > -np.inf else None
    return None


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


def _time_s(text: str | None) -> float:
    """Seconds since 1970; -inf for none."""
    try:
        return microseconds(text or "") / 1e6
    except ValueError:
        return -np.inf
