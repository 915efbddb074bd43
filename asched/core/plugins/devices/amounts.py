"""Extended resources served by devices, as the resource scorers count them.

Where a node does not offer a resource that a device class stands for, it offers as many as it sees
devices that the class selects. As many are taken as claims hold, alone or shared, allocations in
flight included. Unlike the allocator, the count knows nothing of incomplete pools,
taints or shared counters.

Cost    one walk over the slices after each change of slices, classes or nodes, the devices of a
        claim after each change of it; and only if a scorer is configured with such a resource and a
        pod requests it.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/
        resource_allocation.go; dynamicresources/dra_manager.go (GatherAllocatedState)
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from asched.core.cluster.change_logs import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.dra import pools as building
from asched.core.dra.cel.values import CelError
from asched.core.dra.devices import SelectorAnswers
from asched.core.dra.ledger import IMPLICIT_PREFIX, DeviceLedger, classes_by_resource
from asched.core.framework.points import I64
from asched.core.model.claim import DeviceClass
from asched.core.model.kinds import DEVICE_CLASS, RESOURCE_SLICE

if TYPE_CHECKING:
    from asched.core.dra.devices import DeviceId, DevicePlace, ReadyDevice
    from asched.core.dra.pools import ReadySlice

Rows = I64


def names_of(device_class: DeviceClass) -> set[str]:
    """The extended resources a class stands for."""
    implicit = IMPLICIT_PREFIX + device_class.metadata.name
    return {implicit, device_class.spec.extended_resource_name or implicit}


class Delegation:
    """Resource name -> class, rebuilt when a class has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epoch = -1
        self._classes: dict[str, DeviceClass] = {}

    @property
    def epoch(self) -> int:
        """Changes whenever `classes` may have changed."""
        return self._cluster.epoch_of(DEVICE_CLASS)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        if self._epoch != self.epoch:
            self._epoch = self.epoch
            self._classes = classes_by_resource(self._cluster.all(DEVICE_CLASS).values())
        return self._classes


class OfferedDevices(NamedTuple):
    """What devices offer of one resource, by row, and on which rows each of them counts."""

    offered: I64
    rows_of: "dict[DeviceId, Rows]"


class TakenDevices:
    """How many of the offered devices are taken, int64 by row."""

    def __init__(self, served: OfferedDevices) -> None:
        self.served = served
        self.amounts = np.zeros_like(served.offered)
        self._devices: set[DeviceId] = set()  # the devices that count

    def note(self, device: "DeviceId", *, is_used: bool) -> None:
        rows = self.served.rows_of.get(device)
        if rows is None or is_used == (device in self._devices):
            return
        self.amounts[rows] += 1 if is_used else -1
        if is_used:
            self._devices.add(device)
        else:
            self._devices.remove(device)


class DeviceTally:
    """Called with a resource and a view: (offered, taken), int64[M] each."""

    def __init__(self, cluster: Cluster, delegation: Delegation) -> None:
        self._cluster = cluster
        self._delegation = delegation
        self._slices: dict[str, ReadySlice] = {}
        self._remembered = SelectorAnswers()
        self._served: dict[str, tuple[Hashable, OfferedDevices]] = {}
        #: devices taken of each resource, as long as the resource is offered
        self._taken: dict[str, TakenDevices] = {}
        self._ledger = cluster.singleton(DeviceLedger)
        self._changes = Reader(self._ledger.taken.log)

    def stamp(self, names: Iterable[str]) -> Hashable:
        """Changes whenever the amounts of one of these resources may have changed."""
        if not any(name in self._delegation.classes for name in names):
            return 0
        self._ledger.catch_up_with_claims()
        return (*self._served_stamp, self._ledger.taken.log.end)

    def __call__(self, name: str, nodes: NodeView) -> tuple[I64, I64]:
        device_class = self._delegation.classes.get(name)
        if device_class is None:
            nothing = np.zeros(nodes.size, dtype=np.int64)
            return nothing, nothing
        served = self._serve(name, device_class)
        return nodes.gather(served.offered), nodes.gather(self._take(name, served))

    @property
    def _served_stamp(self) -> tuple[int, int, int]:
        slices = self._cluster.epoch_of(RESOURCE_SLICE)
        return slices, self._delegation.epoch, self._cluster.nodes.generation

    def _serve(self, name: str, device_class: DeviceClass) -> OfferedDevices:
        stamp = self._served_stamp
        known = self._served.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        offered = np.zeros(self._cluster.nodes.height, dtype=np.int64)
        rows_of: dict[DeviceId, Rows] = {}
        for device, place in self._devices():
            if _is_selected(device, device_class):
                rows = self._rows(place)
                offered[rows] += 1
                rows_of[device.id] = rows
        served = OfferedDevices(offered, rows_of)
        self._served[name] = (stamp, served)
        return served

    def _take(self, name: str, served: OfferedDevices) -> I64:
        self._follow()
        known = self._taken.get(name)
        if known is None or known.served is not served:
            known = self._taken[name] = TakenDevices(served)
            for device in served.rows_of:
                known.note(device, is_used=self._ledger.taken.is_used(device))
        return known.amounts

    def _follow(self) -> None:
        """Count what claims, those in flight included, have taken or given back."""
        self._ledger.catch_up_with_claims()
        entries = self._changes.unread()
        if entries is None:
            self._taken.clear()
            return
        for device in dict.fromkeys(entries):
            is_used = self._ledger.taken.is_used(device)
            for taken in self._taken.values():
                taken.note(device, is_used=is_used)

    def _devices(self) -> "Iterator[tuple[ReadyDevice, DevicePlace]]":
        """Every published device with the place that decides which nodes see it."""
        records = self._cluster.all(RESOURCE_SLICE)
        known, self._slices = self._slices, {}
        for name, ready in known.items():
            if records.get(name) is not ready.record:
                ready.go()
        for name, record in records.items():
            found = known.get(name)
            if found is None or found.record is not record:
                found = building.ReadySlice(record, self._remembered)
            self._slices[name] = ready = found
            for device in ready.devices:
                yield device, device.place or ready.place

    def _rows(self, place: "DevicePlace") -> Rows:
        nodes = self._cluster.nodes
        if place.node_name:
            row = nodes.row_of.get(place.node_name)
            found = [] if row is None else [row]
        else:
            found = [r for r, node in nodes.nodes() if place.matches(node.name, node.labels)]
        return np.array(found, dtype=np.int64)


def _is_selected(device: "ReadyDevice", device_class: DeviceClass) -> bool:
    """Whether all selectors of the class hold; one that fails to evaluate does not."""
    try:
        return all(
            device.is_selected(selector.cel.expression)
            for selector in device_class.spec.selectors or ()
            if selector.cel is not None
        )
    except CelError:
        return False
