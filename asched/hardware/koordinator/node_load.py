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
from functools import partial
from typing import Any, Final

import numpy as np

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.quantity import QuantityError
from asched.core.model.timestamp import seconds
from asched.hardware.koordinator.args import Aggregated, LoadAwareSchedulingArgs
from asched.hardware.koordinator.estimate import PROD, Estimate, estimate_of
from asched.hardware.koordinator.node_metric import (
    NODE_METRIC,
    NodeMetric,
    NodeMetricInfo,
    duration_s,
    vector,
)
from asched.hardware.rows import ExpiringReports, Mask, decoded_json, scheduled_s
from asched.plugin import I64, Aspect, Cluster, PerClass

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
