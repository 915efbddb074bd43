"""Faults of the places of pods, which an audit looks for between two turns.

Each change of a pod updates its place once; a missed update would never be corrected. So an audit
checks the pods, one by one: a waiting pod is queued, and a pod with a node is counted there.
"""

from enum import StrEnum
from typing import Final

from asched.core.cycle.context import SchedulerContext


class Fault(StrEnum):
    """What is wrong with a pod's place."""

    UNQUEUED = "waits, and is in no queue"
    OUTDATED = "is queued in an outdated version"
    QUEUED = "is queued, and does not wait"
    MISCOUNTED = "is not counted on its node"
    COUNTED = "is counted on a node, and is not known"


#: Faults of the queue, which `orders.QueueAmended` corrects.
OF_QUEUE: Final = frozenset((Fault.UNQUEUED, Fault.OUTDATED, Fault.QUEUED))


def fault_of(context: SchedulerContext, key: str) -> Fault | None:
    """The fault of the place of the pod with this key ("namespace/name"); None if there is none."""
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
        in_queue = queued.pod.uid, queued.pod.metadata.resource_version
        return Fault.OUTDATED if in_queue != known else None
    is_under_way = info is not None or pod.uid in queue.in_flight
    if is_under_way or pod.is_terminating or not context.owns(pod):
        return None
    return Fault.UNQUEUED


def fault_of_count(context: SchedulerContext, uid: str) -> Fault | None:
    """The fault of a pod counted on a node; None for an assumed pod, whose binding is open."""
    info = context.cluster.placed.get(uid)
    if info is None or info.assumed:
        return None
    known = context.cluster.pods_seen.get(info.pod.key)
    return Fault.COUNTED if known is None or known.uid != uid else None
