"""All slices, indexed: which pools a node sees, in the order in which they are tried.

Pools whose devices have binding conditions come last, then driver and pool decide by name. The
result for a node is cached, and only pools with a changed slice are computed again: reading a
node's pools costs a dictionary lookup.
"""

from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from itertools import chain
from typing import Final

import msgspec

from asched.core.cluster.change_logs import ChangeLog
from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.devices import DeviceId, DevicePlace, PoolId, ReadyDevice, SelectorAnswers
from asched.core.dra.pools import Pool, ReadySlice, build_pool
from asched.core.model.claim import AllocationResult, ResourceSlice, is_of_several_nodes
from asched.core.model.quantity import parse
from asched.core.model.selector import Labels

Capacity = dict[str, Fraction]


class Taken:
    """Devices held by claims, and the capacity taken of shared ones.

    A device held with admin access does not count. A claim is entered under its uid and can be
    replaced or removed; `log` has the touched devices, so that only the nodes of their pools are
    searched again.
    """

    def __init__(self) -> None:
        self.devices: dict[DeviceId, int] = {}  # exclusive devices; number of claims that hold them
        self.shared: dict[DeviceId, int] = {}  # number of shares
        self.capacity: dict[DeviceId, Capacity] = {}
        self.log: ChangeLog[DeviceId] = ChangeLog()
        self._claims: dict[str, AllocationResult] = {}

    def put(self, uid: str, allocation: AllocationResult | None) -> None:
        """Record the devices that a claim holds now; None: nothing."""
        old = self._claims.get(uid)
        if old == allocation:
            return
        if old is not None:
            self._move(old, -1)
            del self._claims[uid]
        if allocation is not None:
            self._claims[uid] = allocation
            self._move(allocation, 1)

    def is_used(self, device: DeviceId) -> bool:
        """Whether any claim holds it or a share of it."""
        return device in self.devices or device in self.shared

    def _move(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            counts = self.devices if result.share_id is None else self.shared
            counts[device] = counts.get(device, 0) + sign
            if not counts[device]:
                del counts[device]
            if result.share_id is not None:
                held = self.capacity.setdefault(device, {})
                for name, amount in (result.consumed_capacity or {}).items():
                    held[name] = held.get(name, 0) + sign * parse(amount)
                    if not held[name]:
                        del held[name]
                if not held:
                    del self.capacity[device]
            self.log.append(device)


#: Rule: slices with shared counters matter to the nodes that see devices of their pool alone.
POOLS_OF_OTHER_NODES: Final = "pools-of-other-nodes-are-ignored"
#: Interned objects may grow to twice the number of slices, plus this many.
SPARE: Final = 1024


class Inventory:
    """All slices. `generation` changes with every change."""

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self.generation = 0
        self._counters_everywhere = not DEFAULT_GATES[POOLS_OF_OTHER_NODES]
        #: (pool, the node that has or had the changed slice, "" for any)
        self._log: ChangeLog[tuple[PoolId, str]] = ChangeLog()
        self._versions: dict[PoolId, int] = {}
        self._slices: dict[str, ReadySlice] = {}
        self._pools: dict[PoolId, dict[str, ReadySlice]] = {}
        self._local: dict[str, dict[PoolId, int]] = {}  # node -> pool -> its slices there
        self._wide: dict[PoolId, int] = {}
        self._views: dict[str, _NodeInventory] = {}
        self._built: dict[tuple[PoolId, int, tuple[str, ...]], Pool | None] = {}
        #: equal tuples of pools are one object, so that nodes with equal pools are recognized by
        #: identity
        self._interned: dict[tuple[int, ...], tuple[Pool, ...]] = {}
        self._places: dict[DevicePlace, DevicePlace] = {}  # equal places are one object, too
        self._remembered = SelectorAnswers()
        self._shared: tuple[int, tuple[ReadyDevice, ...]] = (-1, ())
        for record in slices:
            self.put(record)

    def follow(self, rules: Mapping[str, bool]) -> None:
        """Decide by these rules (`config/versions.py`) from now on."""
        everywhere = not rules[POOLS_OF_OTHER_NODES]
        if everywhere is not self._counters_everywhere:
            self._counters_everywhere = everywhere
            self._views.clear()

    # --- changes ---------------------------------------------------------------------------------

    def put(self, record: ResourceSlice) -> None:
        """Add a slice or replace it by a new version."""
        self.remove(record.metadata.name)
        ready = ReadySlice(record, self._remembered)
        ready.place = self._places.setdefault(ready.place, ready.place)
        self._slices[record.metadata.name] = ready
        self._pools.setdefault(ready.pool_id, {})[record.metadata.name] = ready
        self._count(ready, 1)
        self._touch(ready)

    def remove(self, name: str) -> None:
        old = self._slices.pop(name, None)
        if old is None:
            return
        self._count(old, -1)
        old.go()
        rest = self._pools[old.pool_id]
        del rest[name]
        if not rest:
            del self._pools[old.pool_id]
        self._touch(old)

    def _count(self, ready: ReadySlice, sign: int) -> None:
        node = _node_of(ready)
        counts = self._local.setdefault(node, {}) if node else self._wide
        counts[ready.pool_id] = counts.get(ready.pool_id, 0) + sign
        if not counts[ready.pool_id]:
            del counts[ready.pool_id]
            if node and not counts:
                del self._local[node]

    def _touch(self, ready: ReadySlice) -> None:
        pool_id = ready.pool_id
        self._log.append((pool_id, _node_of(ready)))
        self.generation = self._log.end
        if pool_id in self._pools:
            self._versions[pool_id] = self.generation
        else:
            self._versions.pop(pool_id, None)
        room = 2 * len(self._slices) + SPARE
        for shared in (self._built, self._interned, self._places):
            if len(shared) > room:
                shared.clear()

    def forget_nodes(self, known: Container[str], count: int) -> None:
        """Drop the views of deleted nodes, if there may be many; `count` nodes are known."""
        if len(self._views) > 2 * count + SPARE:
            self._views = {name: view for name, view in self._views.items() if name in known}

    # --- questions -------------------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        return self._slices.keys()

    def record(self, name: str) -> ResourceSlice | None:
        ready = self._slices.get(name)
        return ready.record if ready is not None else None

    def nodes_of(self, pool_id: PoolId) -> set[str] | None:
        """The nodes that may see a pool; None if any node may."""
        if pool_id in self._wide:
            return None
        members = self._pools.get(pool_id, {}).values()
        return {ready.place.node_name or "" for ready in members}

    def shared_devices(self) -> tuple[ReadyDevice, ...]:
        """The devices of pools that concern several nodes: a slice names no node, or slices of
        several nodes share counters.
        """
        generation, devices = self._shared
        if generation != self.generation:
            devices = tuple(
                device
                for members in self._pools.values()
                if is_of_several_nodes(ready.record.spec for ready in members.values())
                for ready in members.values()
                for device in ready.devices
            )
            self._shared = self.generation, devices
        return devices

    def nodes_since(self, generation: int) -> set[str] | None:
        """The nodes whose pools may have changed; None if any may have."""
        changed = self._log.since(generation)
        if changed is None:
            return None
        found = set[str]()
        for pool_id, node in dict.fromkeys(changed):
            members = self.nodes_of(pool_id)
            if not node or members is None:
                return None
            found.update(members, (node,))
        return found

    def have_own(self) -> Iterable[str] | None:
        """The nodes that see any pool; None if all may."""
        return None if self._wide else self._local.keys()

    def pools_for(self, name: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """The pools a node sees, in the order in which they are tried."""
        view = self._views.get(name)
        if view is None or (view.labels is not labels and view.labels != labels):
            view = self._views[name] = _NodeInventory(labels)
        if view.generation != self.generation:
            self._refresh(view, name)
        return view.pools

    def _refresh(self, view: "_NodeInventory", name: str) -> None:
        """Recompute the pools that changed since the view was made."""
        local = self._local.get(name, {})
        changed = self._log.since(view.generation)
        concerned: Iterable[PoolId]
        if changed is None:
            view.seen.clear()
            concerned = chain(self._wide, local)
        else:
            concerned = dict.fromkeys([pool_id for pool_id, _ in changed])
        known: dict[int, bool] = {}
        moved = changed is None
        for pool_id in concerned:
            visible = pool_id in self._wide or pool_id in local
            pool = self._pool(pool_id, name, view.labels, known) if visible else None
            if pool is not view.seen.get(pool_id):
                moved = True
                view.seen.pop(pool_id, None)
                if pool is not None:
                    view.seen[pool_id] = pool
        if moved:
            pools = tuple(sorted(view.seen.values(), key=lambda pool: (pool.binds, pool.id)))
            view.pools = self._interned.setdefault(tuple(map(id, pools)), pools)
        view.generation = self.generation

    def _pool(
        self, pool_id: PoolId, name: str, labels: Labels, known: dict[int, bool]
    ) -> Pool | None:
        members = self._pools[pool_id]
        everywhere = self._counters_everywhere
        seen = [
            n
            for n, ready in members.items()
            if ready.is_seen_by(name, labels, known, everywhere=everywhere)
        ]
        if not seen:
            return None
        key = (pool_id, self._versions[pool_id], tuple(seen))
        if key not in self._built:
            self._built[key] = build_pool(pool_id, [members[n] for n in seen], members.values())
        return self._built[key]


def _node_of(ready: ReadySlice) -> str:
    """The only node that sees it; "" if several may."""
    return "" if ready.is_wide else ready.place.node_name or ""


class _NodeInventory(msgspec.Struct):
    """The pools that one node sees."""

    labels: Labels
    generation: int = -1
    seen: dict[PoolId, Pool] = {}
    pools: tuple[Pool, ...] = ()
