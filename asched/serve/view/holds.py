"""Reservations for pods to come, as they affect a waiting pod.

Bounds  OWNERS_MAX requests are shown, those with the most slots. Linear in the bookings.
"""

from heapq import nlargest
from typing import Any, Final

from asched.batch.provisioning.book import Booking, Bookings
from asched.core.cluster.holds import request_of
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
            "seconds": max(round(booking.until_s - cluster.wall_clock_s), 0),
        }
        for booking in largest
        if _places(booking)
    ]


def _places(booking: Booking) -> int:
    return sum(len(slots) for slots in list(booking.free.values()))
