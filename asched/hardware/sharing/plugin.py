"""HamiVGPU, VolcanoVGPU, GpuShare: place pods that share devices, and assign these by annotations.

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
from asched.hardware.sharing import hami, volcano
from asched.hardware.sharing.convention import Convention
from asched.hardware.sharing.devices import BINPACK, Parts, SharingRequest
from asched.hardware.sharing.gpushare import GpuShareArgs, GpuShareConvention
from asched.hardware.sharing.hami import Hami, HamiVGPUArgs
from asched.hardware.sharing.ledger import ASPECTS, SharingLedger
from asched.hardware.sharing.turns import Locks, NoTurns, Phases, ServingTurns
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
    ScorePlugin,
    Status,
    Trigger,
    failure,
    unresolvable,
    unschedulable,
)

NO_DEVICES: Final = Reason("node(s) reported no devices to share", resolvable=False)
NO_ROOM: Final = Reason("node(s) had too little left of each shared device", resolvable=True)

PATCHES_PODS: Final[Mapping[str, Any]] = {
    "apiGroups": [""],
    "resources": ["pods"],
    "verbs": ["patch"],
}
PATCHES_NODES: Final[Mapping[str, Any]] = {
    "apiGroups": [""],
    "resources": ["nodes"],
    "verbs": ["patch"],
}


class SharedDevices(PreFilterPlugin, FilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """See the module's documentation; subclasses differ in the convention, and in the turns."""

    reasons = (NO_DEVICES, NO_ROOM)
    depends_on = ASPECTS
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = (PATCHES_PODS,)

    def __init__(
        self,
        cluster: Cluster,
        convention: Convention,
        turns: ServingTurns,
        policy: str,
        node_policy: str,
    ) -> None:
        self._cluster = cluster
        self._convention = convention
        self._turns = turns
        self._policy, self._node_policy = policy, node_policy
        self._ledger = SharingLedger(cluster, convention, policy)
        self._begun: dict[str, bool] = {}  # uid -> whether the API may have any of its annotations
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

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        found: Codes = np.full(nodes.size, 1, dtype=np.int32)
        request = self._ledger.request_of(pod.cls)
        if request is None:
            return np.zeros(nodes.size, dtype=np.int32)
        has_room = self._ledger.has_devices(nodes)
        found[has_room] = 2
        for asked in set(request.asked):
            has_room &= self._ledger.fitting(nodes, asked, request.rules) >= asked.number
        if not request.is_simple:
            rows = nodes.row_numbers()
            for at in np.flatnonzero(has_room).tolist():
                has_room[at] = self._choose(int(rows[at]), request) is not None
        found[has_room] = 0
        return found

    def _choose(self, row: int, request: SharingRequest, without: str = "") -> Any:
        return self._ledger.room(row, without).choose(request, self._policy)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:  # noqa: ARG002
        request = self._ledger.request_of(pod.cls)
        if request is None:
            return np.zeros(nodes.size, dtype=np.int64)
        used = self._ledger.used_share(nodes)
        policy = request.node_policy or self._node_policy
        return used if policy == BINPACK else 100 - used

    # --- on the way to a node --------------------------------------------------------------------

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:  # noqa: ARG002
        request, row = self._ledger.request_of(pod.cls), self._cluster.nodes.row_of.get(node)
        if request is None or row is None:
            return SUCCESS
        uid = pod.pod.uid
        parts = self._choose(row, request, without=uid)
        if parts is None:
            return unschedulable(f"node {node} has too little left of each shared device")
        self._ledger.reserve(uid, parts)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> Late | None:
        self._ledger.release(pod.pod.uid)
        if self._begun.pop(pod.pod.uid, None) is None:
            return None
        return self._take_back(pod.pod, node)

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:  # noqa: ARG002
        return SUCCESS if self._ledger.reserved(pod.pod.uid) is not None else SKIP

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        uid = pod.pod.uid
        self._begun[uid] = True
        status = yield from self._turns.take(pod.pod, node)
        if not status.is_success:
            return status
        parts, known = self._ledger.reserved(uid), self._cluster.node_of(node)
        if parts is None or known is None:
            return failure(f"node {node}, or what was reserved there for {pod.pod.key}, is gone")
        reported = {device.id for device in self._convention.devices(known)}
        if gone := {part.device for container in parts for part in container} - reported:
            return failure(f"node {node} no longer reports device {min(gone)}")
        now_s = self._cluster.wall_clock_s
        written = self._convention.written(pod.pod, known, parts, now_s)
        answer = yield _patch(pod.pod, written.annotations, written.labels)
        if not isinstance(answer, Done):
            message = answer.message if isinstance(answer, Refused) else type(answer).__name__
            return failure(f"write the devices of pod {pod.pod.key}: {message}")
        self._begun = {uid: True for uid in self._begun if self._cluster.is_assumed(uid)}
        return SUCCESS

    def _take_back(self, pod: Pod, node: str) -> Late:
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
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = (PATCHES_PODS, PATCHES_NODES)

    def __init__(self, args: HamiVGPUArgs, cluster: Cluster) -> None:
        policies = args.gpu_scheduler_policy, args.node_scheduler_policy
        super().__init__(cluster, Hami(args), Locks(cluster, hami.LOCK), *policies)


class VolcanoVGPU(SharedDevices):
    """For nodes with Volcano's vGPU device plugin."""

    name = "VolcanoVGPU"

    def __init__(self, args: VolcanoVGPUArgs, cluster: Cluster) -> None:
        keys = volcano.PHASE, volcano.BIND_TIME, volcano.LOCK
        convention = Volcano(args)
        turns = Phases(cluster, keys, volcano.ALLOCATING, convention.request_of)
        policies = args.schedule_policy, args.schedule_policy
        super().__init__(cluster, convention, turns, *policies)


class GpuShare(SharedDevices):
    """For nodes with the gpushare device plugin."""

    name = "GpuShare"

    def __init__(self, args: GpuShareArgs, cluster: Cluster) -> None:
        super().__init__(cluster, GpuShareConvention(args), NoTurns(cluster), BINPACK, BINPACK)
