"""What is promised to waiting pods: held places, moves of other pods, and starts.

Bounds  OWNERS_MAX requests, those with the most slots; linear in the bookings, in slices.
"""

from heapq import nlargest
from typing import Any, Final

from asched.batch.backfill.moved_starts import named
from asched.batch.backfill.reservations import POD_OWNER, Reservations, date_of
from asched.batch.provisioning.book import Booking, Bookings
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.consumers import request_of
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod

OWNERS_MAX: Final = 10


def holds_for(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """By request: the number of slots, of nodes, and the seconds left; `own` is true for the
    request that the pod itself consumes.
    """
    own, cluster = request_of(pod), context.cluster
    bookings = cluster.singleton(Bookings).all()
    largest = nlargest(OWNERS_MAX, bookings, key=lambda booking: (_places(booking), booking.key))
    return [
        {
            "owner": f"provisioningrequest/{booking.key}",
            "own": booking.key == own,
            "places": _places(booking),
            "nodes": len({node for _, node in list(booking.free_on)}),
            "seconds": max(round(booking.until_s - cluster.steady_s), 0),
        }
        for booking in largest
        if _places(booking)
    ]


def _places(booking: Booking) -> int:
    return sum(len(slots) for slots in list(booking.free.values()))


def moves_for(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """What the last search for moves found for a pod or its gang, and the seconds until the next
    one; None if it is not tracked.
    """
    units = context.cluster.singleton(RebalanceUnits)
    unit = units.tracked.get(context.gangs.key_of(pod)) or units.tracked.get(pod.uid)
    if unit is None:
        return None
    is_active = units.active is not None and units.active.cause.subject is unit
    return {
        "text": unit.text.removeprefix("; "),
        "moved": unit.moved,
        "underWay": is_active,
        "seconds": 0 if is_active else max(round(unit.search_s - context.now_s), 0),
    }


def drain_of(context: SchedulerContext, pod: Pod) -> dict[str, str] | None:
    """Where a place is held for the successor of a pod whose node is drained; None if it is not."""
    units = context.cluster.singleton(RebalanceUnits)
    drain, active = units.drains.get(pod.spec.node_name), units.active
    if drain is None:
        return None
    is_active = active is not None and active.cause.subject is drain
    place = active.places.place_of(pod.uid) if is_active else ""
    return {"node": drain.node, "place": place}


#: Promised starts of other owners shown for a waiting pod, earliest first.
OTHERS_MAX: Final = 10
NODES_MAX: Final = 20


def start_of(context: SchedulerContext, owner: str) -> dict[str, Any] | None:
    """None without a promise. `first` is the earliest start that was promised."""
    promise = context.cluster.singleton(Reservations).of(owner)
    if promise is None:
        return None
    return {
        "at": date_of(context.cluster, promise.start_s + 1),
        "certainty": "hard" if promise.is_hard else "soft",
        "first": date_of(context.cluster, promise.first_s + 1),
        "cause": promise.cause,
        "count": len(promise.needs),
        "nodes": list(promise.needs)[:NODES_MAX],
    }


def start_of_pod(context: SchedulerContext, pod: Pod) -> dict[str, Any] | None:
    """The start of the pod's gang, or its own."""
    return start_of(context, context.gangs.key_of(pod)) or start_of(context, POD_OWNER + pod.uid)


def starts_of_others(context: SchedulerContext, pod: Pod) -> list[dict[str, Any]]:
    """Promised starts that keep a pod off nodes."""
    binding = context.cluster.singleton(Reservations).binding(context.cluster.classes.info_of(pod))
    return [
        {
            "owner": named(promise.owner, promise),
            "at": date_of(context.cluster, promise.start_s + 1),
            "nodes": len(promise.needs),
        }
        for promise in sorted(binding, key=lambda promise: promise.start_s)[:OTHERS_MAX]
    ]
