"""Preemptions under way: their preemptors, and the pods that are held back meanwhile.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go
        (IsPodRunningPreemption, IsPodGroupRunningPreemption)
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import object_of
from asched.core.cluster.group_trees import COMPOSITE
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.spared_nodes import SparedNodes
from asched.core.framework.expecting import Expecting
from asched.core.model.arrays import I64
from asched.core.model.kinds import COMPOSITE_POD_GROUP, POD_GROUP
from asched.core.model.meta import ObjectReference
from asched.core.model.pod import Pod
from asched.core.model.workload import CompositePodGroup, PodGroup

#: Preemptions under way before a sweep for those whose last victim has gone unnoticed.
SWEEP_MIN: Final = 256
#: For so long nothing is evicted on a node for a pod after a budget kept one of its victims there:
#: pods that lose their nominations would wake each other without an end.
KEPT_S: Final = 60.0
#: Pods for which that is stored.
KEPT_MAX: Final = 1024
#: Where a group makes room, for messages.
CLUSTER: Final = "cluster"
_OF_GROUP: Final = "podgroup/"
NO_ROWS: Final[I64] = np.zeros(0, dtype=np.int64)


class Preemptor(NamedTuple):
    """The pod or group for which pods are evicted. `kind` and `place` are words of messages; `node`
    is where room is made, None for a group. `held`: keys and uids of all pods that wait meanwhile:
    those of a group, and an entry for pods that join it. `scheduler_name`: what it names.
    """

    kind: str
    uid: str
    place: str
    node: str | None
    priority: int
    held: tuple[tuple[str, str], ...]
    scheduler_name: str
    related: ObjectReference | None = None

    @classmethod
    def of_pod(cls, pod: Pod, node: str) -> Self:
        held = ((pod.key, pod.uid),)
        return cls("pod", pod.uid, node, node, pod.priority, held, pod.spec.scheduler_name)

    @classmethod
    def of_group(cls, group: PodGroup, pods: Sequence[Pod]) -> Self:
        metadata, is_tree = group.metadata, isinstance(group, CompositePodGroup)
        kind, prefix = (COMPOSITE_POD_GROUP, COMPOSITE) if is_tree else (POD_GROUP, "")
        own = (_OF_GROUP + prefix + metadata.key, metadata.uid)
        held, name = (own, *((pod.key, pod.uid) for pod in pods)), kind.name.lower()
        by, related = pods[0].spec.scheduler_name, kind.reference(metadata)
        return cls(name, metadata.uid, CLUSTER, None, group.priority, held, by, related)


class UnderWay:
    """Preemptors whose victims are being evicted or terminate. The last victim is known once it is
    evicted; the entry of a preemptor is dropped with its pod.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: read-only, as the next: preemptor's key -> uid, while several victims are left
        self.busy: dict[str, str] = {}
        #: preemptor's key -> uid, its last victim
        self.waiting: dict[str, tuple[str, Pod]] = {}
        self._expecting = Expecting()  # preemptors whose last victim still exists, and its node
        self._for: dict[str, set[str]] = {}  # last victim's uid -> preemptors' keys
        self._sweep_at = SWEEP_MIN
        self._kept = SparedNodes(cluster, KEPT_MAX, KEPT_S)

    def start(self, preemptor: Preemptor) -> None:
        for key, uid in preemptor.held:
            self._forget(key)
            self.busy[key] = uid
            if preemptor.node is not None:
                self._expecting.put(key, preemptor.node)

    def last(self, preemptor: Preemptor, victim: Pod) -> None:
        """Record that only this victim is left."""
        for key, uid in preemptor.held:
            if self.busy.get(key) == uid:
                del self.busy[key]
                self.waiting[key] = (uid, victim)
                self._for.setdefault(victim.uid, set()).add(key)
        if len(self.waiting) >= self._sweep_at:
            self._sweep()

    def end(self, preemptor: Preemptor, *, is_deleted: bool) -> None:
        """Record that all writes are done. If the last victim was deleted, wait until the watch
        shows it: an earlier attempt would evict it again.
        """
        for key, uid in preemptor.held:
            if self.busy.get(key) == uid:
                del self.busy[key]
                self._expecting.drop(key)
            if self.waiting.get(key, ("", None))[0] == uid and not is_deleted:
                self._forget(key)

    def kept_by_budget(self, uid: str, node: str) -> None:
        """Record that a budget keeps a victim on a node, by the uid of the preemptor."""
        self._kept.add(uid, node)

    def kept_rows(self, pod: Pod) -> I64:
        """The rows where budgets keep victims of the pod for now."""
        return self._kept.rows(pod.uid) if self._kept else NO_ROWS

    def holds_back(self, pod: Pod) -> bool:
        """Whether an attempt at a pod that is scheduled by itself would come too early."""
        return self._holds(pod.key, pod.uid)

    def holds_group_back(self, pod: Pod) -> bool:
        """The same for a pod that is scheduled with its group."""
        if pod.spec.scheduling_group is None:
            return False
        key = group_key(pod)
        tree = self._cluster.pod_groups.tree_of(key)
        if tree is not None and not tree.fault:
            key = tree.root.key
        group: PodGroup | None = object_of(self._cluster, key)
        return group is not None and self._holds(_OF_GROUP + key, group.metadata.uid)

    def _holds(self, key: str, uid: str) -> bool:
        if self.busy.get(key) == uid:
            return True
        held, victim = self.waiting.get(key, ("", None))
        if held != uid or victim is None:
            return False
        now = self._now(victim)
        return now is not None and not now.is_terminating

    def holding(self) -> Collection[str]:
        """Keys of pods that are held back (or were, before they were deleted and created again)."""
        return self.busy

    def expecting(self, departed: Pod) -> Expecting:
        """Preemptors whose last victim still exists, and the nodes that their victims leave."""
        for key in tuple(self._for.get(departed.uid, ())):
            self._forget(key)
        return self._expecting

    def _forget(self, key: str) -> None:
        _, victim = self.waiting.pop(key, ("", None))
        self._expecting.drop(key)
        if victim is not None:
            preemptors = self._for[victim.uid]
            preemptors.discard(key)
            if not preemptors:
                del self._for[victim.uid]

    def _sweep(self) -> None:
        """Drop entries whose last victim is gone."""
        for key in [key for key, (_, victim) in self.waiting.items() if self._now(victim) is None]:
            self._forget(key)
        self._sweep_at = max(SWEEP_MIN, 2 * len(self.waiting))

    def _now(self, victim: Pod) -> Pod | None:
        """The newest version of the victim; None if it is gone, or waits for a node again."""
        return standing(victim, self._cluster)


def standing(victim: Pod, cluster: Cluster) -> Pod | None:
    """The newest version of a victim that still exists and has a node: a victim whose binding
    failed meanwhile uses no room and need not be evicted.
    """
    now = cluster.pods_seen.get(victim.key)
    if now is None or now.uid != victim.uid:
        return None
    return now if now.spec.node_name or cluster.is_assumed(now.uid) else None
