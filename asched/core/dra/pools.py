"""Pools: the devices that a driver publishes together, as seen by a node.

A pool is made of slices. Of those a node sees, only the newest generation counts; a pool that
lacks slices of it is incomplete, a contradictory one is invalid, and one with a newer generation
on other nodes is skipped. Slices with shared counters concern every node.

Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, gathering of pools
"""

from collections.abc import Iterable

import msgspec

from asched.core.dra.devices import Amounts, DevicePlace, PoolId, ReadyDevice, SelectorAnswers
from asched.core.model.claim import ResourceSlice
from asched.core.model.quantity import parse
from asched.core.model.selector import Labels


class ReadySlice:
    """One version of a slice, whose devices are prepared on first use."""

    __slots__ = ("_devices", "_remembered", "is_wide", "place", "pool_id", "record")

    def __init__(self, record: ResourceSlice, remembered: SelectorAnswers | None = None) -> None:
        spec = record.spec
        self._remembered = remembered or SelectorAnswers()
        self.record = record
        self.pool_id: PoolId = (spec.driver, spec.pool.name)
        self.place = DevicePlace(spec.node_name, spec.all_nodes, spec.node_selector)
        #: Slices not bound to one node are checked for every node, others only for the node they
        #: name.
        self.is_wide = bool(spec.shared_counters) or not spec.node_name
        self._devices: tuple[ReadyDevice, ...] | None = None

    @property
    def generation(self) -> int:
        return self.record.spec.pool.generation

    @property
    def devices(self) -> tuple[ReadyDevice, ...]:
        if self._devices is None:
            listed = self.record.spec.devices or ()
            self._devices = tuple(
                ReadyDevice(self.record, device, self._remembered) for device in listed
            )
        return self._devices

    def go(self) -> None:
        """Drop the cached results: the slice was replaced or deleted."""
        for device in self._devices or ():
            self._remembered.forget(device)

    def is_seen_by(
        self, name: str, labels: Labels, known: dict[int, bool], *, everywhere: bool
    ) -> bool:
        """Whether a node sees it; with `everywhere`, shared counters are seen by every node.
        `known` caches the results of places for this node.
        """
        spec = self.record.spec
        if everywhere and spec.shared_counters:
            return True
        if self.place.is_given:
            seen = known.get(id(self.place))
            if seen is None:
                seen = known[id(self.place)] = self.place.matches(name, labels)
            return seen
        if spec.per_device_node_selection:
            return any(d.place is not None and d.place.matches(name, labels) for d in self.devices)
        return False  # node selection by a field of a later API version


class Pool(msgspec.Struct, eq=False):
    """The part of a pool that a node sees. `devices` is empty where the pool must not be used."""

    id: PoolId
    is_incomplete: bool = False
    is_invalid: bool = False
    devices: tuple[ReadyDevice, ...] = ()
    counters: Amounts = {}
    #: every device of the pool, seen or not, that uses counters
    consumers: tuple[ReadyDevice, ...] = ()
    #: a device has binding conditions
    binds: bool = False
    #: a device selects its nodes itself
    chooses_nodes: bool = False

    @property
    def name(self) -> str:
        return f"{self.id[0]}/{self.id[1]}"


def build_pool(
    pool_id: PoolId, seen: list[ReadySlice], everything: Iterable[ReadySlice]
) -> Pool | None:
    """A pool from the slices a node sees and all that exist; None if it is being replaced."""
    newest = max(ready.generation for ready in seen)
    seen = sorted(
        (ready for ready in seen if ready.generation == newest),
        key=lambda ready: ready.record.metadata.name,
    )
    wanted = seen[0].record.spec.pool.resource_slice_count
    hidden: list[ReadySlice] = []
    if len(seen) != wanted:
        if any(ready.generation > newest for ready in everything):
            return None
        known = [ready for ready in everything if ready.generation == newest]
        if len(known) != wanted:
            return Pool(pool_id, is_incomplete=True)
        hidden = [ready for ready in known if ready not in seen]
    return _validated(pool_id, seen, hidden)


def _validated(pool_id: PoolId, seen: list[ReadySlice], hidden: list[ReadySlice]) -> Pool:
    everything = (*seen, *hidden)
    devices = tuple(d for r in seen if not r.record.spec.shared_counters for d in r.devices)
    sets = [shared for r in everything for shared in r.record.spec.shared_counters or ()]
    counters = {
        (shared.name, name): parse(counter.value)
        for shared in sets
        for name, counter in (shared.counters or {}).items()
    }
    consumers = tuple(d for r in everything for d in r.devices if d.consumes)
    if (
        len({device.id for device in devices}) < len(devices)
        or len({shared.name for shared in sets}) < len(sets)
        or any(device.consumes.keys() - counters.keys() for device in consumers)
    ):
        return Pool(pool_id, is_invalid=True)
    return Pool(
        pool_id,
        devices=devices,
        counters=counters,
        consumers=consumers,
        binds=any(device.binds for device in devices),
        chooses_nodes=any(device.place is not None for device in devices),
    )
