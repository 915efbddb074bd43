"""Pools: which devices a node sees, in the order in which they are tried.

A pool is made of slices. Of those a node sees, only the newest generation counts; a pool that lacks
slices of it is incomplete, one with contradictions invalid, and one whose newer generation exists
elsewhere is passed over. Slices with shared counters concern every node. Order: pools whose devices
bind under conditions last, then driver, pool and slice by name, devices as listed.

Slices are indexed by node and by pool, and what was built is kept until a slice of the pool
changes: asking for a node's pools costs a dictionary lookup.

Source  kubernetes/kubernetes v1.36 dynamic-resource-allocation/structured, gathering of pools
"""

from collections.abc import Iterable, Mapping
from itertools import chain

from asched.core.dra.devices import Amounts, Place, PoolId, ReadyDevice
from asched.core.model.claim import ResourceSlice
from asched.core.model.quantity import parse
from asched.core.model.selector import Labels


class ReadySlice:
    """One version of a slice, with its devices made ready on first use."""

    __slots__ = ("_devices", "is_wide", "place", "pool_id", "record")

    def __init__(self, record: ResourceSlice) -> None:
        spec = record.spec
        self.record = record
        self.pool_id: PoolId = (spec.driver, spec.pool.name)
        self.place = Place(spec.node_name, spec.all_nodes, spec.node_selector)
        #: Wide slices are looked at for every node, the others for the one node they name.
        self.is_wide = bool(spec.shared_counters) or not spec.node_name
        self._devices: tuple[ReadyDevice, ...] | None = None

    @property
    def generation(self) -> int:
        return self.record.spec.pool.generation

    @property
    def devices(self) -> tuple[ReadyDevice, ...]:
        if self._devices is None:
            listed = self.record.spec.devices or ()
            self._devices = tuple(ReadyDevice(self.record, device) for device in listed)
        return self._devices

    def is_seen_by(self, name: str, labels: Labels) -> bool:
        spec = self.record.spec
        if spec.shared_counters:
            return True
        if self.place.is_given:
            return self.place.matches(name, labels)
        if spec.per_device_node_selection:
            return any(d.place is not None and d.place.matches(name, labels) for d in self.devices)
        return False  # selected by a field of a later version of the API


class Pool:
    """What a node sees of a pool. `devices` is empty where the pool must not be used."""

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
        self.binds = False  # a device is bound under conditions
        self.chooses_nodes = False  # a device names its nodes itself
        self.counters: Amounts = {}
        #: every device of the pool, seen or not, that uses counters
        self.consumers: tuple[ReadyDevice, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.id[0]}/{self.id[1]}"


class Inventory:
    """All slices. `generation` moves with every change; `pool_versions` says where."""

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self.generation = 0
        self.pool_versions: dict[PoolId, int] = {}
        self._slices: dict[str, ReadySlice] = {}
        self._pools: dict[PoolId, dict[str, ReadySlice]] = {}
        self._local: dict[str, dict[PoolId, int]] = {}  # node -> pool -> its slices there
        self._wide: dict[PoolId, int] = {}
        self._views: dict[str, _View] = {}
        self._built: dict[tuple[PoolId, int, tuple[str, ...]], Pool | None] = {}
        #: equal tuples of pools are one object, so that nodes that see the same can be told
        self._interned: dict[tuple[int, ...], tuple[Pool, ...]] = {}
        for record in slices:
            self.put(record)

    # --- changes ---------------------------------------------------------------------------------

    def put(self, record: ResourceSlice) -> None:
        """Add a slice or replace it by a new version."""
        self._drop(record.metadata.name)
        ready = ReadySlice(record)
        self._slices[record.metadata.name] = ready
        self._pools.setdefault(ready.pool_id, {})[record.metadata.name] = ready
        self._count(ready, 1)
        self._touch(ready.pool_id)

    def remove(self, name: str) -> None:
        """Forget a slice."""
        if (gone := self._drop(name)) is not None:
            self._touch(gone.pool_id)

    def _drop(self, name: str) -> ReadySlice | None:
        old = self._slices.pop(name, None)
        if old is None:
            return None
        self._count(old, -1)
        rest = self._pools[old.pool_id]
        del rest[name]
        if not rest:
            del self._pools[old.pool_id]
        self._touch(old.pool_id)
        return old

    def _count(self, ready: ReadySlice, sign: int) -> None:
        node = "" if ready.is_wide else ready.place.node_name or ""
        counts = self._local.setdefault(node, {}) if node else self._wide
        counts[ready.pool_id] = counts.get(ready.pool_id, 0) + sign
        if not counts[ready.pool_id]:
            del counts[ready.pool_id]
            if node and not counts:
                del self._local[node]

    def _touch(self, pool_id: PoolId) -> None:
        self.generation += 1
        self.pool_versions[pool_id] = self.generation
        if len(self._built) > 2 * len(self._slices) + 1024:
            self._built.clear()  # bounded by what is alive, and some room
        if len(self._interned) > 2 * len(self._slices) + 1024:
            self._interned.clear()

    # --- questions -------------------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        """The names of all slices."""
        return self._slices.keys()

    def record(self, name: str) -> ResourceSlice | None:
        ready = self._slices.get(name)
        return ready.record if ready is not None else None

    def nodes_of(self, pool_id: PoolId) -> set[str] | None:
        """The nodes that may see a pool; None if it may be any."""
        if pool_id in self._wide:
            return None
        members = self._pools.get(pool_id, {}).values()
        return {ready.place.node_name or "" for ready in members}

    def pools_for(self, name: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """The pools a node sees, in the order in which they are tried."""
        view = self._views.get(name)
        if view is not None and view.labels is labels and view.generation == self.generation:
            return view.pools
        local = self._local.get(name)
        ids = chain(self._wide, local) if local else iter(self._wide)
        stamp = tuple((i, self.pool_versions[i]) for i in sorted(set(ids)))
        if view is not None and view.labels is labels and view.stamp == stamp:
            view.generation = self.generation
            return view.pools
        found = (self._pool(pool_id, name, labels) for pool_id, _ in stamp)
        pools = tuple(sorted((p for p in found if p is not None), key=lambda p: (p.binds, p.id)))
        pools = self._interned.setdefault(tuple(map(id, pools)), pools)
        self._views[name] = _View(labels, self.generation, stamp, pools)
        return pools

    def is_shared(self, pools: tuple[Pool, ...]) -> bool:
        """Whether all nodes that see exactly these pools can use the same devices of them."""
        return not any(pool.chooses_nodes for pool in pools)

    def forget_node(self, name: str) -> None:
        """Drop what is kept for a node that went."""
        self._views.pop(name, None)

    def _pool(self, pool_id: PoolId, name: str, labels: Labels) -> Pool | None:
        members = self._pools[pool_id]
        seen = [n for n, ready in members.items() if ready.is_seen_by(name, labels)]
        if not seen:
            return None
        key = (pool_id, self.pool_versions[pool_id], tuple(seen))
        if key not in self._built:
            self._built[key] = _build(pool_id, [members[n] for n in seen], members.values())
        return self._built[key]


class _View:
    __slots__ = ("generation", "labels", "pools", "stamp")

    def __init__(
        self,
        labels: Labels,
        generation: int,
        stamp: tuple[tuple[PoolId, int], ...],
        pools: tuple[Pool, ...],
    ) -> None:
        self.labels = labels
        self.generation = generation
        self.stamp = stamp
        self.pools = pools


def _build(
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
    for ready in seen:
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
