"""NodeResourceTopologyMatch: reject nodes whose topology manager would not admit the pod.

Rejects   nodes with the policy `single-numa-node` where no NUMA zone has room for the pod, or for
          one of its containers; nodes whose zones are not known for certain at the moment.
Prefers   by the strategy of its args, for guaranteed pods.
Retry     a pod leaves its node; a node appears or offers something else; an agent reports its
          zones.
Cost      a few passes over the rows and their zones per container; LeastNUMANodes one for each set
          of zones that may be needed. The containers of a pod of more than CONTAINERS_MAX are not
          compared one by one: where the kubelet would, the reason is "cannot align container".
Source    kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology. Differences are listed
          at `TopologyCache`; `preemptionMode: Enabled` and `informerMode` are rejected by name.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.hardware.numa.args import NodeResourceTopologyMatchArgs
from asched.hardware.numa.cache import TopologyCache
from asched.hardware.numa.demand import NumaDemand, QoS, demand_of
from asched.hardware.numa.scores import LEAST_NUMA_NODES, ZONE_SCORES, least_numa_nodes, zone_scores
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY
from asched.hardware.numa.zones import Alignment, aligned_containers
from asched.hardware.rows import right_to_watch
from asched.plugin import (
    I64,
    SUCCESS,
    Action,
    Aspect,
    Cluster,
    Codes,
    FilterPlugin,
    NodeView,
    PerClass,
    PodInfo,
    PostBindPlugin,
    Reason,
    Registration,
    ReservePlugin,
    Scope,
    ScorePlugin,
    Status,
    Trigger,
)

NOT_FRESH: Final = Reason("invalid node topology data", resolvable=True)
POD_NOT_ALIGNED: Final = Reason("cannot align pod", resolvable=True)
NOT_ALIGNED: Final = Reason("cannot align container", resolvable=True)
INIT_NOT_ALIGNED: Final = Reason("cannot align init container", resolvable=True)


class NodeResourceTopologyMatch(FilterPlugin, ScorePlugin, ReservePlugin, PostBindPlugin):
    name = "NodeResourceTopologyMatch"
    scope = Scope.NODE
    reasons = (NOT_FRESH, POD_NOT_ALIGNED, NOT_ALIGNED, INIT_NOT_ALIGNED)
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE
    kinds = (NODE_RESOURCE_TOPOLOGY,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_RESOURCE_TOPOLOGY)]

    def __init__(self, args: NodeResourceTopologyMatchArgs, cluster: Cluster) -> None:
        strategy = args.scoring_strategy
        self._strategy = strategy.type
        self._weights = {entry.name: max(entry.weight, 1) for entry in strategy.resources}
        indifferent = NumaDemand(QoS.BEST_EFFORT, {}, (), (), False)
        self._demand = PerClass(lambda cls: demand_of(cls.example), indifferent)
        self._cache = TopologyCache(cluster, args)

    def registrations(self) -> Sequence[Registration]:
        offers = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        reported = Trigger(NODE_RESOURCE_TOPOLOGY.resource, Action.ADD | Action.UPDATE)
        triggers = Trigger(POD.resource, Action.DELETE), Trigger(NODE.resource, offers), reported
        return tuple(map(Registration, triggers))

    def share_key(self, pod: PodInfo) -> Hashable:
        demand = self._demand(pod.cls)
        return demand.key if not demand.is_indifferent else "indifferent"

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        self._cache.refresh()
        return self._cache.version

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        codes: Codes = np.zeros(nodes.size, dtype=np.int32)
        demand = self._demand(pod.cls)
        if demand.is_indifferent:
            return codes
        self._cache.refresh()
        rows = nodes.row_numbers()
        fresh, cache = self._cache.is_fresh[rows], self._cache
        checked = np.flatnonzero(fresh & cache.has_topology[rows] & cache.zones.is_single[rows])
        zones = cache.zones.take(rows[checked])
        some = NodeView(nodes.table, rows[checked])
        alignment = Alignment(zones, some, demand)
        together, _ = alignment.fits(demand.whole)
        inits, containers = aligned_containers(alignment, demand)
        by_container = np.where(inits, np.where(containers, 0, 3), 4)
        codes[checked] = np.where(zones.is_pod_scope, np.where(together, 0, 2), by_container)
        codes[~fresh] = 1
        return codes

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        demand = self._demand(pod.cls)
        if not demand.is_guaranteed:
            return np.full(nodes.size, 100, dtype=np.int64)
        self._cache.refresh()
        scores: I64 = np.zeros(nodes.size, dtype=np.int64)
        rows, cache = nodes.row_numbers(), self._cache
        counts = cache.is_fresh[rows] & cache.has_topology[rows]
        if self._strategy == LEAST_NUMA_NODES:
            checked = np.flatnonzero(counts)
            scores[checked] = least_numa_nodes(cache.zones.take(rows[checked]), demand)
        else:
            checked = np.flatnonzero(counts & cache.zones.is_single[rows])
            zones = cache.zones.take(rows[checked])
            scores[checked] = zone_scores(ZONE_SCORES[self._strategy], zones, demand, self._weights)
        return scores

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        self._cache.reserve(pod.pod.uid, self._demand(pod.cls), node)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self._cache.release(pod.pod.uid, node)

    def post_bind(self, pod: PodInfo, node: str) -> None:
        self._cache.bound(pod.pod.uid, node)
