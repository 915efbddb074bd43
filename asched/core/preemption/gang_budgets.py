"""Pods of gangs, protected as if each gang had a disruption budget that allows no disruption.

`GangBudgets` evicts a pod of a gang only where no other pod can be evicted. A gang that loses a pod
often loses all of its work, and it may belong to another scheduler. kube-scheduler does not
consider that; GangSparingPreemption does, by the existing rule for disruption budgets: pods of
gangs are put back first, and nodes without such victims are preferred.

Gangs   of PodGroups (scheduling.k8s.io and scheduling.x-k8s.io), and what Volcano, KAI, YuniKorn
        and Koordinator write on their pods.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.model.pod import Pod
from asched.core.preemption.budgets import Budgets

#: Annotations and labels by which schedulers mark their gangs, and which scheduler it is.
ANNOTATIONS: Final = {
    "scheduling.k8s.io/group-name": "Volcano",
    "pod-group-name": "KAI",
    "yunikorn.apache.org/task-group-name": "YuniKorn",
    "gang.scheduling.koordinator.sh/name": "Koordinator",
}
LABELS: Final = {
    "yunikorn.apache.org/task-group-name": "YuniKorn",
    "pod-group.scheduling.sigs.k8s.io/name": "Koordinator",
    "pod-group.scheduling.sigs.k8s.io": "Koordinator",
}


def is_of_gang(pod: Pod) -> bool:
    """Whether a pod belongs to a gang, of any scheduler."""
    annotations, labels = pod.metadata.annotations or (), pod.metadata.labels or ()
    return (
        bool(group_key(pod))
        or not ANNOTATIONS.keys().isdisjoint(annotations)
        or not LABELS.keys().isdisjoint(labels)
    )


class GangBudgets(Budgets):
    """The budgets of a cluster, and one budget without disruptions for each gang."""

    def __len__(self) -> int:
        return super().__len__() + 1

    def violations(self, pods: Sequence[PodInfo]) -> list[bool]:
        violating = super().violations(pods)
        return [over or is_of_gang(info.pod) for over, info in zip(violating, pods, strict=True)]

    def violated_by(self, units: Iterable[Sequence[PodInfo]]) -> Iterator[int]:
        listed = list(units)
        for over, pods in zip(super().violated_by(listed), listed, strict=True):
            yield over or int(any(is_of_gang(info.pod) for info in pods))
