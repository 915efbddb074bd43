"""Whether a pod stands where it should: queued if it waits, counted on its node if it has one.

Each step from one version of a pod to the next moves it by itself; what is missed once is missed
for good. So an audit looks again, pod by pod, between two turns.
"""

from enum import StrEnum
from typing import Final

from asched.core.cycle.context import SchedulerContext


class Fault(StrEnum):
    """What is wrong with a pod's place."""

    UNQUEUED = "waits, and is in no queue"
    OUTDATED = "is queued in another version than is known"
    QUEUED = "is queued, and does not wait"
    MISCOUNTED = "is not counted on its node"
    COUNTED = "is counted on a node, and nobody knows it"


#: Those of the queue, which `orders.QueueAmended` ends.
OF_QUEUE: Final = frozenset((Fault.UNQUEUED, Fault.OUTDATED, Fault.QUEUED))


def fault_of(context: SchedulerContext, key: str) -> Fault | None:
    """What is wrong with the place of the pod of this key ("namespace/name")."""
    cluster, queue = context.cluster, context.queue
    pod, queued = cluster.pods_seen.get(key), queue.places.get(key)
    if pod is None:
        return Fault.QUEUED if queued is not None else None
    info = cluster.placed.get(pod.uid)
    if pod.spec.node_name:
        if info is None or info.node_name != pod.spec.node_name:
            return Fault.MISCOUNTED
        return Fault.QUEUED if queued is not None else None
    if queued is not None:
        known = pod.uid, pod.metadata.resource_version
        told = queued.pod.uid, queued.pod.metadata.resource_version
        return Fault.OUTDATED if told != known else None
    is_under_way = info is not None or pod.uid in queue.in_flight or pod.uid in context.late
    if is_under_way or pod.is_terminating or not context.owns(pod):
        return None
    return Fault.UNQUEUED


def fault_of_count(context: SchedulerContext, uid: str) -> Fault | None:
    """What is wrong with a count on a node; what is assumed ends with its binding."""
    info = context.cluster.placed.get(uid)
    if info is None or info.assumed:
        return None
    known = context.cluster.pods_seen.get(info.pod.key)
    return Fault.COUNTED if known is None or known.uid != uid else None
