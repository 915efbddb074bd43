"""What is promised to a waiting pod, and to others before it: held places, and starts.

Bounds  OWNERS_MAX requests are shown, those with the most slots. Linear in the bookings.
"""

from heapq import nlargest
from typing import Any, Final

from asched.batch.backfill.reservations import POD_OWNER, Reservations
from asched.batch.backfill.starts import named
from asched.batch.provisioning.book import Booking, Bookings
from asched.core.cluster.holds import request_of
from asched.core.cycle.context import SchedulerContext
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339

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
            "seconds": max(round(booking.until_s - cluster.wall_clock_s), 0),
        }
        for booking in largest
        if _places(booking)
    ]


def _places(booking: Booking) -> int:
    return sum(len(slots) for slots in list(booking.free.values()))


#: Promised starts of other owners shown for a waiting pod, earliest first.
OTHERS_MAX: Final = 10
NODES_MAX: Final = 20


def start_of(context: SchedulerContext, owner: str) -> dict[str, Any] | None:
    """None without a promise. `first` is the earliest start that was promised."""
    promise = context.cluster.singleton(Reservations).of(owner)
    if promise is None:
        return None
    return {
        "at": rfc3339(promise.start_s + 1),
        "certainty": "hard" if promise.is_hard else "soft",
        "first": rfc3339(promise.first_s + 1),
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
            "at": rfc3339(promise.start_s + 1),
            "nodes": len(promise.needs),
        }
        for promise in sorted(binding, key=lambda promise: promise.start_s)[:OTHERS_MAX]
    ]
