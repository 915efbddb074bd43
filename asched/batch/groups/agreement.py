"""What the pods of a group have to agree on before they are tried at all.

Since 1.37 that is more than the scheduler's name: each pod's priority is its group's, and all have
one preemption policy, those that run included. A group that does not agree is an error, told to its
pods and in its condition.

Source  kubernetes/kubernetes v1.37 pkg/scheduler/schedule_one_podgroup.go (validatePodGroup)
"""

from collections.abc import Iterator
from typing import Final

from asched.batch.groups.attempt import GroupAttempt
from asched.core.model.kinds import POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.state.cluster import Cluster

#: What a pod without a policy does.
PREEMPTS: Final = "PreemptLowerPriority"
ALL: Final = "all pods in a single pod group should have the same"


def is_of_1_36(cluster: Cluster) -> bool:
    """Whether the API server has PodGroups as 1.36 has them."""
    return cluster.spoken(POD_GROUP).group_version == POD_GROUP.group_version


def disagreement(cluster: Cluster, group: GroupAttempt) -> str:
    """What is wrong with the group's pods by the rules of 1.37; empty if nothing is, or if the API
    server has the group as 1.36 has it.
    """
    if is_of_1_36(cluster) or group.is_coscheduled:
        return ""
    known: PodGroup | None = cluster.get(POD_GROUP, group.key)
    if known is None:
        return ""
    first = group.attempts[0].pod
    own = known.spec.preemption_policy
    for pod in _pods(cluster, group):
        name = pod.spec.scheduler_name
        if name != first.spec.scheduler_name:
            return f'{ALL} .spec.schedulerName set, got: "{name}" and "{first.spec.scheduler_name}"'
        if pod.priority != known.priority:
            both = f"{pod.priority} and {known.priority}"
            return f"{ALL} priority as the pod group's priority, got {both}"
        policy, wanted = _policy(pod), own or _policy(first)
        if policy != wanted:
            whose = " as the pod group's preemption policy" if own else ""
            return f"{ALL} preemption policy{whose}, got {policy} and {wanted}"
    return ""


def _pods(cluster: Cluster, group: GroupAttempt) -> Iterator[Pod]:
    for attempt in group.attempts:
        yield attempt.pod
    yield from cluster.pod_groups.get(group.key).placed.values()


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or PREEMPTS
