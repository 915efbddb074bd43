"""Bookings: the places that are held for accepted ProvisioningRequests, slot by slot.

    booked ─> a slot in the ledger, counted as its pod would be
                 │ open: a pod is being tried for it ─> not tried any more: held again
                 │ taken: a pod has its place there ─> the pod loses it: held again
                 └ over: given back part by part (`giving_back`), which is one change for the queue

The node of a slot is in the request's status (`requests.py`), so the slot is counted there until
another status is written or its time is up. The status has the end as a date, for the next process;
a process keeps it as steady time, from when it found the places or read them. A pod of the request
with a place elsewhere does not change the slots; once as many pods have places as there are slots,
no slot is held any more.

Each slot has an owner of its own in the ledger (`cluster/holds.py`), so that a pod that takes its
place costs one slot and not the request. The pod of a slot is derived from the pods that the
cluster counts, so that a new process comes to the same result.

A slot whose node was removed, or whose room other pods have taken, is *homeless*: it counts
nowhere, and its request has to find another place (`cycle.py`). A slot leaves room to the pods that
are nominated to its node, and to pods above the priority of its booking, which an administrator
sets (`placing.py`).

Bounds  PODS_MAX slots a request; one entry for each slot, and for each pod that has one.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import request_of
from asched.core.cluster.facts import Answer
from asched.core.cluster.holds import HeldPlace
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, vector
from asched.core.cluster.usage import Priorities
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.freed_places import FreedPlaces, notify_of_freed
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.status import MISTAKES
from asched.core.model.requests import PODS

#: Before the first colon of an owner in the ledger.
OWNERS: Final = "ProvisioningRequest"
#: A request for more is refused. A guess: the largest jobs have some thousands of pods.
PODS_MAX: Final = 5_000
#: Budget steps for a slot whose amounts, or node, are added up.
SLOT_STEPS: Final = 0.1
#: Budget steps to give a slot back.
GIVE_BACK_STEPS: Final = 3


class Slot(msgspec.Struct, eq=False):
    """A place for one future pod. `node` is "" while it is homeless."""

    owner: str
    pod_set: int
    what: PodInfo
    node: str
    taken_by: str = ""  # the pod's uid


class Booking(msgspec.Struct, eq=False):
    """All slots of a request, held until `until_s` (steady time). Pods above `priority` may use
    them.
    """

    key: str
    uid: str
    until_s: float
    priority: int = 0
    number: int = 0
    slots: dict[str, Slot] = msgspec.field(default_factory=dict)  # by owner
    #: pod set -> owner -> free slot; the same by (pod set, node)
    free: dict[int, dict[str, Slot]] = msgspec.field(default_factory=dict)
    free_on: dict[tuple[int, str], dict[str, Slot]] = msgspec.field(default_factory=dict)
    #: slots whose room other pods took, or whose node was removed
    homeless: dict[str, Slot] = msgspec.field(default_factory=dict)
    #: pod set -> one of its future pods, and the number of slots
    likes: dict[int, PodInfo] = msgspec.field(default_factory=dict)
    sizes: Counter[int] = msgspec.field(default_factory=Counter)
    #: number of pods with a place outside the slots, by the pod sets that suit them
    elsewhere: Counter[tuple[int, ...]] = msgspec.field(default_factory=Counter)

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    def put_free(self, slot: Slot) -> None:
        """Add a slot of its node to the free slots."""
        self.free.setdefault(slot.pod_set, {})[slot.owner] = slot
        self.free_on.setdefault((slot.pod_set, slot.node), {})[slot.owner] = slot

    def drop_free(self, slot: Slot) -> None:
        """Remove a slot from the free slots."""
        if self.free.get(slot.pod_set, {}).pop(slot.owner, None) is not None:
            there = self.free_on[slot.pod_set, slot.node]
            del there[slot.owner]
            if not there:
                del self.free_on[slot.pod_set, slot.node]

    @property
    def is_consumed(self) -> bool:
        """Whether pods have places, in slots or elsewhere, for the whole request."""
        remaining = Counter({pod_set: len(slots) for pod_set, slots in self.free.items()})
        remaining.update(slot.pod_set for slot in self.homeless.values())
        for sets, count in self.elsewhere.items():
            pods = count
            for pod_set in sets:
                taken = min(pods, remaining[pod_set])
                remaining[pod_set] -= taken
                pods -= taken
        return not any(remaining.values())

    def sets_for(self, info: PodInfo) -> list[int]:
        """The pod sets of which a pod may have a slot: those with equal requests, or if there are
        none those with higher requests.
        """
        accounted, larger = info.cls.accounted, []
        for pod_set, like in self.likes.items():
            held = like.cls.accounted
            if all(amount <= held.get(name, 0) for name, amount in accounted.items()):
                larger.append(pod_set)
        return [s for s in larger if self.likes[s].cls.accounted == accounted] or larger


class Bookings:
    """All bookings. Made by `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nominator = cluster.nominator
        self._bookings: dict[str, Booking] = {}
        self._begun = 0
        self._first_end_s: float | None = None
        #: by owner, or uid of the slot's pod: a slot, or the pod sets of a pod elsewhere
        self._slot_of: dict[str, tuple[Booking, Slot | tuple[int, ...]]] = {}
        #: slots that are not counted while a pod is tried for them, by its uid
        self._open: dict[str, list[tuple[Booking, Slot]]] = {}
        #: requests to check: one of their slots became homeless, or was taken
        self.moved: dict[str, None] = {}
        #: number of bookings by priority
        self.priorities = Priorities()
        #: slots of bookings that are over, still counted
        self.over: dict[str, Slot] = {}
        self.is_giving_back = False

    def __len__(self) -> int:
        return len(self._bookings)

    def all(self) -> list[Booking]:
        """A copy, for readers in other threads."""
        return list(self._bookings.values())

    def get(self, key: str) -> Booking | None:
        return self._bookings.get(key)

    def begin(self, key: str, uid: str, until_s: float, priority: int) -> Booking:
        """Begin a booking without slots; ends an earlier booking of the request."""
        self._begun += 1
        booking = self._bookings[key] = Booking(key, uid, until_s, priority, self._begun)
        self.priorities[priority] += 1
        self._first_end_s = None
        return booking

    def add(self, booking: Booking, pod_set: int, what: PodInfo, node: str) -> Slot:
        """Add a slot. It is held after `place`."""
        owner = f"{OWNERS}:{booking.key}#{booking.number}.{len(booking.slots)}"
        slot = booking.slots[owner] = Slot(owner, pod_set, what, node)
        self._slot_of[owner] = (booking, slot)
        booking.put_free(slot)
        booking.likes.setdefault(pod_set, what)
        booking.sizes[pod_set] += 1
        return slot

    def held_by(self, namespace: str) -> Iterator[dict[str, int]]:
        """Yield the amounts of a namespace's slots, with the number of pods. Taken slots count,
        since they are held again once their pods are gone.
        """
        for booking in self._bookings.values():
            for pod_set, size in booking.sizes.items() if booking.namespace == namespace else ():
                yield times(booking.likes[pod_set], size)

    def nodes_of(self, namespace: str) -> set[str]:
        """The nodes of a namespace's slots, also of taken ones."""
        found = set[str]()
        for booking in self._bookings.values():
            if booking.namespace == namespace:
                self._cluster.budget.note(SLOT_STEPS * len(booking.slots))
                found.update(slot.node for slot in booking.slots.values())
        return found - {""}

    @property
    def first_end_s(self) -> float | None:
        """The end of the first booking (steady time)."""
        if self._first_end_s is None and self._bookings:
            self._first_end_s = min(booking.until_s for booking in self._bookings.values())
        return self._first_end_s

    def place(self, booking: Booking, slot: Slot, node: str) -> bool:
        """Hold a slot on a node if that has room for it; returns whether it has."""
        cluster = self._cluster
        row = cluster.nodes.row_of.get(node)
        if row is not None:
            if slot.node != node:
                booking.drop_free(slot)
                slot.node = node
            cluster.holds.put(slot.owner, [HeldPlace(slot.what, slot.node)])
            if self._has_room(booking, slot, row):
                booking.homeless.pop(slot.owner, None)
                booking.put_free(slot)
                return True
        self._evict(booking, slot)
        return False

    def match(self, booking: Booking) -> None:
        """Give slots to pods that were placed before the booking."""
        for info in self._cluster.consumers.of(booking.key).values():
            self._take(info, ())

    def end(self, key: str) -> None:
        """End the booking of a request: its slots are given back part by part."""
        booking = self._bookings.pop(key, None)
        self.moved.pop(key, None)
        if booking is None:
            return
        self.priorities.down(booking.priority)
        self._first_end_s = None
        for uid in self._cluster.consumers.of(key):
            self._slot_of.pop(uid, None)
        for slot in booking.slots.values():
            self._slot_of.pop(slot.owner, None)
            self._slot_of.pop(slot.taken_by, None)
            if slot.node and not slot.taken_by:
                self.over[slot.owner] = slot
        for uid, opened in tuple(self._open.items()):
            self._open[uid] = [entry for entry in opened if entry[0] is not booking]
            if not self._open[uid]:
                del self._open[uid]

    def open(self, uid: str, slots: Iterable[tuple[Booking, Slot]]) -> bool:
        """Do not count free slots while a pod is tried on their node; returns whether all are still
        free.
        """
        self._cluster.consumers.moved[uid] = None
        opened = self._open.setdefault(uid, [])
        for booking, slot in slots:
            is_free = slot.owner in booking.free.get(slot.pod_set, {})
            if self._bookings.get(booking.key) is not booking or not is_free:
                return False
            if not self._cluster.holds.lift(slot.owner):
                return False
            opened.append((booking, slot))
        return True

    def close(self, uid: str) -> None:
        """Count the slots again, when the trial of a pod ends or pauses."""
        for _, slot in self._open.pop(uid, ()):
            self._cluster.holds.restore(slot.owner)

    def settle(self) -> None:
        """Update slots whose pods were placed or deleted."""
        consumers, placed = self._cluster.consumers, self._cluster.placed
        for uid in (*consumers.moved, *self._open):
            opened = self._open.pop(uid, [])
            info = placed.get(uid)
            if uid in self._slot_of and info is None:
                self._leave(uid)
            elif info is not None and uid not in self._slot_of:
                self._take(info, opened)
            for _, slot in opened:
                if slot.taken_by != uid:
                    self._cluster.holds.restore(slot.owner)
                    self.disturbed(slot.owner)
        consumers.moved.clear()

    def disturbed(self, owner: str) -> None:
        """Check the room of a slot; the slot becomes homeless if other pods have taken it."""
        found = self._slot_of.get(owner)
        self._cluster.holds.touched.pop(owner, None)
        if found is None:
            return
        booking, slot = found
        assert isinstance(slot, Slot)
        nodes, holds = self._cluster.nodes, self._cluster.holds
        row, hold = nodes.row_of.get(slot.node), holds.of(owner)
        if slot.taken_by or hold is None or hold.is_lifted:
            return
        place = hold.places[0] if hold.places else None
        if row is None or place is None or holds.is_over(place, free_amounts(nodes, row)):
            self._evict(booking, slot)

    def on(self, row: int, below: int) -> list[tuple[Booking, Slot]]:
        """The slots on a row whose bookings are below a priority."""
        owners = self._cluster.holds.by_row.get(row, ())
        held = [self._slot_of[owner] for owner in owners if owner in self._slot_of]
        return [(b, slot) for b, slot in held if b.priority < below and isinstance(slot, Slot)]

    def _has_room(self, booking: Booking, slot: Slot, row: int) -> bool:
        """Whether a slot counted on a row fits there with pods nominated to its node."""
        cluster = self._cluster
        nodes, need = cluster.nodes, vector(cluster.nodes, slot.what.cls.accounted, 1)
        free = free_amounts(nodes, row) + need
        for pod in self._nominator.on(slot.node).values():
            if request_of(pod) != booking.key:
                free -= vector(nodes, cluster.classes.class_of(pod).accounted, 1)
        return has_room(free, need)

    def _take(self, info: PodInfo, opened: Iterable[tuple[Booking, Slot]]) -> None:
        """Give a placed pod of a request the slot that it was tried for, or a slot of its node, or
        none.
        """
        uid = info.pod.uid
        booking = self._bookings.get(self._cluster.consumers.request_of(uid))
        if booking is None or uid in self._slot_of:
            return
        tried = (s for b, s in opened if b is booking and s.node == info.node_name)
        on_node = (booking.free_on.get((s, info.node_name), {}) for s in booking.sets_for(info))
        slot = next(chain(tried, *(slots.values() for slots in on_node)), None)
        self.moved[booking.key] = None
        if slot is None:
            suits = tuple(booking.sets_for(info))
            self._slot_of[uid] = (booking, suits)
            booking.elsewhere[suits] += 1
            return
        self._slot_of[uid] = (booking, slot)
        slot.taken_by = uid
        booking.drop_free(slot)
        self._cluster.holds.drop(slot.owner)

    def _leave(self, uid: str) -> None:
        booking, slot = self._slot_of.pop(uid)
        if not isinstance(slot, Slot):
            booking.elsewhere[slot] -= 1
            if not booking.elsewhere[slot]:
                del booking.elsewhere[slot]
            return
        slot.taken_by = ""
        self.place(booking, slot, slot.node)

    def _evict(self, booking: Booking, slot: Slot) -> None:
        self._cluster.holds.drop(slot.owner)
        booking.drop_free(slot)
        slot.node = ""
        booking.homeless[slot.owner] = slot
        self.moved[booking.key] = None


def times(like: PodInfo, count: int) -> dict[str, int]:
    """The amounts of `count` equal pods, with the number of pods."""
    return {PODS: count, **{name: count * a for name, a in like.cls.accounted.items()}}


def keep(context: SchedulerContext) -> None:
    """Update bookings by the time and by pods that took their room. To be called before each
    attempt, and only once all nodes and pods are known: before that, room seems to be missing.
    """
    settle_consumers(context)
    cluster = context.cluster
    bookings = cluster.singleton(Bookings)
    first_end_s = bookings.first_end_s
    if first_end_s is not None and first_end_s <= cluster.steady_s:
        for booking in bookings.all():
            if booking.until_s <= cluster.steady_s:
                bookings.end(booking.key)
                bookings.moved[booking.key] = None
    for owner in tuple(cluster.holds.touched):
        if not owner.startswith(OWNERS):
            continue
        try:
            bookings.disturbed(owner)
        except MISTAKES as raised:  # nothing is held for it until it changes again
            context.contain(raised, "requests", owner)
            cluster.holds.drop(owner)


def settle_consumers(context: SchedulerContext) -> None:
    """Update slots by the pods that have them."""
    if not context.cluster.consumers.moved:
        return
    try:
        context.cluster.singleton(Bookings).settle()
    except MISTAKES as raised:  # their slots are held until these pods change again
        context.contain(raised, "requests")
        context.cluster.consumers.moved.clear()


def giving_back(context: SchedulerContext) -> Generator[Effect, Answer, None]:
    """Give back the slots of ended bookings, and notify waiting pods once for all slots of equal
    pods. Other pods may be tried in between.
    """
    cluster, budget = context.cluster, context.cluster.budget
    bookings, freed = cluster.singleton(Bookings), FreedPlaces()
    bookings.is_giving_back = True
    try:
        while bookings.over:
            budget.note(GIVE_BACK_STEPS)
            owner, slot = bookings.over.popitem()
            if budget.is_used_up:
                yield Pause()
            if cluster.holds.drop(owner):
                freed.add(slot.what.cls.number, slot.what.pod, slot.node)
        yield from notify_of_freed(context, freed)
    except MISTAKES as raised:  # the rest is given back in a later turn
        context.contain(raised, "requests")
    finally:
        bookings.is_giving_back = False
