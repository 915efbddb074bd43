"""Free amounts of each node's devices.

A pod's owner can write its annotations at any time. So a pod's devices are those that were reserved
for it by this process or, for pods that this process did not bind, those that its annotations named
when they were first read; they count with the amounts of the pod's own spec. Later changes of the
annotations are ignored. A pod whose annotations name a different number of devices than it
requests, devices that its node does not have, or none, may have any: its request is subtracted from
each. Assumed pods of ours have no devices yet and get them as if they were bound one after the
other.

Bounds  one entry a pod with devices, swept from SWEEP_FROM on; DEVICES_MAX devices a node.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.hardware.sharing.convention import Convention
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
from asched.plugin import Aspect, ByRow, Cluster, NodeView, PerClass, PodInfo

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ASPECTS: Final = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.ANNOTATIONS | Aspect.LIVE
_EMPTY: Final = FreeDevices(())
#: Pods that have ended since their row was last read leave entries until a sweep.
SWEEP_FROM: Final = 64
#: Positions on the first axis of the columns.
SLOTS, USED, MEMORY, TOTAL, CORES, CORES_TOTAL, MODEL = range(7)


class SharingLedger(ByRow[None]):
    """Free devices by row, and the same as columns."""

    def __init__(self, cluster: Cluster, convention: Convention, policy: str) -> None:
        super().__init__(cluster.nodes, int(ASPECTS))
        self._cluster = cluster
        self._convention = convention
        self._policy = policy
        self._rooms: list[FreeDevices] = []
        self._columns: I64 = np.zeros((7, 0, 1), dtype=np.int64)
        self._models: dict[tuple[str, str], int] = {}  # (model, mode) -> number
        self._reserved: dict[str, Parts] = {}  # by uid, of pods that are placed
        self._sweep_at = SWEEP_FROM
        self.request_of: PerClass[SharingRequest | None] = PerClass(
            lambda cls: convention.request_of(cls.example), None
        )

    # --- from the plugin -------------------------------------------------------------------------

    def reserve(self, uid: str, parts: Parts) -> None:
        if len(self._reserved) >= self._sweep_at:
            placed = self._cluster.placed
            self._reserved = {uid: parts for uid, parts in self._reserved.items() if uid in placed}
            self._sweep_at = max(SWEEP_FROM, 2 * len(self._reserved))
        self._reserved[uid] = parts

    def release(self, uid: str) -> Parts | None:
        """The row is logged when the pod leaves it."""
        return self._reserved.pop(uid, None)

    def reserved(self, uid: str) -> Parts | None:
        return self._reserved.get(uid)

    def refresh(self) -> None:
        """Update the rows that changed. Not in a trial, whose changes must not be stored."""
        if not self._cluster.topology.on_trial:
            self.update(None)

    def room(self, row: int, without: str = "") -> FreeDevices:
        """Free devices of a row; `without` a pod that is there."""
        if without or self._cluster.topology.on_trial:
            return self._room(row, self._cluster.pods_on(row), without)
        self.refresh()
        return self._rooms[row]

    def has_devices(self, view: NodeView) -> Mask:
        """bool[M]: whether a row has any."""
        found: Mask = self._of(view)[TOTAL].any(axis=1)
        return found

    def fitting(self, view: NodeView, request: DeviceShareRequest, rules: DeviceRules) -> I64:
        """int64[M]: how many devices of each row have room for one device of the request."""
        columns = self._of(view)
        allowed = np.zeros(len(self._models) + 1, dtype=np.bool_)
        for (model, mode), number in self._models.items():
            has_mode = not rules.modes or mode in rules.modes
            allowed[number] = has_mode and rules.allow_model(model)
        fits: Mask = (columns[SLOTS] > 0) & allowed[columns[MODEL]]
        asked = request.memory or columns[TOTAL] * request.percent // 100
        fits &= asked <= columns[MEMORY]
        counted, left = columns[CORES_TOTAL], columns[CORES]
        fits &= (counted == 0) | ((request.cores <= left) & (left > 0))
        if rules.is_alone:
            fits &= columns[USED] == 0
        elif request.cores >= WHOLE:
            fits &= (columns[USED] == 0) | (counted != WHOLE)
        found: I64 = np.count_nonzero(fits, axis=1)
        return found

    def used_share(self, view: NodeView) -> I64:
        """int64[M], 0..100: used share of the memory of all devices of a row."""
        columns = self._of(view)
        total, left = columns[TOTAL].sum(axis=1), columns[MEMORY].sum(axis=1)
        found: I64 = (total - left) * 100 // np.maximum(total, 1)
        return found

    # --- rows ------------------------------------------------------------------------------------

    def _of(self, view: NodeView) -> I64:
        """int64[7, M, D]: current columns of a view; in a trial, with its changes."""
        rows = view.row_numbers()
        if not self._cluster.topology.on_trial:
            self.refresh()
            columns: I64 = self._columns[:, rows]
            return columns
        found = np.zeros((7, len(rows), DEVICES_MAX), dtype=np.int64)
        for at, row in enumerate(rows.tolist()):
            self._write(found, at, self.room(row))
        return found

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        self._rooms = [_EMPTY] * height
        self._columns = np.zeros((7, height, self._columns.shape[2]), dtype=np.int64)
        self._models = {}
        for row in range(height):
            self._read(row)

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            self._read(row)
        return True

    def _read(self, row: int) -> None:
        self._rooms[row] = room = self._room(row, self._cluster.pods_on(row))
        more = len(room.devices) - self._columns.shape[2]
        if more > 0:
            self._columns = np.pad(self._columns, ((0, 0), (0, 0), (0, more)))
        self._write(self._columns, row, room)

    def _room(self, row: int, pods: Mapping[str, PodInfo], without: str = "") -> FreeDevices:
        node = self._cluster.nodes.node_at[row]
        devices = self._convention.devices(node) if node is not None else ()
        if node is None or not devices:
            return _EMPTY
        room, assumed_requests = FreeDevices(devices), list[SharingRequest]()
        for uid, info in pods.items():
            request = self.request_of(info.cls) if uid != without else None
            if request is None:
                continue
            parts = self._reserved.get(uid)
            if parts is None and not info.assumed:
                annotated = self._convention.parts(info.pod, node.name, request)
                parts = room.confirmed(request, annotated) if annotated is not None else None
                if parts is not None and not self._cluster.topology.on_trial:
                    self.reserve(uid, parts)
            if parts is not None:
                room.take(held_by(request.roles, parts))
            elif info.assumed:
                assumed_requests.append(request)
            else:
                room.take_anywhere(request)
        for request in assumed_requests:
            parts = room.choose(request, self._policy)
            if parts is not None:
                room.take(held_by(request.roles, parts))
            else:
                room.take_anywhere(request)
        return room

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
