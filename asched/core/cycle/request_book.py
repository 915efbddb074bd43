"""Bookings: the places that are held for accepted ProvisioningRequests, slot by slot.

    booked ─> a slot in the ledger, counted as its pod would be
                 │ open: a pod is being tried for it ─> not tried any more: held again
                 └ taken: a pod has its place there ─> the pod loses it: held again

Where a slot is has been told (`request_status.py`), so it stays there, counted, until it is told
otherwise or its time is up. A pod of the request that has its place elsewhere leaves the slots as
they are; once as many pods have places as there are slots, nothing is left to be held.

Slots are told apart by their owners in the ledger (`state/holds.py`), one each, so that a pod that
takes its place costs one slot and not the request. Who has a slot is read off the pods that the
cluster counts: nothing is noted that a new process would not come to as well.

A slot whose node went, or on whose node others lie, is *homeless*: it counts nowhere, and its
request has to look for another place (`request_cycle.py`).

Bounds  PODS_MAX slots a request; one entry for each slot, and for each pod that has one.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from asched.core.cycle.context import SchedulerContext
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from asched.core.state.cluster import Cluster
from asched.core.state.holds import HeldPlace
from asched.core.state.pods import PodInfo

#: Before the first colon of an owner in the ledger.
OWNERS: Final = "ProvisioningRequest"
#: A request for more is refused. A guess: the largest jobs have some thousands of pods.
PODS_MAX: Final = 5_000


class Slot(msgspec.Struct, eq=False):
    """A place for one pod to come. `node` is "" while it is homeless."""

    owner: str
    pod_set: int
    what: PodInfo
    node: str
    taken_by: str = ""  # the pod's uid


class Booking(msgspec.Struct, eq=False):
    """All slots of a request, held until `until_s` (since 1970)."""

    key: str
    uid: str
    until_s: float
    slots: dict[str, Slot] = msgspec.field(default_factory=dict)  # by owner
    #: pod set -> owner -> slot that nobody has; the same by (pod set, node)
    free: dict[int, dict[str, Slot]] = msgspec.field(default_factory=dict)
    free_on: dict[tuple[int, str], dict[str, Slot]] = msgspec.field(default_factory=dict)
    #: others lie on its room, or its node went
    homeless: dict[str, Slot] = msgspec.field(default_factory=dict)
    #: pod set -> one of its pods to come
    likes: dict[int, PodInfo] = msgspec.field(default_factory=dict)
    #: uid -> a pod that has its place where the request has none
    elsewhere: dict[str, PodInfo] = msgspec.field(default_factory=dict)

    def put_free(self, slot: Slot) -> None:
        """Nobody has it, on its node."""
        self.free.setdefault(slot.pod_set, {})[slot.owner] = slot
        self.free_on.setdefault((slot.pod_set, slot.node), {})[slot.owner] = slot

    def drop_free(self, slot: Slot) -> None:
        """Somebody has it, or it is about to lose its node."""
        if self.free.get(slot.pod_set, {}).pop(slot.owner, None) is not None:
            there = self.free_on[slot.pod_set, slot.node]
            del there[slot.owner]
            if not there:
                del self.free_on[slot.pod_set, slot.node]

    @property
    def is_consumed(self) -> bool:
        """Whether pods have places, here or elsewhere, for all of it."""
        left = {s: len(slots) for s, slots in self.free.items()}
        for slot in self.homeless.values():
            left[slot.pod_set] = left.get(slot.pod_set, 0) + 1
        if sum(left.values()) > len(self.elsewhere):
            return False
        for info in self.elsewhere.values():
            pod_set = next((s for s in self.sets_for(info) if left.get(s)), None)
            if pod_set is not None:
                left[pod_set] -= 1
        return not any(left.values())

    def sets_for(self, info: PodInfo) -> list[int]:
        """Pod sets of which a pod may have a slot: those whose pods ask for just as much, and if
        there are none those whose pods ask for more.
        """
        asked, larger = info.cls.accounted, []
        for pod_set, like in self.likes.items():
            held = like.cls.accounted
            if all(amount <= held.get(name, 0) for name, amount in asked.items()):
                larger.append(pod_set)
        return [s for s in larger if self.likes[s].cls.accounted == asked] or larger


class Bookings:
    """For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._bookings: dict[str, Booking] = {}
        #: owner, or uid of who has it; None for a pod that has its place elsewhere
        self._slot_of: dict[str, tuple[Booking, Slot | None]] = {}
        #: slots that are not counted while a pod is tried for them, by its uid
        self._open: dict[str, tuple[Booking, Slot]] = {}
        #: whoever is to be looked at: a slot of theirs became homeless, or was taken
        self.moved: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._bookings)

    def all(self) -> list[Booking]:
        """A copy, for readers in other threads."""
        return list(self._bookings.values())

    def get(self, key: str) -> Booking | None:
        return self._bookings.get(key)

    def has_slot(self, uid: str) -> bool:
        """Whether a pod has one."""
        return uid in self._slot_of

    # --- for the requests' cycle -----------------------------------------------------------------

    def begin(self, key: str, uid: str, until_s: float) -> Booking:
        """A booking without slots; one that was there before has been ended."""
        booking = self._bookings[key] = Booking(key, uid, until_s)
        return booking

    def add(self, booking: Booking, pod_set: int, what: PodInfo, node: str) -> Slot:
        """One more slot. It is not held before `house`."""
        owner = f"{OWNERS}:{booking.key}#{len(booking.slots)}"
        slot = booking.slots[owner] = Slot(owner, pod_set, what, node)
        self._slot_of[owner] = (booking, slot)
        booking.put_free(slot)
        booking.likes.setdefault(pod_set, what)
        return slot

    def adopt(self, booking: Booking) -> Iterator[None]:
        """Hold all slots that no pod has already. Stops after each."""
        self.match(booking)
        for slot in tuple(booking.slots.values()):
            if not slot.taken_by:
                self.house(booking, slot, slot.node)
            yield

    def house(self, booking: Booking, slot: Slot, node: str) -> bool:
        """Hold a slot on a node if that has room for it; whether it has."""
        cluster = self._cluster
        row = cluster.nodes.row_of.get(node)
        if row is not None:
            if slot.node != node:
                booking.drop_free(slot)
                slot.node = node
            self._hold(booking, slot)
            if not cluster.holds.is_over(row):
                booking.homeless.pop(slot.owner, None)
                booking.put_free(slot)
                return True
            cluster.holds.drop(slot.owner)
        booking.drop_free(slot)
        slot.node = ""
        booking.homeless[slot.owner] = slot
        self.moved[booking.key] = None
        return False

    def match(self, booking: Booking) -> None:
        """Pods may have come before the booking."""
        for info in self._cluster.consumers.of(booking.key).values():
            self._take(info, None)

    def end(self, key: str) -> list[HeldPlace]:
        """Nothing is held for the request any more; what was."""
        booking = self._bookings.pop(key, None)
        freed: list[HeldPlace] = []
        for uid in booking.elsewhere if booking is not None else ():
            self._slot_of.pop(uid, None)
        for slot in booking.slots.values() if booking is not None else ():
            freed += self._cluster.holds.drop(slot.owner)
            self._slot_of.pop(slot.owner, None)
            self._slot_of.pop(slot.taken_by, None)
        if booking is not None:
            self._open = {uid: it for uid, it in self._open.items() if it[0] is not booking}
        self.moved.pop(key, None)
        return freed

    # --- for pods that consume -------------------------------------------------------------------

    def open(self, uid: str, booking: Booking, slot: Slot) -> bool:
        """Do not count a free slot while a pod is tried for it; whether it is still free."""
        if self._bookings.get(booking.key) is not booking or slot.taken_by or not slot.node:
            return False
        if slot.owner not in booking.free.get(slot.pod_set, {}):
            return False
        self._open[uid] = (booking, slot)
        self._cluster.consumers.moved[uid] = None
        return self._cluster.holds.lift(slot.owner)

    def close(self, uid: str) -> None:
        """The pod is not tried for its slot any more, or others have their turn."""
        opened = self._open.pop(uid, None)
        if opened is not None:
            self._cluster.holds.restore(opened[1].owner)

    def settle(self) -> None:
        """Pods came to slots, or left them."""
        consumers, placed = self._cluster.consumers, self._cluster.placed
        for uid in (*consumers.moved, *self._open):
            opened = self._open.pop(uid, None)
            info = placed.get(uid)
            if uid in self._slot_of and info is None:
                self._leave(uid)
            elif info is not None and uid not in self._slot_of:
                self._take(info, opened[1] if opened is not None else None)
            if opened is not None and opened[1].taken_by != uid:
                self._cluster.holds.restore(opened[1].owner)
        consumers.moved.clear()

    def disturbed(self, owner: str) -> None:
        """The room of a slot was disturbed: if others lie there, it is homeless."""
        found = self._slot_of.get(owner)
        self._cluster.holds.touched.pop(owner, None)
        if found is None or found[1] is None:
            self._cluster.holds.drop(owner)
            return
        booking, slot = found[0], found[1]
        row = self._cluster.nodes.row_of.get(slot.node)
        hold = self._cluster.holds.of(owner)
        if slot.taken_by or hold is None or hold.is_lifted:
            return
        if row is None or not hold.places or self._cluster.holds.is_over(row):
            self._evict(booking, slot)

    # --- inside ----------------------------------------------------------------------------------

    def _hold(self, booking: Booking, slot: Slot) -> None:
        until_s = booking.until_s - self._cluster.wall_ahead_s
        self._cluster.holds.put(slot.owner, [HeldPlace(slot.what, slot.node)], until_s)

    def _take(self, info: PodInfo, opened: Slot | None) -> None:
        """A pod of a request has its place: it has the slot that it was tried for, or one of its
        node, or none.
        """
        uid = info.pod.uid
        booking = self._bookings.get(self._cluster.consumers.request_of(uid))
        if booking is None or uid in self._slot_of:
            return
        slot = opened if opened is not None and opened.node == info.node_name else None
        slot = slot or _slot_at(booking, info)
        self._slot_of[uid] = (booking, slot)
        self.moved[booking.key] = None
        if slot is None:
            booking.elsewhere[uid] = info
            return
        slot.taken_by = uid
        booking.drop_free(slot)
        self._cluster.holds.drop(slot.owner)

    def _leave(self, uid: str) -> None:
        booking, slot = self._slot_of.pop(uid)
        if slot is None:
            booking.elsewhere.pop(uid, None)
            return
        slot.taken_by = ""
        self.house(booking, slot, slot.node)

    def _evict(self, booking: Booking, slot: Slot) -> None:
        self._cluster.holds.drop(slot.owner)
        booking.drop_free(slot)
        slot.node = ""
        booking.homeless[slot.owner] = slot
        self.moved[booking.key] = None


