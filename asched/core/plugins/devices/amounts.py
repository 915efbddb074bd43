"""Extended resources served by devices, as the resource scorers count them.

Where a node does not offer a resource that a device class stands for, it offers as many as it sees
devices that the class selects, and as many are taken as some claim holds. Unlike the allocator,
the count knows nothing of incomplete pools, taints or shared counters.

Cost    one walk over the slices and what is held after each change of slices, classes or nodes, the
        devices of a claim after each change of it; and only if a scorer is configured with such a
        resource and a pod requests it.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/
        resource_allocation.go
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.dra import devices
from asched.core.dra import pools as building
from asched.core.dra.cel.errors import CelError
from asched.core.dra.selector_answers import SelectorAnswers
from asched.core.framework.points import I64
from asched.core.model.claim import DeviceClass, ResourceClaim
from asched.core.model.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.plugins.resources.delegation import Delegation
from asched.core.state.change_log import Reader
from asched.core.state.cluster import Cluster
from asched.core.state.view import NodeView

if TYPE_CHECKING:
    from asched.core.dra.devices import DeviceId, DevicePlace, ReadyDevice
    from asched.core.dra.pools import ReadySlice

Rows = npt.NDArray[np.int64]

NONE: "Final[frozenset[DeviceId]]" = frozenset()


class Served(NamedTuple):
    """What devices offer of one resource, by row, and on which rows each of them counts."""

    offered: I64
    rows_of: "dict[DeviceId, Rows]"


class DeviceTally:
    """Called with a resource and a view: (offered, taken), int64[M] each."""

    def __init__(self, cluster: Cluster, delegation: Delegation) -> None:
        self._cluster = cluster
        self._delegation = delegation
        self._slices: dict[str, ReadySlice] = {}
        self._remembered = SelectorAnswers()
        self._served: dict[str, tuple[Hashable, Served]] = {}
        #: what is taken of that, as long as it is offered
        self._taken: dict[str, tuple[Served, I64]] = {}
        self._changes = Reader(cluster.object_log)
        self._of_claim: dict[str, frozenset[DeviceId]] = {}  # that holds any
        self._held: Counter[DeviceId] = Counter()  # by how many claims

    def stamp(self, names: Iterable[str]) -> Hashable:
        """Moves whenever the amounts of one of these resources may have."""
        if not any(name in self._delegation.classes for name in names):
            return 0
        return (*self._served_stamp, self._cluster.epoch_of(RESOURCE_CLAIM))

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

    def _serve(self, name: str, device_class: DeviceClass) -> Served:
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
        served = Served(offered, rows_of)
        self._served[name] = (stamp, served)
        return served

    def _take(self, name: str, served: Served) -> I64:
        self._follow_claims()
        known = self._taken.get(name)
        if known is not None and known[0] is served:
            return known[1]
        taken = np.zeros_like(served.offered)
        for device in self._held:
            if device in served.rows_of:
                taken[served.rows_of[device]] += 1
        self._taken[name] = (served, taken)
        return taken

    def _follow_claims(self) -> None:
        entries = self._changes.news()
        if entries is None:
            changed = {*self._of_claim, *self._cluster.all(RESOURCE_CLAIM)}
        else:
            changed = {key for resource, key in entries if resource == RESOURCE_CLAIM.resource}
        for key in changed:
            before = self._of_claim.pop(key, NONE)
            now = _held_by(self._cluster.get(RESOURCE_CLAIM, key))
            if now:
                self._of_claim[key] = now
            for device in before - now:
                self._held[device] -= 1
                if not self._held[device]:
                    del self._held[device]
                    self._count(device, -1)
            for device in now - before:
                self._held[device] += 1
                if self._held[device] == 1:
                    self._count(device, 1)

    def _count(self, device: "DeviceId", more: int) -> None:
        for served, taken in self._taken.values():
            if device in served.rows_of:
                taken[served.rows_of[device]] += more

    def _devices(self) -> "Iterator[tuple[ReadyDevice, DevicePlace]]":
        """Every published device with the place that decides who sees it."""
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


def _held_by(claim: ResourceClaim | None) -> "frozenset[DeviceId]":
    """Devices that an allocated claim holds, alone or shared; admin access holds nothing."""
    if claim is None or claim.status.allocation is None:
        return NONE
    return frozenset(
        devices.DeviceId(result.driver, result.pool, result.device)
        for result in claim.status.allocation.devices.results or ()
        if not result.admin_access
    )
