"""Check that the pods of a group agree, before any of them is tried.

Since 1.37 not only the scheduler's name must agree: each pod's priority is its group's, and all
pods have one preemption policy, running pods included. A disagreement is an error, written to the
conditions of the pods and of the group.

Source  kubernetes/kubernetes v1.37 pkg/scheduler/schedule_one_podgroup.go (validatePodGroup)
"""

from collections.abc import Iterator
from typing import Final

from asched.batch.groups.attempt import GroupAttempt
from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup

#: The policy of a pod without one.
PREEMPTS: Final = "PreemptLowerPriority"
ALL: Final = "all pods in a single pod group should have the same"
ALL_GROUPS: Final = "all pod groups in a hierarchy should have the same"
ALL_OF_TREE: Final = "all pods in a pod group hierarchy should have the same"


def is_of_1_36(cluster: Cluster) -> bool:
    """Whether the API server serves the PodGroups of 1.36."""
    return cluster.served_kind(POD_GROUP).group_version == POD_GROUP.group_version


def disagreement(cluster: Cluster, group: GroupAttempt, *, uses_policy: bool) -> str:
    """The error of the group's pods by the rules of 1.37; empty if they agree, or if the API server
    serves the PodGroups of 1.36. `uses_policy`: the gate PodGroupPreemptionPolicy is on.
    """
    if is_of_1_36(cluster) or group.is_coscheduled:
        return ""
    known: PodGroup | None = cluster.get(POD_GROUP, group.key)
    if known is None:
        return ""
    every, first = ALL, group.attempts[0].pod
    nodes = list(group.tree.nodes.values()) if group.tree is not None else []
    if nodes:
        known, every = nodes[0].group, ALL_OF_TREE
    own = (known.spec.preemption_policy or PREEMPTS) if uses_policy else ""
    for node in nodes:
        at, priority = node.group.metadata.name, node.group.priority
        if priority != known.priority:
            both = f"{priority} ({at}) and {known.priority} ({known.metadata.name})"
            return f"{ALL_GROUPS} priority as the root pod group's priority, got {both}"
        policy = node.group.spec.preemption_policy or PREEMPTS
        if own and policy != own:
            whose = "as the root pod group's preemption policy"
            return f"{ALL_GROUPS} preemption policy {whose}, got {policy} ({at}) and {own}"
    for pod in _pods(cluster, group):
        name = pod.spec.scheduler_name
        if name != first.spec.scheduler_name:
            both = f'"{name}" and "{first.spec.scheduler_name}"'
            return f"{every} .spec.schedulerName set, got: {both}"
        if pod.priority != known.priority:
            both = f"{pod.priority} and {known.priority}"
            return f"{every} priority as the pod group's priority, got {both}"
        policy, wanted = _policy(pod), own or _policy(first)
        if policy != wanted:
            whose = " as the pod group's preemption policy" if own else ""
            return f"{every} preemption policy{whose}, got {policy} and {wanted}"
    return ""


def _pods(cluster: Cluster, group: GroupAttempt) -> Iterator[Pod]:
    for attempt in group.attempts:
        yield attempt.pod
    for key in cluster.pod_groups.leaves_of(group.key):
        yield from cluster.pod_groups.get(key).placed.values()


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or PREEMPTS
