"""Who waits for the same as a pod: its gang, or pods that are equal to it."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from asched.core.model.pod import Pod
from asched.core.state.cluster import Cluster
from asched.core.state.gang import count_missing
from asched.core.state.pod_groups import group_key

#: Larger gangs are not decided about as a whole: each change would cost seconds.
GANG_MAX: Final = 64


class WaitingMembers(NamedTuple):
    """`others` that wait; `needed` of them and the pod must find places at once, 1 if none must."""

    others: list[Pod]
    needed: int = 1


def company_of(cluster: Cluster, pod: Pod, equals: Iterable[Pod]) -> WaitingMembers | None:
    """None for a gang that is too large, or of which enough pods are not there yet: no change of
    pods or nodes helps it.
    """
    key = group_key(pod)
    if not key:
        return WaitingMembers([other for other in equals if other.uid != pod.uid])
    group = cluster.pod_groups.get(key)
    needed = count_missing(cluster, key)
    waiting = [
        other
        for other in group.unplaced.values()
        if other.uid != pod.uid and other.uid not in group.gated
    ]
    if needed <= 1:
        return WaitingMembers(waiting)
    if needed > GANG_MAX or needed > len(waiting) + 1:
        return None
    return WaitingMembers(waiting, needed)
