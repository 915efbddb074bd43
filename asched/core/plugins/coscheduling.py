"""Coscheduling: pods of a PodGroup of scheduling.x-k8s.io start together, or not at all.

A pod belongs to the PodGroup that its label names; minMember says how many have to start together,
and minResources what has to be free for the whole group before the first of them starts
(`batch/groups/cycle.py`).

Rejects   a pod before it enters the queue, while its PodGroup or minMember of its pods are missing
          (gated and terminating ones, and waiting ones of other schedulers, do not count); a group
          while minResources are not free.
Orders    as PrioritySort: by priority, then by the time since which a pod, or its whole group,
          waits, then by age. One pod of a group brings the other pods of the group along
          (`batch/groups/attempt.py`).
Waits     a pod that has its place, within the cycle of its group, until minMember have theirs.
Retry     a pod of the same group appears, or the group appears or changes; for minResources, a pod
          goes or a node comes, if the free amounts then suffice.
Cost      two look-ups; for minResources a sum over the nodes after each change.
Source    kubernetes-sigs/scheduler-plugins pkg/coscheduling; that it plans a group as a whole is
          our own
"""

from collections.abc import Sequence
from typing import Any, Final

from asched import names
from asched.core.cluster.changes import ASSIGNED_POD, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pod_groups import Gang, GroupPods, coscheduled_key
from asched.core.cluster.shortages import Shortages
from asched.core.config.args import CoschedulingArgs
from asched.core.framework.points import QueueSortPlugin, Scope
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import Code, Status, unresolvable
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup
from asched.core.plugins.gang_scheduling import GangRule

POD_JOINS: Final = (
    Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
)
NODE_GROWS: Final = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_TAINT


class Coscheduling(GangRule, QueueSortPlugin):
    name = names.COSCHEDULING
    scope = Scope.NAMESPACE
    listed_at = frozenset({"preFilter", "postFilter", "reserve", "postBind"})
    is_coscheduled = True
    unknown_group = 'waiting for the PodGroup "{}" of scheduling.x-k8s.io to appear'
    not_found = 'podgroup.scheduling.x-k8s.io "{}" not found'
    too_few_pods = unresolvable("waiting for minMember pods of the PodGroup to appear")
    too_few_places = Status(
        Code.WAIT, ("waiting for minMember pods of the PodGroup to be scheduled",)
    )

    def __init__(self, args: CoschedulingArgs | None, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.args = args or CoschedulingArgs()
        self._shortages = cluster.singleton(Shortages)

    def registrations(self) -> Sequence[Registration]:
        shortages = self._shortages
        of_room = Concerns(self._sought, lambda *_: shortages.that_may_fit(), is_of_gang=True)
        return (
            Registration(Trigger(POD.resource, POD_JOINS), self.pod_appeared, self.of_pods()),
            Registration(
                Trigger(COSCHEDULING_GROUP.resource, Action.ADD | Action.UPDATE),
                self._group_changed,
                self.of_objects(),
            ),
            Registration(Trigger(ASSIGNED_POD, Action.DELETE), self._room_came, of_room),
            Registration(Trigger(NODE.resource, NODE_GROWS), self._room_came, of_room),
        )

    def sort_key(self, pod: Pod, timestamp_s: float) -> tuple[int, float]:
        return (-pod.priority, timestamp_s)

    def ready(self, pods: GroupPods) -> int:
        return pods.ready

    def placed(self, pods: GroupPods) -> int:
        return pods.staying

    def patience_s(self, gang: Gang) -> float:
        if gang.timeout_s is None:
            return float(self.args.permit_waiting_time_s)
        return float(gang.timeout_s)

    def _offered_by_object(self, _old: Any, new: CoschedulingGroup) -> tuple[str, ...]:
        return (coscheduled_key(new.metadata.key),)

    def _group_changed(self, pod: Pod, _old: Any, new: CoschedulingGroup) -> Hint:
        key = coscheduled_key(new.metadata.key)
        if self.key_of(pod) != key or not self.has_all_pods(key):
            return Hint.SKIP
        return Hint.QUEUE

    def _room_came(self, pod: Pod, _old: Any, _new: Any) -> Hint:
        key = self.key_of(pod)
        is_short = key in self._shortages
        return Hint.QUEUE if is_short and self._shortages.may_fit(key) else Hint.SKIP
