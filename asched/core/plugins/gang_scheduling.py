"""GangScheduling: pods of a gang start together, or not at all.

A pod belongs to the PodGroup that it names; the group's gang policy says how many of its pods
(minCount) have to start together. A group without that policy is not handled here.

Rejects   a pod before it enters the queue, while its PodGroup or minCount of its pods are missing.
Waits     a pod that has its place, until minCount pods of the gang have theirs; the pod that
          completes the gang allows the waiting ones. After PERMIT_TIMEOUT_S it gives its place
          back.
Retry     a pod of the same group appears, or the group does; its minCount goes down (since 1.37).
Trees     with the gate CompositePodGroup a PodGroup with a parent waits until its tree is complete,
          and the same changes of any group of its tree retry its pods.
Cost      two lookups; one step for each pod of a gang that waits.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/gangscheduling
"""

from collections.abc import Sequence
from typing import Any, Final

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.group_trees import COMPOSITE, parent_of
from asched.core.cluster.pod_groups import Gang, GroupPods
from asched.core.framework.points import Hint, Registration
from asched.core.framework.status import Code, Status, unresolvable
from asched.core.model.kinds import COMPOSITE_POD_GROUP, POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import CompositePodGroup, PodGroup
from asched.core.plugins.gang_rule import GangRule

#: How long a pod with a place waits for the rest of its gang (upstream's permitTimeoutDuration).
PERMIT_TIMEOUT_S: Final = 5 * 60.0


class GangScheduling(GangRule):
    name = names.GANG_SCHEDULING
    is_coscheduled = False
    too_few_pods = unresolvable(
        "waiting for minCount pods from a gang to appear in scheduling queue"
    )
    too_few_places = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))

    def registrations(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(POD.resource, Action.ADD), self.pod_appeared, self.of_pods()),
            Registration(
                Trigger(POD_GROUP.resource, Action.ADD), self._group_appeared, self.of_objects()
            ),
            Registration(
                Trigger(COMPOSITE_POD_GROUP.resource, Action.ADD),
                self._group_appeared,
                self.of_objects(),
            ),
        )

    def extra_events(self) -> Sequence[Registration]:
        return tuple(
            Registration(Trigger(kind.resource, action), self._group_changed, self.of_objects())
            for kind in (POD_GROUP, COMPOSITE_POD_GROUP)
            for action in (Action.UPDATE, Action.DELETE)
        )

    def unknown_group(self, name: str) -> str:
        return f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'

    def not_found(self, name: str) -> str:
        return f'podgroup.scheduling.k8s.io "{name}" not found'

    def ready(self, pods: GroupPods) -> int:
        return len(pods.placed) + len(pods.unplaced)

    def placed(self, pods: GroupPods) -> int:
        return len(pods.placed)

    def patience_s(self, gang: Gang) -> float:  # noqa: ARG002
        return PERMIT_TIMEOUT_S

    def _offered_by_object(self, old: PodGroup, new: PodGroup | None) -> tuple[str, ...]:
        return self._cluster.pod_groups.leaves_of(_key(old, new))

    def _group_appeared(self, pod: Pod, _old: Any, new: PodGroup) -> Hint:
        return Hint.QUEUE if self.is_with(pod, _key(new, new)) else Hint.SKIP

    def _group_changed(self, pod: Pod, old: PodGroup, new: PodGroup | None) -> Hint:
        """Queue if a minimum went down, or a tree lost a group, and enough pods exist."""
        if not self.is_with(pod, _key(old, new)) or not self.has_all_pods(self.key_of(pod)):
            return Hint.SKIP
        if new is None:
            return Hint.QUEUE
        before, now = old.spec.scheduling_policy.gang, new.spec.scheduling_policy.gang
        if before is None or now is None:
            return Hint.SKIP
        is_lower = now.min_count < before.min_count or now.min_group_count < before.min_group_count
        return Hint.QUEUE if is_lower else Hint.SKIP


def _key(old: PodGroup, new: PodGroup | None) -> str:
    """The key of a group; of a deleted one that of its parent, whose tree may be valid now."""
    if new is None:
        return parent_of(old)
    return (COMPOSITE if isinstance(new, CompositePodGroup) else "") + new.metadata.key