def _slot_at(booking: Booking, info: PodInfo) -> Slot | None:
    """A free slot for such a pod on its node."""
    for pod_set in booking.sets_for(info):
        for slot in booking.free_on.get((pod_set, info.node_name), {}).values():
            return slot
    return None


def settle(context: SchedulerContext, owner: str) -> None:
    """As a keeper: look at the owner of a slot."""
    bookings, holds = context.cluster.singleton(Bookings), context.cluster.holds
    booking = bookings.get(owner.removeprefix(f"{OWNERS}:").rpartition("#")[0])
    if booking is not None and booking.until_s <= context.cluster.wall_clock_s:
        free(context, bookings.end(booking.key))
        bookings.moved[booking.key] = None
        return
    hold = holds.of(owner)
    if booking is not None and hold is not None and hold.until_s <= context.now_s:
        # The wall clock was set back meanwhile.
        holds.put(owner, hold.places, booking.until_s - context.cluster.wall_ahead_s)
    bookings.disturbed(owner)


def settle_consumers(context: SchedulerContext) -> None:
    """Bring slots in line with the pods that have them, before anybody is decided for."""
    if context.cluster.consumers.moved:
        context.cluster.singleton(Bookings).settle()


def free(context: SchedulerContext, places: list[HeldPlace]) -> None:
    """Tell those who wait what became free."""
    for what, node in places:
        assert isinstance(what, PodInfo)
        context.queue.move(Change(ASSIGNED_POD_DELETE, what.pod.on(node)), context.now_s)
