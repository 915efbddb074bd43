"""GangScheduling: pods of a gang start together, or not at all.

A pod belongs to the PodGroup that it names; the group's gang policy says how many of its pods
(minCount) have to start together. A group without that policy is none of our business.

Rejects   a pod before it enters the queue, while its PodGroup or minCount of its pods are missing.
Waits     a pod that has its place, until minCount pods of the gang have theirs; whoever completes
          the gang lets the others go. After PERMIT_TIMEOUT_S it gives its place back.
Retry     a pod of the same group appears, or the group does.
Cost      two look-ups; one step for each pod of a gang that waits.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/gangscheduling
"""

from collections.abc import Sequence
from typing import Any, Final

from asched import names
from asched.core.framework.points import Hint, PermitPlugin, PreEnqueuePlugin, Registration
from asched.core.framework.status import SUCCESS, Code, Status, failure, unresolvable
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.state.changes import Action, Trigger
from asched.core.state.cluster import Cluster
from asched.core.state.pod_groups import group_key
from asched.core.state.pods import PodInfo

#: How long a pod with a place waits for the rest of its gang (upstream's permitTimeoutDuration).
PERMIT_TIMEOUT_S: Final = 5 * 60.0

TOO_FEW_PODS: Final = unresolvable(
    "waiting for minCount pods from a gang to appear in scheduling queue"
)
TOO_FEW_PLACES: Final = Status(
    Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",)
)


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    name = names.GANG_SCHEDULING
    awaits_pods = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting = cluster.singleton(WaitingPods.of)

    def registrations(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(POD.resource, Action.ADD), self._pod_appeared),
            Registration(Trigger(POD_GROUP.resource, Action.ADD), self._group_appeared),
        )

    def pre_enqueue(self, pod: Pod) -> Status:
        key = group_key(pod)
        if not key:
            return SUCCESS
        group: PodGroup | None = self._cluster.get(POD_GROUP, key)
        if group is None:
            name = key.rpartition("/")[2]
            return unresolvable(
                f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            )
        return SUCCESS if self._has_all_pods(group) else TOO_FEW_PODS

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:  # noqa: ARG002
        key = group_key(pod.pod)
        if not key:
            return SUCCESS, 0.0
        group: PodGroup | None = self._cluster.get(POD_GROUP, key)
        if group is None:
            kind = 'podgroup.scheduling.k8s.io "{}" not found'.format(key.rpartition("/")[2])
            return failure(f"failed to get podGroup {key}: {kind}"), 0.0
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS, 0.0
        pods = self._cluster.pod_groups.get(key)
        if len(pods.placed) < gang.min_count:
            self._cluster.pod_groups.hold(pod.pod)
            return TOO_FEW_PLACES, PERMIT_TIMEOUT_S
        for uid in self._cluster.pod_groups.let_go(key):
            mate = self._waiting.get(uid)
            if mate is not None:
                mate.allow(self.name)
        return SUCCESS, 0.0

    def _has_all_pods(self, group: PodGroup) -> bool:
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return True
        return self._cluster.pod_groups.get(group.metadata.key).count >= gang.min_count

    def _pod_appeared(self, pod: Pod, _old: Any, new: Pod) -> Hint:
        """Worth a try if it is of the same group, and the group is complete: a pod of a group that
        is not would be stopped at the gate at once.
        """
        key = group_key(pod)
        if not key or key != group_key(new):
            return Hint.SKIP
        group: PodGroup | None = self._cluster.get(POD_GROUP, key)
        return Hint.QUEUE if group is not None and self._has_all_pods(group) else Hint.SKIP

    def _group_appeared(self, pod: Pod, _old: Any, new: PodGroup) -> Hint:
        return Hint.QUEUE if group_key(pod) == new.metadata.key else Hint.SKIP
