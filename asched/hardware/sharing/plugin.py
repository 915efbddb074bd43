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
Source    `conventions.py`
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, ClassVar, Final

import numpy as np

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds, rfc3339
from asched.hardware.rows import ByNode, Mask, right_to, scheduled_s, sweep
from asched.hardware.sharing.conventions import (
    ALLOCATING,
    GIVEN_UP_S,
    HAMI_LOCK,
    VOLCANO_KEYS,
    VOLCANO_LOCK,
    Convention,
    GpuShareArgs,
    GpuShareConvention,
    Hami,
    HamiVGPUArgs,
    Volcano,
    VolcanoVGPUArgs,
    annotations_of,
    number,
)
from asched.hardware.sharing.devices import (
    BINPACK,
    DEVICES_MAX,
    WHOLE,
    DeviceRules,
    DeviceShareRequest,
    FreeDevices,
    Parts,
    SharingRequest,
    held_by,
)
from asched.plugin import (
    I64,
    IDLE,
    SKIP,
    SUCCESS,
    Action,
    Aspect,
    Cluster,
    Codes,
    Done,
    Effect,
    FilterPlugin,
    Hint,
    Late,
    NodeView,
    Patch,
    PerClass,
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
    WaitFor,
    failure,
    unresolvable,
    unschedulable,
)

# Serialize binding of pods to a node: device plugins assign devices to one pod at a time.
#
#         lock   an annotation of the node with time and pod; asched sets it, the plugin removes it.
#                It blocks other pods while it is younger than GIVEN_UP_S and its pod exists.
#         phase  the plugin serves the pod that was marked first, then the next one is marked. Only
#                pods that request such devices are waited for, once each, from their binding (or
#                when they were first seen so) until GIVEN_UP_S later: what their owners write
#                afterwards is ignored.
#
# Pods of ours wait in a queue for each node. A lock is set with the known version of the node, so
# that only one client gets it.
#
# Source  Project-HAMi/HAMi pkg/util/nodelock/nodelock.go; `conventions.py`
# Rules   times GIVEN_UP_S ahead are ignored: the owner of a pod can write any.
# Bounds  a queue that does not move is awaited for TURN_S_MAX; ATTEMPTS_MAX writes, NEWS_S_MAX
#         until a check without events.

TURN_S_MAX: Final = 2 * GIVEN_UP_S
NEWS_S_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 10
CONFLICT: Final = 409
#: The turn began so long ago that it is over.
SERVED: Final = -inf
#: Topic of a node: a pod has left its queue, and the next has its turn.
QUEUE: Final = "queue"


