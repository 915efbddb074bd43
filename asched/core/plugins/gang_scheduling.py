"""GangScheduling: pods of a PodGroup of scheduling.k8s.io start together, or not at all.

A pod belongs to the PodGroup that it names; the group's gang policy says how many of its pods
(minCount) have to start together. A group without that policy is not handled here.

Rejects   a pod before it enters the queue, while its PodGroup or minCount of its pods are missing
          (waiting pods of other schedulers do not count).
Waits     a pod that has its place, until minCount pods of the gang have theirs; the pod that
          completes the gang allows the waiting ones. After PERMIT_TIMEOUT_S it gives its place
          back.
Retry     a pod of the same group appears, or the group does; its minCount goes down (since 1.37).
Trees     with the gate CompositePodGroup a PodGroup with a parent waits until its tree is complete,
          and the same changes of any group of its tree retry its pods.
Cost      two lookups; one step for each pod of a gang that waits.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/gangscheduling
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.group_trees import COMPOSITE, parent_of
from asched.core.cluster.pod_groups import COSCHEDULED, Gang, GroupPods, group_key
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import PermitPlugin, PreEnqueuePlugin, Scope
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import SUCCESS, Code, Status, failure, unresolvable
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import COMPOSITE_POD_GROUP, POD, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.model.workload import CompositePodGroup, PodGroup


class GangRule(PreEnqueuePlugin, PermitPlugin):
    """The rule of both gang plugins, whichever object defines the gang. One group cycle tries all
    pods of a gang, so that no pod keeps a place while the rest is still being scheduled.
    """

    awaits_pods = True
    #: Whether this plugin serves groups named by the label, or those of `schedulingGroup`.
    is_coscheduled: ClassVar[bool]
    #: Messages for a pod whose PodGroup of the name {} does not exist, at PreEnqueue and at Permit.
    unknown_group: ClassVar[str]
    not_found: ClassVar[str]
    too_few_pods: ClassVar[Status]
    too_few_places: ClassVar[Status]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting = cluster.singleton(WaitingPods.of)

    @abstractmethod
    def ready(self, pods: GroupPods) -> int:
        """Number of pods that count towards the gang."""

    @abstractmethod
    def placed(self, pods: GroupPods) -> int:
        """Number of them that are placed."""

    @abstractmethod
    def patience_s(self, gang: Gang) -> float:
        """How long a placed pod waits for the rest of its gang."""

    def key_of(self, pod: Pod) -> str:
        """Key of the pod's group; empty if another plugin serves the group."""
        is_ours = (pod.spec.scheduling_group is None) is self.is_coscheduled
        return group_key(pod) if is_ours else ""

    def pre_enqueue(self, pod: Pod) -> Status:
        key = self.key_of(pod)
        if not key:
            return SUCCESS
        gangs = self._cluster.pod_groups.gangs
        if key not in gangs:
            return unresolvable(self.unknown_group.format(key.rpartition("/")[2]))
        if self._is_complete(key, gangs[key]):
            return SUCCESS
        tree = self._cluster.pod_groups.tree_of(key)
        if tree is None:
            return self.too_few_pods
        if tree.fault:
            return unresolvable(tree.fault)
        name = tree.root.group.metadata.name
        return unresolvable(f'waiting for composite pod group "{name}" tree to meet quorum')

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        key, groups = self.key_of(pod.pod), self._cluster.pod_groups
        if not key:
            return SUCCESS, 0.0
        if key not in groups.gangs:
            why = self.not_found.format(key.rpartition("/")[2])
            text = f"failed to get podGroup {key.removeprefix(COSCHEDULED)}: {why}"
            return failure(text), 0.0
        gang = groups.gangs[key]
        if gang is None:
            return SUCCESS, 0.0
        pods = groups.get(key)
        if self.placed(pods) < gang.min_count:
            pods.hold(pod.pod.metadata.uid)
            return self.too_few_places, self.patience_s(gang)
        for uid in groups.let_go(key):
            waiting = self._waiting.get(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return SUCCESS, 0.0

    def has_all_pods(self, key: str) -> bool:
        return self._is_complete(key, self._cluster.pod_groups.gangs.get(key))

    def _is_complete(self, key: str, gang: Gang | None) -> bool:
        tree = self._cluster.pod_groups.tree_of(key)
        if tree is not None:
            return tree.is_complete
        return gang is None or self.ready(self._cluster.pod_groups.get(key)) >= gang.min_count

    def is_with(self, pod: Pod, key: str) -> bool:
        """Whether the pod is tried together with the pods of a group."""
        own, groups = self.key_of(pod), self._cluster.pod_groups
        if own == key or not own:
            return bool(own)
        tree = groups.tree_of(key)
        return tree is not None and groups.tree_of(own) is tree

    def of_pods(self) -> Concerns:
        """Which changes of pods concern which waiting pods, for `pod_appeared`."""
        return Concerns(self._sought, self._offered_by_pod, is_of_gang=True)

    def of_objects(self) -> Concerns:
        """The same for changes of a group's object."""
        return Concerns(self._sought, self._offered_by_object, is_of_gang=True)

    @abstractmethod
    def _offered_by_object(self, old: Any, new: Any) -> tuple[str, ...]:
        """The key of the group that the object defines."""

    def _sought(self, pod: Pod) -> tuple[str, ...]:
        key = self.key_of(pod)
        return (key,) if key else ()

    def _offered_by_pod(self, _old: Any, new: Pod) -> tuple[str, ...]:
        key = self.key_of(new)
        if not key:  # called for each pod that appears
            return ()
        gangs = self._cluster.pod_groups.gangs
        if key not in gangs or not self._is_complete(key, gangs[key]):
            return ()
        return self._cluster.pod_groups.leaves_of(key)

    def pod_appeared(self, pod: Pod, _old: Any, new: Pod) -> Hint:
        """Queue if the new pod completes the group: an incomplete group would be stopped at
        PreEnqueue.
        """
        key = self.key_of(pod)
        if key not in self._cluster.pod_groups.gangs or not self.is_with(pod, group_key(new)):
            return Hint.SKIP
        return Hint.QUEUE if self.has_all_pods(key) else Hint.SKIP


#: How long a pod with a place waits for the rest of its gang (upstream's permitTimeoutDuration).
PERMIT_TIMEOUT_S: Final = 5 * 60.0


class GangScheduling(GangRule):
    name = names.GANG_SCHEDULING
    scope = Scope.NAMESPACE
    is_coscheduled = False
    unknown_group = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
    not_found = 'podgroup.scheduling.k8s.io "{}" not found'
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

    def ready(self, pods: GroupPods) -> int:
        return pods.present

    def placed(self, pods: GroupPods) -> int:
        return len(pods.placed)

    def patience_s(self, gang: Gang) -> float:
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
