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
          in `cache.py`; `preemptionMode: Enabled` and `informerMode` are rejected by name.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.hardware.numa.cache import (
    ALL,
    AUTODETECT,
    NONE,
    ONLY_EXCLUSIVE,
    ONLY_RESOURCES,
    Mode,
    TopologyCache,
    fingerprint,
    no_fingerprint,
)
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY, NumaDemand, QoS, demand_of
from asched.hardware.numa.zones import (
    LEAST_ALLOCATED,
    LEAST_NUMA_NODES,
    ZONE_SCORES,
    aligned_containers,
    aligned_pod,
    least_numa_nodes,
    zone_scores,
)
from asched.hardware.rows import UpstreamArgs, right_to_watch
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
    PodClass,
    PodInfo,
    PostBindPlugin,
    Reason,
    Registration,
    ReservePlugin,
    ScorePlugin,
    Status,
    Trigger,
)

STRATEGIES: Final = (*ZONE_SCORES, LEAST_NUMA_NODES)
NOT_FRESH: Final = Reason("invalid node topology data", resolvable=True)
POD_NOT_ALIGNED: Final = Reason("cannot align pod", resolvable=True)
NOT_ALIGNED: Final = Reason("cannot align container", resolvable=True)
INIT_NOT_ALIGNED: Final = Reason("cannot align init container", resolvable=True)


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class NumaScoringStrategy:
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True)
class CacheArgs:
    """Args of the over-reserve cache."""

    foreign_pods_detect: str = ALL
    resync_method: str = AUTODETECT
    resync_scope: str = ALL
    informer_mode: str = ""

    def __post_init__(self) -> None:
        if self.informer_mode:
            raise ValueError(
                "cache.informerMode has no meaning here: there is one watch of pods; leave it out"
            )
        for name, value, known in (
            ("foreignPodsDetect", self.foreign_pods_detect, (ALL, NONE, ONLY_EXCLUSIVE)),
            ("resyncMethod", self.resync_method, (AUTODETECT, ALL, ONLY_EXCLUSIVE)),
            ("resyncScope", self.resync_scope, (ALL, ONLY_RESOURCES)),
        ):
            if value not in known:
                raise ValueError(f'cache.{name} "{value}" is none of {", ".join(known)}')


@dataclass(frozen=True, slots=True)
class NodeResourceTopologyMatchArgs(UpstreamArgs):
    """`cache_resync_period_seconds` above 0 enables the over-reserve cache;
    `discard_reserved_nodes` takes precedence.
    """

    scoring_strategy: NumaScoringStrategy = field(default_factory=NumaScoringStrategy)
    cache_resync_period_seconds: int = 0
    discard_reserved_nodes: bool = False
    cache: CacheArgs = field(default_factory=CacheArgs)
    preemption_mode: str = "Disabled"

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.scoring_strategy.type not in STRATEGIES:
            given, known = self.scoring_strategy.type, ", ".join(STRATEGIES)
            raise ValueError(f'scoringStrategy.type "{given}" is none of {known}')
        if self.cache_resync_period_seconds < 0:
            raise ValueError("cacheResyncPeriodSeconds must not be negative")
        if self.preemption_mode != "Disabled":
            raise ValueError(
                f'preemptionMode "{self.preemption_mode}" is not implemented: there is Disabled'
            )

    @property
    def mode(self) -> Mode:
        if self.discard_reserved_nodes:
            return Mode.DISCARD
        return Mode.OVER_RESERVE if self.cache_resync_period_seconds else Mode.PASS_THROUGH


class NodeResourceTopologyMatch(FilterPlugin, ScorePlugin, ReservePlugin, PostBindPlugin):
    """See the module's documentation."""

    name = "NodeResourceTopologyMatch"
    reasons = (NOT_FRESH, POD_NOT_ALIGNED, NOT_ALIGNED, INIT_NOT_ALIGNED)
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE
    kinds = (NODE_RESOURCE_TOPOLOGY,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_RESOURCE_TOPOLOGY)]

    def __init__(self, args: NodeResourceTopologyMatchArgs, cluster: Cluster) -> None:
        strategy = args.scoring_strategy
        self._strategy = strategy.type
        self._weights = {entry.name: max(entry.weight, 1) for entry in strategy.resources}
        self._demand = PerClass(_demand_of, NumaDemand(QoS.BEST_EFFORT, {}, (), (), False))
        over_reserves = args.mode is Mode.OVER_RESERVE
        self._cache = TopologyCache(
            cluster,
            args.mode,
            self._demand,
            fingerprint if over_reserves else no_fingerprint,
            resync_s=float(args.cache_resync_period_seconds),
            foreign_pods=args.cache.foreign_pods_detect,
            resync_method=args.cache.resync_method,
            resync_scope=args.cache.resync_scope,
        )

    def registrations(self) -> Sequence[Registration]:
        offers = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        reported = Trigger(NODE_RESOURCE_TOPOLOGY.resource, Action.ADD | Action.UPDATE)
        gone = Trigger(POD.resource, Action.DELETE)
        return (
            Registration(gone),
            Registration(Trigger(NODE.resource, offers)),
            Registration(reported),
        )

    def share_key(self, pod: PodInfo) -> Hashable:
        demand = self._demand(pod.cls)
        return demand.key if not demand.is_indifferent else "indifferent"

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        self._cache.refresh()
        return self._cache.version

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        found: Codes = np.zeros(nodes.size, dtype=np.int32)
        demand = self._demand(pod.cls)
        if demand.is_indifferent:
            return found
        self._cache.refresh()
        rows = nodes.row_numbers()
        fresh, cache = self._cache.is_fresh[rows], self._cache
        judged = np.flatnonzero(fresh & cache.has_topology[rows] & cache.zones.is_single[rows])
        zones = cache.zones.take(rows[judged])
        some = NodeView(nodes.table, rows[judged])
        together = aligned_pod(zones, some, demand)
        inits, containers = aligned_containers(zones, some, demand)
        by_container = np.where(inits, np.where(containers, 0, 3), 4)
        found[judged] = np.where(zones.is_pod_scope, np.where(together, 0, 2), by_container)
        found[~fresh] = 1
        return found

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
        demand = self._demand(pod.cls)
        if not demand.is_guaranteed:
            return np.full(nodes.size, 100, dtype=np.int64)
        self._cache.refresh()
        found: I64 = np.zeros(nodes.size, dtype=np.int64)
        rows, cache = nodes.row_numbers(), self._cache
        counts = cache.is_fresh[rows] & cache.has_topology[rows]
        if self._strategy == LEAST_NUMA_NODES:
            judged = np.flatnonzero(counts)
            found[judged] = least_numa_nodes(cache.zones.take(rows[judged]), demand)
        else:
            judged = np.flatnonzero(counts & cache.zones.is_single[rows])
            zones = cache.zones.take(rows[judged])
            found[judged] = zone_scores(ZONE_SCORES[self._strategy], zones, demand, self._weights)
        return found

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:  # noqa: ARG002
        self._cache.reserve(pod, node)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self._cache.release(pod.pod.uid, node)

    def post_bind(self, pod: PodInfo, node: str) -> None:
        self._cache.bound(pod.pod.uid, node)


def _demand_of(cls: PodClass) -> NumaDemand:
    return demand_of(cls.example)