class ServingTurns(ABC):
    """Lets a pod through when no other pod is being served on the node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._queues: dict[str, deque[str]] = {}

    def take(self, pod: Pod, node: str) -> Late:
        """Let the pod through once its turn has come."""
        queue = self._queues.setdefault(node, deque())
        queue.append(pod.uid)
        first, until_s = queue[0], self._cluster.steady_s + TURN_S_MAX
        try:
            for _ in range(ATTEMPTS_MAX):
                while why := self._obstacle(pod, node, queue):
                    if queue[0] != first:  # the queue moves on
                        first, until_s = queue[0], self._cluster.steady_s + TURN_S_MAX
                    remaining_s = until_s - self._cluster.steady_s
                    if remaining_s <= 0:
                        return failure(f"node {node} was not free to serve {pod.key}: {why}")
                    yield WaitFor(
                        ready=partial(self._has_moved, pod, node, queue, why),
                        timeout_s=min(remaining_s, NEWS_S_MAX),
                        on=((QUEUE, node), *self._topics(node)),
                        why=partial(str, why),
                    )
                status = yield from self._enter(pod, node)
                if status is not None:
                    return status
        finally:
            queue.remove(pod.uid)
            if not queue:
                self._queues.pop(node, None)
            self._cluster.object_log.add(QUEUE, node)
        return failure(
            f"the lock of node {node} could not be taken: it changed {ATTEMPTS_MAX} times"
        )

    def _obstacle(self, pod: Pod, node: str, queue: deque[str]) -> str:
        return self._in_the_way(pod, node) if queue[0] == pod.uid else "other pods wait before it"

    def _has_moved(self, pod: Pod, node: str, queue: deque[str], before: str) -> bool:
        """Whether the obstacle has changed or is gone."""
        return self._obstacle(pod, node, queue) != before

    @abstractmethod
    def leave(self, pod: Pod, node: str) -> Late:
        """The pod is not bound on the node."""

    @abstractmethod
    def _in_the_way(self, pod: Pod, node: str) -> str:
        """The pod or lock in the way; empty if there is none."""

    @abstractmethod
    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        """Topics of changes that may remove the obstacle."""

    @abstractmethod
    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        """Begin; there is no obstacle. None: another client was faster."""


class Locks(ServingTurns):
    """One annotation of the node for all device plugins of HAMi's kind."""

    def _lock_of(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return (known.metadata.annotations or {}).get(HAMI_LOCK, "") if known else ""

    def _in_the_way(self, pod: Pod, node: str) -> str:
        lock = self._lock_of(node)
        if not lock or _names(lock, pod) or is_over(lock, self._cluster.wall_clock_s):
            return ""
        _, *key = lock.split(",")
        if len(key) == 2 and "/".join(key) not in self._cluster.pods_seen:
            return ""  # the pod of the lock does not exist any more
        return f"{HAMI_LOCK} is set"  # it names a pod of any namespace

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        return ((NODE.resource, node),)

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        if _names(self._lock_of(node), pod):
            return SUCCESS
        known = self._cluster.node_of(node)
        if known is None:
            return failure(f"node {node} is gone")
        version = known.metadata.resource_version
        now = rfc3339(self._cluster.wall_clock_s)
        lock = f"{now},{pod.metadata.namespace},{pod.metadata.name}"
        answer = yield self._patch(node, version, lock)
        if isinstance(answer, Done):
            return SUCCESS
        if isinstance(answer, Refused) and answer.code != CONFLICT:
            return failure(f"lock node {node}: {answer.message}")
        yield self._news(node, version)
        return None

    def leave(self, pod: Pod, node: str) -> Late:
        """Remove its lock, if it is still ours; the plugin may have removed it."""
        for _ in range(ATTEMPTS_MAX):
            lock = self._lock_of(node)
            if lock and not _names(lock, pod):
                break
            # Ours, or not seen yet: the version in the patch decides.
            version = self._version(node)
            answer = yield self._patch(node, version, None)
            if not isinstance(answer, Refused) or answer.code != CONFLICT:
                break
            yield self._news(node, version)
        return SUCCESS

    def _news(self, node: str, version: str) -> WaitFor:
        return WaitFor(
            ready=lambda: self._version(node) != version,
            timeout_s=NEWS_S_MAX,
            on=self._topics(node),
        )

    def _version(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return known.metadata.resource_version if known is not None else ""

    def _patch(self, node: str, version: str, lock: str | None) -> Patch:
        metadata = {"resourceVersion": version, "annotations": {HAMI_LOCK: lock}}
        return Patch(kind=NODE, namespace="", name=node, body={"metadata": metadata})


class Phases(ServingTurns):
    """Each pod has an annotation of whether it has been served by Volcano's device plugin."""

    def __init__(
        self, cluster: Cluster, request_of: Callable[[Pod], SharingRequest | None]
    ) -> None:
        """`request_of`: the request of a pod for these devices."""
        super().__init__(cluster)
        self._asks = PerClass(lambda cls: request_of(cls.example) is not None, False)
        #: uid -> when it was let through, or its turn began; SERVED once that is over
        self._began: dict[str, float] = {}

    def _in_the_way(self, pod: Pod, node: str) -> str:
        row, known = self._cluster.nodes.row_of.get(node), self._cluster.node_of(node)
        if row is None or known is None:
            return ""
        now_s = self._cluster.wall_clock_s
        lock = (known.metadata.annotations or {}).get(VOLCANO_LOCK, "")
        if lock and not is_over(lock, now_s):
            return f"{VOLCANO_LOCK} is set"
        for uid, info in self._cluster.pods_on(row).items():
            if uid != pod.uid and self._is_being_served(info, now_s):
                is_own = info.pod.metadata.namespace == pod.metadata.namespace
                return f"{info.pod.key if is_own else 'another pod'} is being served"
        return ""

    def _is_being_served(self, info: PodInfo, now_s: float) -> bool:
        uid = info.pod.uid
        if not self._asks(info.cls):
            return False
        seen = self._cluster.pods_seen.get(info.pod.key)
        annotations = annotations_of(seen) if seen is not None else {}
        phase = annotations.get(VOLCANO_KEYS.phase, "")
        if phase and phase != ALLOCATING:
            self._began[uid] = SERVED
        elif phase and seen is not None and uid not in self._began:
            at_s = float(number(annotations.get(VOLCANO_KEYS.bind_time, "")) or 0)
            is_likely = abs(now_s - at_s) < GIVEN_UP_S
            self._began[uid] = min(at_s, now_s, scheduled_s(seen, now_s)) if is_likely else SERVED
        return now_s - self._began.get(uid, SERVED) < GIVEN_UP_S

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        row = self._cluster.nodes.row_of.get(node)
        placed = self._cluster.pods_on(row).values() if row is not None else ()
        now_s = self._cluster.wall_clock_s
        pods = (info.pod.key for info in placed if self._is_being_served(info, now_s))
        return ((NODE.resource, node), *((POD.resource, key) for key in pods))

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        placed = self._cluster.placed
        self._began = {uid: at_s for uid, at_s in self._began.items() if uid in placed}
        self._began[pod.uid] = self._cluster.wall_clock_s
        yield from ()
        return SUCCESS

    def leave(self, pod: Pod, node: str) -> Late:
        self._began.pop(pod.uid, None)
        yield from ()
        return SUCCESS


def _names(lock: str, pod: Pod) -> bool:
    return lock.endswith(f",{pod.metadata.namespace},{pod.metadata.name}")


def is_over(lock: str, now_s: float) -> bool:
    """Whether a lock is too old, or has a time in the future; a lock without a valid time
    is over.
    """
    try:
        return abs(now_s - microseconds(lock.split(",", 1)[0]) / 1e6) > GIVEN_UP_S
    except ValueError:
        return False


# Free amounts of each node's devices.
#
# A pod's owner can write its annotations at any time. So a pod's devices are those that were
# reserved for it by this process or, for pods that this process did not bind, those that its
# annotations named when they were first read, if these devices had enough left; they count with the
# amounts of the pod's own spec. Later changes of the annotations are ignored. A pod whose
# annotations name a different number of devices than it requests, devices that its node does not
# have or whose other pods leave too little, or none, has unknown devices: its request is subtracted
# once, from devices that it would get. Assumed pods of ours have no devices yet and get them as if
# they were bound one after the other.
#
# Bounds  one entry a pod with devices; DEVICES_MAX devices a node.

ASPECTS: Final = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.ANNOTATIONS | Aspect.LIVE
_EMPTY: Final = FreeDevices(())
#: Positions on the first axis of the columns.
SLOTS, USED, MEMORY, TOTAL, CORES, CORES_TOTAL, MODEL = range(7)


class SharingLedger(ByNode):
    """Free devices by row, and the same as columns."""

    def __init__(self, cluster: Cluster, convention: Convention, policy: str) -> None:
        super().__init__(cluster, ASPECTS)
        self._convention = convention
        self._policy = policy
        self._rooms: list[FreeDevices] = []
        self._columns: I64 = np.zeros((7, 0, 1), dtype=np.int64)
        self._models: dict[tuple[str, str], int] = {}  # (model, mode) -> number
        self.reserved: dict[str, Parts] = {}  # by uid, of pods that are placed
        self.request_of: PerClass[SharingRequest | None] = PerClass(
            lambda cls: convention.request_of(cls.example), None
        )

    def reserve(self, uid: str, parts: Parts) -> None:
        sweep(self.reserved, self._cluster)
        self.reserved[uid] = parts

    def choose(self, row: int, request: SharingRequest, without: str = "") -> Parts | None:
        """Devices of a row for a pod; `without` a pod that is there. None if too few are free."""
        if without or self._cluster.topology.on_trial:
            return self._room(row, without).choose(request, self._policy)
        self.refresh()
        return self._rooms[row].choose(request, self._policy)

    def has_devices(self, view: NodeView) -> Mask:
        """bool[M]: whether a row has any."""
        found: Mask = self._of(view)[TOTAL].any(axis=1)
        return found

    def fitting(self, view: NodeView, request: DeviceShareRequest, rules: DeviceRules) -> I64:
        """int64[M]: how many devices of each row have room for one device of the request."""
        columns = self._of(view)
        allowed = np.zeros(len(self._models) + 1, dtype=np.bool_)
        for (model, mode), at in self._models.items():
            allowed[at] = rules.allow_kind(model, mode)
        fits: Mask = (columns[SLOTS] > 0) & allowed[columns[MODEL]]
        amount = request.memory or columns[TOTAL] * request.percent // 100
        fits &= amount <= columns[MEMORY]
        counted, free = columns[CORES_TOTAL], columns[CORES]
        fits &= (counted == 0) | ((request.cores <= free) & (free > 0))
        if rules.is_alone:
            fits &= columns[USED] == 0
        elif request.cores >= WHOLE:
            fits &= (columns[USED] == 0) | (counted != WHOLE)
        found: I64 = np.count_nonzero(fits, axis=1)
        return found

    def used_share(self, view: NodeView) -> I64:
        """int64[M], 0..100: used share of the memory of all devices of a row."""
        columns = self._of(view)
        total, free = columns[TOTAL].sum(axis=1), columns[MEMORY].sum(axis=1)
        found: I64 = (total - free) * 100 // np.maximum(total, 1)
        return found

    def _of(self, view: NodeView) -> I64:
        """int64[7, M, D]: current columns of a view; in a trial, with its changes."""
        rows = view.row_numbers()
        if not self._cluster.topology.on_trial:
            self.refresh()
            return self._columns[:, rows]
        found = np.zeros((7, len(rows), DEVICES_MAX), dtype=np.int64)
        for at, row in enumerate(rows.tolist()):
            self._write(found, at, self._room(row))
        return found

    def _reset(self, height: int) -> None:
        self._rooms = [_EMPTY] * height
        self._columns = np.zeros((7, height, self._columns.shape[2]), dtype=np.int64)
        self._models = {}

    def _read(self, row: int) -> None:
        self._rooms[row] = room = self._room(row)
        more = len(room.devices) - self._columns.shape[2]
        if more > 0:
            self._columns = np.pad(self._columns, ((0, 0), (0, 0), (0, more)))
        self._write(self._columns, row, room)

    def _room(self, row: int, without: str = "") -> FreeDevices:
        node = self._cluster.nodes.node_at[row]
        devices = self._convention.devices(node) if node is not None else ()
        if node is None or not devices:
            return _EMPTY
        room = FreeDevices(devices)
        others, assumed_requests = list[tuple[Pod, SharingRequest]](), list[SharingRequest]()
        for uid, info in self._cluster.pods_on(row).items():
            request = self.request_of(info.cls) if uid != without else None
            if request is None:
                continue
            if uid in self.reserved:
                room.take(held_by(request.roles, self.reserved[uid]))
            elif info.assumed:
                assumed_requests.append(request)
            else:
                others.append((info.pod, request))
        for request in self._without_named(room, node.name, others):
            room.take_somewhere(request, self._policy)
        for request in assumed_requests:
            parts = room.choose(request, self._policy)
            if parts is not None:
                room.take(held_by(request.roles, parts))
            else:
                room.take_somewhere(request, self._policy)
        return room

    def _without_named(
        self, room: FreeDevices, node: str, pods: Sequence[tuple[Pod, SharingRequest]]
    ) -> list[SharingRequest]:
        """Subtract pods from the devices that their annotations name; the requests of pods for
        which that is not possible.
        """
        unknown = []
        for pod, request in pods:
            annotated = self._convention.parts(pod, node, request)
            parts = room.confirmed(request, annotated) if annotated is not None else None
            held = held_by(request.roles, parts) if parts is not None else {}
            if parts is None or not room.has_room_for(held):
                unknown.append(request)
                continue
            room.take(held)
            if not self._cluster.topology.on_trial:
                self.reserve(pod.uid, parts)
        return unknown

    def _write(self, columns: I64, at: int, room: FreeDevices) -> None:
        columns[:, at] = 0
        for place, device in enumerate(room.devices):
            key = (device.model, device.mode)
            model = self._models.setdefault(key, len(self._models) + 1)
            slots = room.slots[place]
            columns[:, at, place] = (
                slots if device.is_healthy else 0,
                device.slots - slots,
                room.memory[place],
                device.memory,
                room.cores[place],
                device.cores,
                model,
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
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = (PATCHES_PODS, PATCHES_NODES)

    def __init__(self, args: HamiVGPUArgs, cluster: Cluster) -> None:
        policies = args.gpu_scheduler_policy, args.node_scheduler_policy
        super().__init__(cluster, Hami(args), Locks(cluster), *policies)


class VolcanoVGPU(SharedDevices):
    """For nodes with Volcano's vGPU device plugin."""

    name = "VolcanoVGPU"

    def __init__(self, args: VolcanoVGPUArgs, cluster: Cluster) -> None:
        convention, policy = Volcano(args), args.schedule_policy
        turns = Phases(cluster, convention.request_of)
        super().__init__(cluster, convention, turns, policy, policy)


class GpuShare(SharedDevices):
    """For nodes with the gpushare device plugin."""

    name = "GpuShare"

    def __init__(self, args: GpuShareArgs, cluster: Cluster) -> None:
        super().__init__(cluster, GpuShareConvention(args), None, BINPACK, BINPACK)
