"""What the gang plugins have in common, whichever object defines the gang.

A pod stays outside the queue until its PodGroup and enough pods of it exist. A placed pod is
permitted as soon as enough pods of its gang are placed: one group cycle tries all of them, so that
this is settled within the cycle, and no pod keeps a place while the rest of its gang is still being
scheduled.
"""

from abc import abstractmethod
from typing import Any, ClassVar

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pod_groups import COSCHEDULED, Gang, GroupPods, group_key
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import Concerns, Hint, PermitPlugin, PreEnqueuePlugin
from asched.core.framework.status import SUCCESS, Status, failure, unresolvable
from asched.core.framework.waiting import WaitingPods
from asched.core.model.pod import Pod


class GangRule(PreEnqueuePlugin, PermitPlugin):
    awaits_pods = True
    #: Whether this plugin serves groups named by the label, or those of `schedulingGroup`.
    is_coscheduled: ClassVar[bool]
    too_few_pods: ClassVar[Status]
    too_few_places: ClassVar[Status]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting = cluster.singleton(WaitingPods.of)

    @abstractmethod
    def unknown_group(self, name: str) -> str:
        """Message for a pod whose PodGroup does not exist."""

    @abstractmethod
    def not_found(self, name: str) -> str:
        """The same once the pod has a place: the error of the lookup."""

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
            return unresolvable(self.unknown_group(key.rpartition("/")[2]))
        if self._is_complete(key, gangs[key]):
            return SUCCESS
        tree = self._cluster.pod_groups.tree_of(key)
        if tree is None:
            return self.too_few_pods
        if tree.fault:
            return unresolvable(tree.fault)
        name = tree.root.group.metadata.name
        return unresolvable(f'waiting for composite pod group "{name}" tree to meet quorum')

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:  # noqa: ARG002
        key, groups = self.key_of(pod.pod), self._cluster.pod_groups
        if not key:
            return SUCCESS, 0.0
        if key not in groups.gangs:
            name = key.rpartition("/")[2]
            text = f"failed to get podGroup {key.removeprefix(COSCHEDULED)}: {self.not_found(name)}"
            return failure(text), 0.0
        gang = groups.gangs[key]
        if gang is None:
            return SUCCESS, 0.0
        pods = groups.get(key)
        if self.placed(pods) < gang.min_count:
            pods.hold(pod.pod.metadata.uid)
            return self.too_few_places, self.patience_s(gang)
        for uid in groups.let_go(key):
            mate = self._waiting.get(uid)
            if mate is not None:
                mate.allow(self.name)
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
