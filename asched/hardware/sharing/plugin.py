"""HamiVGPU, VolcanoVGPU, GpuShare: give out parts of devices for the device plugins of HAMi,
Volcano and gpushare.

Rejects   nodes that report no devices, or too little left on each, for a pod's request;
          pods whose request annotations cannot express.
Prefers   by `binpack` nodes whose devices are in use most, by `spread` those where least are.
Reserve   chooses the devices. PreBind waits until the node serves no other pod and writes the
          annotations that its device plugin reads; they are removed if the pod is not bound.
Retry     a pod with devices leaves its node; a node appears, or its amounts or reported devices
          change.
Cost      a few passes over rows and devices for each container; rows that pass are checked one
          by one for pods of several containers, or of devices by id or in one zone.
Source    `hami.py`, `volcano.py`, `gpushare.py`
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.hardware.rows import right_to
from asched.hardware.sharing.conventions import Convention
from asched.hardware.sharing.devices import BINPACK, Parts, SharingRequest
from asched.hardware.sharing.gpushare import GpuShareArgs, GpuShareConvention
from asched.hardware.sharing.hami import Hami, HamiVGPUArgs
from asched.hardware.sharing.ledger import ASPECTS, SharingLedger
from asched.hardware.sharing.turns import Locks, Phases, ServingTurns
from asched.hardware.sharing.volcano import Volcano, VolcanoVGPUArgs
from asched.plugin import (
    I64,
    IDLE,
    SKIP,
    SUCCESS,
    Action,
    Cluster,
    Codes,
    Done,
    FilterPlugin,
    Hint,
    Late,
    NodeView,
    Patch,
    PodInfo,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reason,
    Refused,
    Registration,
    ReservePlugin,
    Scope,
    ScorePlugin,
    Status,
    Trigger,
    failure,
    unresolvable,
    unschedulable,
)

NO_DEVICES: Final = Reason("node(s) reported no devices to share", resolvable=False)
NO_ROOM: Final = Reason("node(s) had too little left of each shared device", resolvable=True)

PATCHES_PODS: Final = right_to("", "pods", "patch")
PATCHES_NODES: Final = right_to("", "nodes", "patch")


class SharedDevices(PreFilterPlugin, FilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Subclasses differ in the convention, and in the turns: any number of pods is served at the
    same time if there are none.
    """

    reasons = (NO_DEVICES, NO_ROOM)
    depends_on = ASPECTS
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = (PATCHES_PODS,)

    def __init__(
        self,
        cluster: Cluster,
        convention: Convention,
        turns: ServingTurns | None,
        policy: str,
        node_policy: str,
    ) -> None:
        self._cluster = cluster
        self._convention = convention
        self._turns = turns
        self._node_policy = node_policy
        self._ledger = SharingLedger(cluster, convention, policy)
        self._begun: set[str] = set()  # uids of pods whose annotations may be written
        cluster.classes.tell_apart_by(convention.reads)
        cluster.classes.declare_amount_annotations(convention.writes)

    def registrations(self) -> Sequence[Registration]:
        node_changes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_ANNOTATION
        of_pods = Registration(
            Trigger(POD.resource, Action.DELETE | Action.UPDATE), self._pod_changed
        )
        return (of_pods, Registration(Trigger(NODE.resource, node_changes), self._node_changed))

    def _pod_changed(self, _pod: Pod, old: Pod, new: Pod | None) -> Hint:
        """The pod goes, or its devices appear in its annotations: once, since later changes are
        ignored.
        """
        request = self._convention.request_of(old) if old.spec.node_name else None
        if request is None:
            return Hint.SKIP
        is_annotated = self._parts(old, request) is None and self._parts(new, request) is not None
        return Hint.QUEUE if new is None or is_annotated else Hint.SKIP

    def _parts(self, pod: Pod | None, request: SharingRequest) -> Parts | None:
        return self._convention.parts(pod, pod.spec.node_name, request) if pod is not None else None

    def _node_changed(self, _pod: Pod, old: Any, new: Any) -> Hint:
        """Locks change often, devices do not."""
        if old is None or new is None:
            return Hint.QUEUE
        before, now = self._convention.devices(old), self._convention.devices(new)
        return Hint.SKIP if before == now else Hint.QUEUE

    def share_key(self, pod: PodInfo) -> Hashable:
        request = self._ledger.request_of(pod.cls)
        return IDLE if request is None else request

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        request = self._ledger.request_of(pod.cls)
        if request is None:
            return PreFilterResult(SKIP)
        if request.problem:
            return PreFilterResult(unresolvable(request.problem))
        return PreFilterResult(SUCCESS, data=request)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        request = self._ledger.request_of(pod.cls)
        if request is None:
            return np.zeros(nodes.size, dtype=np.int32)
        has_room = self._ledger.has_devices(nodes)
        codes = np.where(has_room, 2, 1).astype(np.int32)
        for wanted in set(request.device_requests):
            has_room &= self._ledger.fitting(nodes, wanted, request.rules) >= wanted.number
        if not request.is_simple:
            rows = nodes.row_numbers()
            for at in np.flatnonzero(has_room).tolist():
                has_room[at] = self._ledger.choose(int(rows[at]), request) is not None
        codes[has_room] = 0
        return codes

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        request = self._ledger.request_of(pod.cls)
        if request is None:
            return np.zeros(nodes.size, dtype=np.int64)
        used = self._ledger.used_share(nodes)
        policy = request.node_policy or self._node_policy
        return used if policy == BINPACK else 100 - used

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        request, row = self._ledger.request_of(pod.cls), self._cluster.nodes.row_of.get(node)
        if request is None or row is None:
            return SUCCESS
        uid = pod.pod.uid
        parts = self._ledger.choose(row, request, without=uid)
        if parts is None:
            return unschedulable(f"node {node} has too little left of each shared device")
        self._ledger.reserve(uid, parts)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> Late | None:
        self._ledger.reserved.pop(pod.pod.uid, None)  # its row is logged when it leaves
        if pod.pod.uid not in self._begun:
            return None
        self._begun.remove(pod.pod.uid)
        return self._take_back(pod.pod, node)

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS if pod.pod.uid in self._ledger.reserved else SKIP

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        uid = pod.pod.uid
        self._begun.add(uid)
        status = (yield from self._turns.take(pod.pod, node)) if self._turns else SUCCESS
        if not status.is_success:
            return status
        parts, known = self._ledger.reserved.get(uid), self._cluster.node_of(node)
        if parts is None or known is None:
            return failure(f"node {node}, or what was reserved there for {pod.pod.key}, is gone")
        reported = {device.id for device in self._convention.devices(known)}
        if gone := {part.device for container in parts for part in container} - reported:
            return failure(f"node {node} no longer reports device {min(gone)}")
        now_s = self._cluster.wall_clock_s
        written = self._convention.written(known, parts, now_s)
        labels = {name: written[name] for name in self._convention.writes_labels}
        answer = yield _patch(pod.pod, written, labels)
        if not isinstance(answer, Done):
            message = answer.message if isinstance(answer, Refused) else type(answer).__name__
            return failure(f"write the devices of pod {pod.pod.key}: {message}")
        self._begun = set(filter(self._cluster.is_assumed, self._begun))
        return SUCCESS

    def _take_back(self, pod: Pod, node: str) -> Late:
        if self._turns is not None:
            yield from self._turns.leave(pod, node)
        if pod.key not in self._cluster.pods_seen:
            return SUCCESS
        nothing = dict.fromkeys(self._convention.writes)
        answer = yield _patch(pod, nothing, dict.fromkeys(self._convention.writes_labels))
        if isinstance(answer, Refused):
            return failure(f"remove the devices of pod {pod.key}: {answer.message}")
        return SUCCESS


