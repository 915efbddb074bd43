"""Pools: the devices that a driver publishes together, as seen by a node.

A pool is made of slices. Of those a node sees, only the newest generation counts; a pool that lacks
slices of it is incomplete, a contradictory one is invalid, and one with a newer generation on other
nodes is skipped. Slices with shared counters concern every node.

Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, gathering of pools
"""

from collections.abc import Iterable
from itertools import chain

from asched.core.dra.devices import Amounts, DevicePlace, PoolId, ReadyDevice
from asched.core.dra.selector_answers import SelectorAnswers
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


class Pool:
    """The part of a pool that a node sees. `devices` is empty where the pool must not be used."""

    __slots__ = (
        "binds",
        "chooses_nodes",
        "consumers",
        "counters",
        "devices",
        "id",
        "invalid_reason",
        "is_incomplete",
    )

    def __init__(
        self, pool_id: PoolId, *, is_incomplete: bool = False, invalid_reason: str = ""
    ) -> None:
        self.id = pool_id
        self.is_incomplete = is_incomplete
        self.invalid_reason = invalid_reason
        self.devices: tuple[ReadyDevice, ...] = ()
        self.binds = False  # a device has binding conditions
        self.chooses_nodes = False  # a device selects its nodes itself
        self.counters: Amounts = {}
        #: every device of the pool, seen or not, that uses counters
        self.consumers: tuple[ReadyDevice, ...] = ()

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
    devices = [d for r in seen if not r.record.spec.shared_counters for d in r.devices]
    names: set[str] = set()
    for device in devices:
        if device.id.device in names:
            return Pool(pool_id, invalid_reason=f"duplicate device name {device.id.device}")
        names.add(device.id.device)
    counters: Amounts = {}
    sets: set[str] = set()
    for ready in chain(seen, hidden):
        for shared in ready.record.spec.shared_counters or ():
            if shared.name in sets:
                return Pool(pool_id, invalid_reason=f"duplicate counter set name {shared.name}")
            sets.add(shared.name)
            for name, counter in (shared.counters or {}).items():
                counters[shared.name, name] = parse(counter.value)
    consumers = [d for r in chain(seen, hidden) for d in r.devices if d.consumes]
    for device in consumers:
        for counter_set, name in device.consumes:
            if counter_set not in sets:
                return Pool(pool_id, invalid_reason=f"counter set {counter_set} not found")
            if (counter_set, name) not in counters:
                reason = f"counter {name} not found in counter set {counter_set}"
                return Pool(pool_id, invalid_reason=reason)
    pool = Pool(pool_id)
    pool.devices, pool.counters, pool.consumers = tuple(devices), counters, tuple(consumers)
    pool.binds = any(device.binds for device in devices)
    pool.chooses_nodes = any(device.place is not None for device in devices)
    return pool
