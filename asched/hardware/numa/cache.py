"""Which report of a node's NUMA zones is valid, and what is subtracted for pods it does not
include.

Agents report late: a pod that was just placed is in no zone of the last report.

    pass-through   the last report, unchanged
    discard        a node with pods that are being bound is not used until they are bound
    over-reserve   such pods are subtracted from every zone until the report and our state
                   have the same pods; with pods that we did not place the node is not used
                   until then

Rules   a report is valid if its fingerprint is that of the pods that run on the node; it then
        includes those, and pods that do not run yet stay subtracted. A report without fingerprint
        is valid while no pod can be missing from it. A node's first report is valid as well; but
        if it has a fingerprint that differs from ours, the node waits.
Source  kubernetes-sigs/scheduler-plugins pkg/noderesourcetopology/cache/overreserve.go; the
        fingerprint is k8stopologyawareschedwg/podfingerprint's, version 1. Deliberate
        difference: pods of another profile or replica count as foreign; nodes are checked on
        every report, not only in intervals.
Bounds  one entry a pod on a node that has a topology.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from asched.hardware.numa.args import (
    ALL,
    AUTODETECT,
    NONE,
    ONLY_EXCLUSIVE,
    Mode,
    NodeResourceTopologyMatchArgs,
)
from asched.hardware.numa.demand import NumaDemand, owns_exclusively
from asched.hardware.numa.fingerprint import fingerprint
from asched.hardware.numa.topology import (
    EXCLUSIVE_METHOD,
    FINGERPRINT,
    FINGERPRINT_ANNOTATION,
    FINGERPRINT_METHOD,
    NODE_RESOURCE_TOPOLOGY,
    NodeResourceTopology,
    manager_of,
)
from asched.hardware.numa.zones import Zones
from asched.hardware.rows import Mask
from asched.plugin import (
    Aspect,
    Cluster,
    PodInfo,
)


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

    def __init__(self, cluster: Cluster, args: NodeResourceTopologyMatchArgs) -> None:
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