def _patch(
    pod: Pod, annotations: Mapping[str, str | None], labels: Mapping[str, str | None]
) -> Patch:
    """A patch of the pod with this uid."""
    metadata: dict[str, Any] = {"uid": pod.uid, "annotations": dict(annotations)}
    if labels:
        metadata["labels"] = dict(labels)
    name, namespace = pod.metadata.name, pod.metadata.namespace
    return Patch(kind=POD, namespace=namespace, name=name, body={"metadata": metadata})


class HamiVGPU(SharedDevices):
    """For nodes with HAMi's device plugin."""

    name = "HamiVGPU"
    scope = Scope.NODE
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = (PATCHES_PODS, PATCHES_NODES)

    def __init__(self, args: HamiVGPUArgs, cluster: Cluster) -> None:
        policies = args.gpu_scheduler_policy, args.node_scheduler_policy
        super().__init__(cluster, Hami(args), Locks(cluster), *policies)


class VolcanoVGPU(SharedDevices):
    """For nodes with Volcano's vGPU device plugin."""

    name = "VolcanoVGPU"
    scope = Scope.NODE

    def __init__(self, args: VolcanoVGPUArgs, cluster: Cluster) -> None:
        convention, policy = Volcano(args), args.schedule_policy
        turns = Phases(cluster, convention.request_of)
        super().__init__(cluster, convention, turns, policy, policy)


class GpuShare(SharedDevices):
    """For nodes with the gpushare device plugin."""

    name = "GpuShare"
    scope = Scope.NODE

    def __init__(self, args: GpuShareArgs, cluster: Cluster) -> None:
        super().__init__(cluster, GpuShareConvention(args), None, BINPACK, BINPACK)
