"""Pods that find places together with a waiting pod: the rest of its gang, or its equals."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import count_missing
from asched.core.cluster.pod_groups import group_key
from asched.core.model.pod import Pod

#: Larger gangs are not tried as a whole, since each change would cost seconds.
GANG_MAX: Final = 64


class WaitingMembers(NamedTuple):
    """`others`: further waiting pods. `needed` pods, itself included, must find places at once."""

    others: list[Pod]
    needed: int = 1


def needed_of(cluster: Cluster, pod: Pod) -> int:
    """How many pods of a waiting pod's gang must find places at once, itself included; 1 for a pod
    that starts alone.
    """
    key = group_key(pod)
    return max(count_missing(cluster, key), 1) if key else 1


def company_of(cluster: Cluster, pod: Pod, equals: Iterable[Pod]) -> WaitingMembers | None:
    """The waiting pods of the pod's gang, or its equals. None for a gang that is too large, or that
    lacks pods, so that no change of pods or nodes helps it.
    """
    key = group_key(pod)
    if not key:
        return WaitingMembers([other for other in equals if other.uid != pod.uid])
    group, needed = cluster.pod_groups.get(key), needed_of(cluster, pod)
    waiting = [
        other
        for other in group.unplaced.values()
        if other.uid != pod.uid and other.uid not in group.gated and other.uid not in group.foreign
    ]
    if needed <= 1:
        return WaitingMembers(waiting)
    if needed > GANG_MAX or needed > len(waiting) + 1:
        return None
    return WaitingMembers(waiting, needed)
