"""Free amounts of each node's devices.

A pod's owner can write its annotations at any time. So a pod's devices are those that were
reserved for it by this process or, for pods that this process did not bind, those that its
annotations named when they were first read, if these devices had enough left; they count with the
amounts of the pod's own spec. Later changes of the annotations are ignored. A pod whose
annotations name a different number of devices than it requests, devices that its node does not
have or whose other pods leave too little, or none, has unknown devices: its request is subtracted
once, from devices that it would get. Assumed pods of ours have no devices yet and get them as if
they were bound one after the other.

Bounds  one entry a pod with devices; DEVICES_MAX devices a node.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from asched.core.model.pod import Pod
from asched.hardware.rows import ByNode, Mask, sweep
from asched.hardware.sharing.conventions import (
    Convention,
)
from asched.hardware.sharing.devices import (
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
    Aspect,
    Cluster,
    NodeView,
    PerClass,
)

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
