"""Places that an earlier process promised: held again as the status of their request tells.

A new process meets as many of them as the cluster has, so that whoever asks may stop after each.

Others may write the status, too. What it says is held no longer than the request asks for, counted
from when it was read, and only once: `request_cycle.py` knows which ones are over.

Bounds  PODS_MAX places a request; nothing of what tells of more is believed.
"""

from collections.abc import Generator
from typing import Final

from asched.core.config.validate_args import HOLD_S_MAX
from asched.core.cycle import request_pods, request_status
from asched.core.cycle.request_book import PODS_MAX, Bookings
from asched.core.model.provisioning import ProvisioningRequest
from asched.core.state.cluster import Cluster

LOST_PLACES: Final = (request_status.LOST, "its places are not known any more")
TIME_IS_UP: Final = (request_status.TIME_IS_UP, "Capacity reservation time is expired")


def hold_promised(
    cluster: Cluster, request: ProvisioningRequest, hold_s: float = HOLD_S_MAX
) -> tuple[str, str] | None:
    """As `holding_promised`, in one go."""
    steps = holding_promised(cluster, request, hold_s)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            over: tuple[str, str] | None = end.value
            return over


def holding_promised(
    cluster: Cluster, request: ProvisioningRequest, hold_s: float
) -> Generator[None, None, tuple[str, str] | None]:
    """Hold the places that an accepted request tells of, for `hold_s` at most; or (reason, message)
    why there are none any more. Stops after each place.
    """
    bookings = cluster.singleton(Bookings)
    promised = request_status.read(request.status.provisioning_class_details)
    if promised is None:
        return LOST_PLACES
    places, until_s = promised
    if until_s <= cluster.wall_clock_s:
        return TIME_IS_UP
    try:
        likes = [info for info, _ in request_pods.examples(cluster, request)]
    except request_pods.UnusableRequestError:
        likes = []
    if any(not 0 <= place.pod_set < len(likes) for place in places):
        return LOST_PLACES
    if sum(place.times for place in places) > PODS_MAX:
        return LOST_PLACES
    until_s = min(until_s, cluster.wall_clock_s + hold_s)
    booking = bookings.begin(request.metadata.key, request.metadata.uid, until_s)
    for place in places:
        for _ in range(place.times):
            number = len(booking.slots)
            what = request_pods.numbered(likes[place.pod_set], request, place.pod_set, number)
            bookings.add(booking, place.pod_set, what, place.node)
            yield
    yield from bookings.adopt(booking)
    return None
