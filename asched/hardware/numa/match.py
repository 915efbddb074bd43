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

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.hardware.numa.zones import (
    EXCLUSIVE_METHOD,
    FINGERPRINT,
    FINGERPRINT_ANNOTATION,
    FINGERPRINT_METHOD,
    LEAST_ALLOCATED,
    LEAST_NUMA_NODES,
    NODE_RESOURCE_TOPOLOGY,
    ZONE_SCORES,
    Alignment,
    NodeResourceTopology,
    NumaDemand,
    QoS,
    Zones,
    aligned_containers,
    demand_of,
    least_numa_nodes,
    manager_of,
    owns_exclusively,
    zone_scores,
)
from asched.hardware.rows import Mask, UpstreamArgs, right_to_watch
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
    ScorePlugin,
    Status,
    Trigger,
)

try:
    from xxhash import xxh64_hexdigest, xxh64_intdigest
except ImportError:
    raise ModuleNotFoundError("it needs xxhash: install asched[numa]") from None

# Which report of a node's NUMA zones is valid, and what is subtracted for pods it does not
# include.
#
# Agents report late: a pod that was just placed is in no zone of the last report.
#
#         pass-through   the last report, unchanged
#         discard        a node with pods that are being bound is not used until they are bound
#         over-reserve   such pods are subtracted from every zone until the report and our state
#                        have the same pods; with pods that we did not place the node is not used
#                        until then
#
# Rules   a report is valid if its fingerprint is that of the pods that run on the node; it then
#         includes those, and pods that do not run yet stay subtracted. A report without fingerprint
#         is valid while no pod can be missing from it. A node's first report is valid as well; but
#         if it has a fingerprint that differs from ours, the node waits.
# Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/cache/overreserve.go; the
#         fingerprint is k8stopologyawareschedwg/podfingerprint's, version 1. Deliberate
#         difference: pods of another profile or replica count as foreign; nodes are checked on
#         every report, not only in intervals.
# Bounds  one entry a pod on a node that has a topology.

# The fingerprint of the pods on a node, as agents write it: equal for equal sets of names.
#
# Source  k8stopologyawareschedwg/podfingerprint, version 1: xxHash64 of the sorted hashes of all
#         pods, each the hash of its name seeded with that of its namespace

