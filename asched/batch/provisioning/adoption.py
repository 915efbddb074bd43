"""Places that an earlier process promised: held again as the status of their request tells.

A new process meets as many of them as the cluster has, so that whoever asks may stop after each.

Other clients may write the status, too. What it says is held no longer than the request asks for,
counted from when it was read, only once, and within the share of its namespace: `request_cycle.py`
knows which ones are over.

Bounds  PODS_MAX places a request; nothing of what tells of more is believed.
"""

from collections import Counter
from collections.abc import Generator
from typing import Final

from asched.batch.provisioning import pods as request_pods
from asched.batch.provisioning import status as request_status
from asched.batch.provisioning.book import PODS_MAX, Bookings
from asched.batch.share import why_beyond_share
from asched.core.config.args import CheckAndHoldArgs
from asched.core.config.validate_args import HOLD_S_MAX, PERCENT_MAX
from asched.core.model.provisioning import ProvisioningRequest
from asched.core.state.cluster import Cluster

LOST_PLACES: Final = (request_status.LOST, "its places are not known any more")
TIME_IS_UP: Final = (request_status.TIME_IS_UP, "Capacity reservation time is expired")


#: What is believed where another process's promise is only looked at.
ANY_TERMS: Final = CheckAndHoldArgs(hold_s=HOLD_S_MAX, max_namespace_percentage=PERCENT_MAX)


def hold_promised(cluster: Cluster, request: ProvisioningRequest) -> tuple[str, str] | None:
    """As `holding_promised`, in one go and on any terms."""
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
    """Hold the places that an accepted request tells of; or (reason, message) why there are none
    any more. Stops after each place.
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
