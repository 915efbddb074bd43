"""LoadAwareScheduling: reject and score nodes by load, from Koordinator's NodeMetric.

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
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.hardware.koordinator.args import LoadAwareSchedulingArgs
from asched.hardware.koordinator.estimate import ANNOTATIONS
from asched.hardware.koordinator.node_load import ASPECTS, FILTER, PROD_LOAD, SCORE, NodeLoads
from asched.hardware.koordinator.node_metric import NODE_METRIC
from asched.hardware.load.scorer import rounded
from asched.hardware.rows import right_to_watch
from asched.plugin import (
    I64,
    Action,
    Cluster,
    Codes,
    FilterPlugin,
    NodeView,
    PodInfo,
    Registration,
    Scope,
    ScorePlugin,
    Status,
    Trigger,
    unschedulable,
)

EXPIRED: Final = "node(s) nodeMetric expired"


class LoadAwareScheduling(FilterPlugin, ScorePlugin):
    name = "LoadAwareScheduling"
    scope = Scope.NODE
    depends_on = ASPECTS
    kinds = (NODE_METRIC,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_METRIC)]

    def __init__(self, args: LoadAwareSchedulingArgs, cluster: Cluster) -> None:
        self._args = args
        self._resources = args.resources
        self._weights = [args.weights.get(name, 0) for name in self._resources]
        if args.allow_customize_estimation:
            cluster.classes.tell_apart_by(ANNOTATIONS)
        self._loads = NodeLoads(cluster, args)

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
        return tuple(estimate.amounts.tolist()), estimate.is_prod, _is_of_daemon_set(pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        self._loads.refresh()
        return self._loads.version

    def explain(self, pod: PodInfo, code: int) -> Status:
        """1: expired; then two for each resource, usage and a percentile of it."""
        if code == 1:
            return unschedulable(EXPIRED)
        at, is_aggregated = divmod(code - 2, 2)
        kind = "aggregated usage" if is_aggregated else "usage"
        return unschedulable(f"node(s) {self._resources[at]} {kind} exceed threshold")

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        codes: Codes = np.zeros(nodes.size, dtype=np.int32)
        if _is_of_daemon_set(pod):
            return codes
        self._loads.refresh()
        loads, rows = self._loads, nodes.row_numbers()
        estimate = loads.estimate(pod.cls)
        thresholds = loads.thresholds[:, :, rows]
        by_prod = thresholds[1].any(axis=0) & estimate.is_prod
        wanted = np.where(by_prod, thresholds[1], thresholds[0])
        load = np.where(by_prod, loads.loads[PROD_LOAD][:, rows], loads.loads[FILTER][:, rows])
        load = load + estimate.amounts[:, np.newaxis]
        is_checked = wanted.any(axis=0) & loads.has_report[rows]
        expired = is_checked & ~loads.is_valid[rows]
        if self._args.filter_expired_node_metrics:
            is_checked &= ~expired
            if not self._args.enable_schedule_when_node_metrics_expired:
                codes[expired] = 1
        is_checked &= loads.has_info[rows]
        offered = loads.allocatable[:, rows]
        aggregated = (loads.is_aggregated[rows] & ~by_prod).astype(np.int32)
        for at in range(len(self._resources)):
            over = (wanted[at] > 0) & (percent(load[at], offered[at]) > wanted[at])
            over &= is_checked & (codes == 0)
            codes[over] = 2 + 2 * at + aggregated[over]
        return codes

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        self._loads.refresh()
        loads, rows = self._loads, nodes.row_numbers()
        estimate = loads.estimate(pod.cls)
        by_prod = self._args.score_according_prod_usage and estimate.is_prod
        load = loads.loads[PROD_LOAD if by_prod else SCORE][:, rows]
        load = load + estimate.amounts[:, np.newaxis]
        points = self._points(load, loads.allocatable[:, rows])
        points[~(loads.has_info[rows] & loads.is_valid[rows])] = 0
        return points

    def _points(self, load: I64, offered: I64) -> I64:
        """int64[M]: the weighted mean of the free shares, and of the scarcest."""
        divisor = np.maximum(offered, 1)
        free = np.where((offered > 0) & (load <= offered), (offered - load) * 100 // divisor, 0)
        dominant = self._args.dominant_resource_weight
        total = np.array(self._weights) @ free + np.minimum(free.min(axis=0), 100) * dominant
        weights = sum(self._weights) + dominant
        return np.clip(total // weights, 0, 100) if weights else np.zeros_like(total)


def percent(load: I64, offered: I64) -> I64:
    """int64[M], rounded, halves away from zero; 0 where nothing is offered."""
    share = np.where(offered > 0, np.maximum(load, 0) / np.maximum(offered, 1) * 100, 0.0)
    return rounded(share).astype(np.int64)


def _is_of_daemon_set(pod: PodInfo) -> bool:
    controller = pod.cls.example.metadata.controller
    return controller is not None and controller.kind == "DaemonSet"