PREFIX: Final = "pfp0v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """The fingerprint of pods, each (namespace, name)."""
    hashes = sorted(
        xxh64_intdigest(name.encode(), seed=xxh64_intdigest(namespace.encode()))
        for namespace, name in pods
    )
    joined = b"".join(value.to_bytes(8, "little") for value in hashes)
    return PREFIX + xxh64_hexdigest(joined)


class Mode(Enum):
    PASS_THROUGH = "pass-through"  # noqa: S105
    DISCARD = "discard"
    OVER_RESERVE = "over-reserve"


ALL: Final = "All"
NONE: Final = "None"
ONLY_EXCLUSIVE: Final = "OnlyExclusiveResources"
AUTODETECT: Final = "Autodetect"
ONLY_RESOURCES: Final = "OnlyResources"


class _Node(msgspec.Struct, eq=False):
    """One node that has a topology: the valid report, and the pods it may lack."""

    uid: str  # of the node
    valid_report: NodeResourceTopology
    known: set[str]  # uids of pods that were processed
    reserved: dict[str, NumaDemand] = msgspec.field(default_factory=dict)  # uid -> demand
    is_foreign: bool = False

    @property
    def is_complete(self) -> bool:
        return not self.reserved and not self.is_foreign


class TopologyCache:
    """Reports used by one profile. `version` changes when rows change that no row log has."""

    def __init__(self, cluster: Cluster, args: "NodeResourceTopologyMatchArgs") -> None:
        self._cluster = cluster
        self._mode = args.mode
        self._resync_s = args.cache_resync_period_seconds
        self._args = args.cache
        self._rows_seen = -1
        self._objects_seen = -1
        self._next_s = 0.0
        self._nodes: dict[str, _Node] = {}
        self._names: list[str] = []  # row -> the node that was there
        self._waiting: dict[str, None] = {}  # names of nodes whose last report is not valid yet
        self.zones = Zones(0, 1)
        self.is_fresh: Mask = np.zeros(0, dtype=np.bool_)
        self.has_topology: Mask = np.zeros(0, dtype=np.bool_)
        self.version = 0

    def refresh(self) -> None:
        """Process new reports and placements."""
        nodes = self._cluster.nodes
        rows: Iterable[int] | None = nodes.log.rows(self._rows_seen, int(Aspect.PODS | Aspect.LIVE))
        changes = self._cluster.object_log.since(self._objects_seen)
        if rows is None or changes is None:
            rows = range(nodes.height)
            known = nodes.row_of if self._rows_seen >= 0 else ()  # new rows are refreshed anyway
            changes = [(NODE_RESOURCE_TOPOLOGY.resource, name) for name in known]
            if self.zones.size > nodes.height:
                self.zones, self.is_fresh = Zones(0, 1), self.is_fresh[:0]
                self.has_topology, self._names = self.has_topology[:0], []
                self._forget(name for name in tuple(self._nodes) if name not in nodes.row_of)
        self._rows_seen, self._objects_seen = nodes.log.end, self._cluster.object_log.end
        self.zones.reserve(nodes.height, 1)
        more = nodes.height - len(self.is_fresh)
        self.is_fresh = np.pad(self.is_fresh, (0, more), constant_values=True)
        self.has_topology = np.pad(self.has_topology, (0, more))
        self._names += [""] * more
        names = {key for resource, key in changes if resource == NODE_RESOURCE_TOPOLOGY.resource}
        for row in rows:
            self._process_pods(row)
        now_s = self._cluster.wall_clock_s
        if now_s >= self._next_s and self._waiting:
            names.update(self._waiting)
            self._next_s = now_s + self._resync_s
        for name in names:
            self._process_report(name)

    def _process_pods(self, row: int) -> None:
        """Process the pods of a row: those that another scheduler placed."""
        node = self._cluster.nodes.node_at[row]
        name, before = node.name if node is not None else "", self._names[row]
        self._names[row] = name
        if before not in self._cluster.nodes.row_of:
            self._forget((before,))
        known = self._nodes.get(name)
        if node is None or known is None or known.uid != node.metadata.uid:
            self.is_fresh[row], self.has_topology[row] = True, False
            if node is not None:
                self._process_report(name)
            return
        pods = self._cluster.pods_on(row)
        known.known &= pods.keys()
        for uid, info in pods.items():
            if uid not in known.known:
                known.known.add(uid)
                if uid not in known.reserved and self._is_foreign(info, known.valid_report):
                    known.is_foreign = True
                    self._waiting[node.name] = None
        self._write(node.name)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._nodes.pop(name, None)
            self._waiting.pop(name, None)

    def _is_foreign(self, info: PodInfo, topology: NodeResourceTopology) -> bool:
        detect = self._args.foreign_pods_detect
        if self._mode is not Mode.OVER_RESERVE or detect == NONE:
            return False
        return detect == ALL or owns_exclusively(info.pod, _listed(topology))

    def _process_report(self, name: str) -> None:
        """Process the last report of a node's agent: use it, or wait."""
        row = self._cluster.nodes.row_of.get(name)
        report: NodeResourceTopology | None = self._cluster.get(NODE_RESOURCE_TOPOLOGY, name)
        if row is None or report is None:
            self._forget((name,))
            if row is not None and self.has_topology[row]:
                self.is_fresh[row], self.has_topology[row] = True, False
                self.version += 1
            return
        holder = self._cluster.nodes.node_at[row]
        uid = holder.metadata.uid if holder is not None else ""
        node = self._nodes.get(name)
        if node is not None and node.uid != uid:
            node = None  # created again: the reservations were on another node
        matches = self._mode is not Mode.OVER_RESERVE or self._names_our_pods(report, row)
        if node is None:
            node = self._nodes[name] = _Node(uid, report, set(self._cluster.pods_on(row)))
            node.is_foreign = not matches and bool(_fingerprint(report))
            if matches:
                self._settle(node, row)
        elif matches:
            node.valid_report = report
            self._settle(node, row)
        elif node.is_complete and not _fingerprint(report):
            node.valid_report = report
        elif self._args.resync_scope == ALL and manager_of(report) != manager_of(node.valid_report):
            node.valid_report = report  # the kubelet was restarted with other settings
        is_current = node.valid_report is report and node.is_complete
        if is_current or not _fingerprint(report):
            self._waiting.pop(name, None)
        else:
            self._waiting[name] = None
        self._write(name)
        self.version += 1

    def _settle(self, node: _Node, row: int) -> None:
        """The valid report includes all pods that run on the row."""
        if self._mode is not Mode.OVER_RESERVE:
            return
        pods = self._cluster.pods_on(row)
        to_come = {uid: info for uid, info in pods.items() if not _runs(info)}
        node.reserved = {uid: demand for uid, demand in node.reserved.items() if uid in to_come}
        node.is_foreign = any(
            uid not in node.reserved and self._is_foreign(info, node.valid_report)
            for uid, info in to_come.items()
        )

    def _names_our_pods(self, report: NodeResourceTopology, row: int) -> bool:
        expected = _fingerprint(report)
        if not expected:
            return False
        by_method = report.attribute(FINGERPRINT_METHOD) == EXCLUSIVE_METHOD
        method = self._args.resync_method
        exclusive = method == ONLY_EXCLUSIVE or (method == AUTODETECT and by_method)
        listed = _listed(report) if exclusive else frozenset()
        running = (info.pod for info in self._cluster.pods_on(row).values() if _runs(info))
        named = [
            (pod.metadata.namespace, pod.metadata.name)
            for pod in running
            if not exclusive or owns_exclusively(pod, listed)
        ]
        return fingerprint(named) == expected

    def _write(self, name: str) -> None:
        row, node = self._cluster.nodes.row_of[name], self._nodes[name]
        taken = node.reserved.values() if self._mode is Mode.OVER_RESERVE else ()
        wanted = [demand.whole for demand in taken]
        self.zones.write(row, node.valid_report, wanted)
        self.has_topology[row] = True
        waits_for_bindings = self._mode is Mode.DISCARD and node.reserved
        self.is_fresh[row] = not node.is_foreign and not waits_for_bindings

    def reserve(self, uid: str, demand: NumaDemand, name: str) -> None:
        """Reserve for a pod of ours. Its row was logged when it was assumed, and is
        processed next.
        """
        node = self._nodes.get(name)
        if node is None or self._mode is Mode.PASS_THROUGH:
            return
        node.reserved[uid] = demand
        if self._mode is Mode.OVER_RESERVE:
            self._waiting[name] = None

    def release(self, uid: str, name: str) -> None:
        """Undo a reservation; the row is logged when the pod leaves."""
        node = self._nodes.get(name)
        taken = node.reserved.pop(uid, None) if node is not None else None
        if taken is not None and name in self._cluster.nodes.row_of:
            self._write(name)

    def bound(self, uid: str, name: str) -> None:
        """The pod is bound."""
        if self._mode is Mode.DISCARD:
            self.release(uid, name)
            self.version += 1


def _runs(info: PodInfo) -> bool:
    return info.pod.status.phase == "Running"


def _fingerprint(topology: NodeResourceTopology) -> str:
    found = topology.attribute(FINGERPRINT)
    return found or (topology.metadata.annotations or {}).get(FINGERPRINT_ANNOTATION, "")


def _listed(topology: NodeResourceTopology) -> frozenset[str]:
    """Every resource that some zone lists."""
    return frozenset(
        resource.name for zone in topology.zones or () for resource in zone.resources or ()
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
    name = "NodeResourceTopologyMatch"
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
