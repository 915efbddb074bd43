"""Hold places again that an earlier process promised, by the status of their requests.

A new process adopts all places of the cluster, so the work stops after each place. Other clients
may write the status, too. So places are held no longer than the request specifies, counted from
when the status was read, only once, and within the share of their namespace; `cycle.py` records the
requests that have ended.

Bounds  PODS_MAX places a request; a status with more places is not adopted.
"""

from collections import Counter
from collections.abc import Generator
from typing import Final

from asched.batch.provisioning import pods as request_pods
from asched.batch.provisioning import status as request_status
from asched.batch.provisioning.book import PODS_MAX, Bookings
from asched.batch.share import why_beyond_share
from asched.core.cluster.cluster import Cluster
from asched.core.config.args import HOLD_S_MAX, PERCENT_MAX, CheckAndHoldArgs
from asched.core.model.provisioning import ProvisioningRequest

LOST_PLACES: Final = (request_status.LOST, "its places are not known any more")
TIME_IS_UP: Final = (request_status.TIME_IS_UP, "Capacity reservation time is expired")


#: The limits for a promise of another process that is only read.
ANY_TERMS: Final = CheckAndHoldArgs(hold_s=HOLD_S_MAX, max_namespace_percentage=PERCENT_MAX)


def hold_promised(cluster: Cluster, request: ProvisioningRequest) -> tuple[str, str] | None:
    """As `holding_promised`, in one step and without limits."""
    steps = holding_promised(cluster, request, ANY_TERMS)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            over: tuple[str, str] | None = end.value
            return over


def holding_promised(
    cluster: Cluster, request: ProvisioningRequest, args: CheckAndHoldArgs
) -> Generator[None, None, tuple[str, str] | None]:
    """Hold the places in the status of an accepted request; returns (reason, message) if there are
    none any more. Yields after each place.
    """
    bookings = cluster.singleton(Bookings)
    promised = request_status.read(request.status.provisioning_class_details)
    if promised is None:
        return LOST_PLACES
    places, until_s = promised
    if until_s <= cluster.wall_clock_s:
        return TIME_IS_UP
    try:
        hold_s = request_pods.terms_of(request, args).hold_s
        likes = [info for info, _ in request_pods.examples(cluster, request)]
    except request_pods.UnusableRequestError:
        return LOST_PLACES
    if any(not 0 <= place.pod_set < len(likes) for place in places):
        return LOST_PLACES
    if sum(place.times for place in places) > PODS_MAX:
        return LOST_PLACES
    sizes = Counter[int]()
    for place in places:
        sizes[place.pod_set] += place.times
    by_set = [(likes[pod_set], size) for pod_set, size in sizes.items()]
    over = why_beyond_share(cluster, request.metadata.namespace, by_set, args)
    if over:
        return request_status.LOST, over
    until_s = min(until_s, cluster.wall_clock_s + hold_s)
    key, uid = request.metadata.key, request.metadata.uid
    booking = bookings.begin(key, uid, until_s, args.priority)
    for place in places:
        for _ in range(place.times):
            number = len(booking.slots)
            what = request_pods.numbered(likes[place.pod_set], request, place.pod_set, number)
            bookings.add(booking, place.pod_set, what, place.node)
            yield
    yield from bookings.adopt(booking)
    return None
