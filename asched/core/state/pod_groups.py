"""Pod groups: which pods say that they belong together, and which of them have a place.

A pod names its group in `spec.schedulingGroup.podGroupName`, once and for all; or, for PodGroups of
scheduling.x-k8s.io, in a label. Every pod that the watch shows counts, whoever schedules it,
whether or not the PodGroup object exists. A place is a node, assumed or told.

Bounds  one entry per pod of a group; a group without pods is forgotten.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/cache (state of pod groups);
        kubernetes-sigs/scheduler-plugins pkg/coscheduling (the label)
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Final

import msgspec

from asched.core.model.kinds import COSCHEDULING_GROUP, Kind
from asched.core.model.pod import Pod
from asched.core.model.quantity import Quantity
from asched.core.model.workload import CoschedulingGroup, PodGroup

COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
#: Before keys of groups that are told by the label: no name has a colon.
COSCHEDULED: Final = "scheduling.x-k8s.io:"
#: Pods of a list that are sorted in one step: as long as it takes to apply one.
SORTED_AT_ONCE: Final = 32


def group_key(pod: Pod) -> str:
    """The key of the pod's group: "namespace/name", for groups told by the label behind
    COSCHEDULED; empty if it belongs to none.
    """
    group = pod.spec.scheduling_group
    if group is not None:
        return f"{pod.metadata.namespace}/{group.pod_group_name}" if group.pod_group_name else ""
    labels = pod.metadata.labels
    if labels and (name := labels.get(COSCHEDULING_LABEL)):
        return f"{COSCHEDULED}{pod.metadata.namespace}/{name}"
    return ""


def is_coscheduled(key: str) -> bool:
    """Whether it is the key of a group of scheduling.x-k8s.io."""
    return key.startswith(COSCHEDULED)


def coscheduled_key(key: str) -> str:
    """The key of the group that a PodGroup of scheduling.x-k8s.io makes."""
    return COSCHEDULED + key


class Gang(msgspec.Struct, frozen=True):
    """`min_count` of the pods start together. `min_resources` are promised to all of them, and
    `timeout_s` is how long they wait for each other at most, where the object says so.
    """

    min_count: int
    min_resources: Mapping[str, Quantity] | None = None
    timeout_s: int | None = None


def gang_in(group: PodGroup | CoschedulingGroup) -> Gang | None:
    """What the object of a group says; None if it binds nobody together."""
    if isinstance(group, CoschedulingGroup):
        spec = group.spec
        return Gang(max(spec.min_member, 1), spec.min_resources, spec.schedule_timeout_seconds)
    policy = group.spec.scheduling_policy.gang
    return Gang(policy.min_count) if policy is not None else None


class GroupPods:
    """The pods of one group by uid: those with a place, and those without.

    Of the former, `held` wait at Permit for the rest of their gang, and `leaving` terminate; of the
    latter, `gated` may not be scheduled yet. `moves` counts who came to those with a place, always
    at their end, and who left them: where it grew as they did, nobody left.

    Sets are dicts without values: an empty one takes a third of the memory, and the garbage
    collector does not look at it.
    """

    __slots__ = ("__weakref__", "gated", "held", "leaving", "moves", "placed", "unplaced")

    def __init__(self) -> None:
        self.placed: dict[str, Pod] = {}
        self.unplaced: dict[str, Pod] = {}
        self.held: dict[str, None] = {}
        self.leaving: dict[str, None] = {}
        self.gated: dict[str, None] = {}
        self.moves = 0

    @property
    def count(self) -> int:
        return len(self.placed) + len(self.unplaced)

    @property
    def staying(self) -> int:
        """How many have a place and keep it."""
        return len(self.placed) - len(self.leaving)

    @property
    def ready(self) -> int:
        """How many have a place and keep it, or may be given one."""
        return self.staying + len(self.unplaced) - len(self.gated)

    def put(self, pod: Pod, *, placed: bool) -> None:
        """Each pod comes here several times, so that nothing is asked twice."""
        metadata = pod.metadata
        uid = metadata.uid
        if placed:
            if uid not in self.placed:
                self.moves += 1
                self.unplaced.pop(uid, None)
                if self.gated:
                    self.gated.pop(uid, None)
            self.placed[uid] = pod
            if metadata.deletion_timestamp is not None:
                self.leaving[uid] = None
            return
        self.unplaced[uid] = pod
        if pod.spec.scheduling_gates or metadata.deletion_timestamp is not None:
            self.gated[uid] = None
        elif self.gated:
            self.gated.pop(uid, None)
        if uid in self.placed:
            del self.placed[uid]
            self.moves += 1
            self.held.pop(uid, None)
            self.leaving.pop(uid, None)

    def hold(self, uid: str) -> None:
        """One with a place waits for the others."""
        if uid in self.placed:
            self.held[uid] = None

    def drop(self, uid: str) -> None:
        self.moves += self.placed.pop(uid, None) is not None
        self.unplaced.pop(uid, None)
        for marks in (self.held, self.leaving, self.gated):
            marks.pop(uid, None)


class PodGroups:
    """All groups that have pods. Only the cluster moves pods; `hold` and `let_go` are the gang
    rule's.

    `gangs`: by key, what the object of a group says, whether or not it has pods: None if that binds
    nobody together. Missing are groups without an object.
    """

    def __init__(self) -> None:
        self._groups: dict[str, GroupPods] = {}
        #: by uid of a pod: the group in which it was seen, which asks for no key
        self._of: dict[str, GroupPods] = {}
        self.gangs: dict[str, Gang | None] = {}

    def get(self, key: str) -> GroupPods:
        """The pods of a group, none if nobody knows it."""
        return self._groups.get(key) or GroupPods()

    def __len__(self) -> int:
        return len(self._groups)

    def all(self) -> list[tuple[str, GroupPods]]:
        """(key, pods) of every group."""
        return list(self._groups.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def see(self, pod: Pod, old: Pod | None = None) -> None:
        """A pod appeared, or has a new version in place of `old`: it may have changed its group."""
        uid, is_placed = pod.metadata.uid, False
        if old is not None and (group := self._of.get(uid)) is not None:
            if old.metadata.labels == pod.metadata.labels:
                group.put(pod, placed=uid in group.placed)
                return
            if group_key(old) != group_key(pod):
                is_placed = uid in group.placed
                self.lose(old)
        if not (key := group_key(pod)):
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupPods()
        self._of[uid] = group
        group.put(pod, placed=is_placed or uid in group.placed)

    def lose(self, pod: Pod) -> None:
        """A pod is gone."""
        if not (key := group_key(pod)) or (group := self._groups.get(key)) is None:
            return
        group.drop(pod.uid)
        self._of.pop(pod.uid, None)
        if not group.count:
            del self._groups[key]

    def place(self, pod: Pod) -> None:
        """A pod has a place now. One that is gone already counts no more."""
        uid = pod.metadata.uid
        group = self._of.get(uid)
        if group is not None and (known := group.unplaced.get(uid)) is not None:
            group.put(known, placed=True)

    def displace(self, pod: Pod) -> None:
        """A pod gave its place back."""
        group = self._of.get(pod.uid)
        if group is not None and (known := group.placed.get(pod.uid)) is not None:
            group.put(known, placed=False)

    def hold(self, pod: Pod) -> None:
        """A pod with a place waits for the others."""
        group = self._of.get(pod.uid)
        if group is not None:
            group.hold(pod.uid)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod with a place waits for the others."""
        group = self._of.get(pod.uid)
        return group is not None and pod.uid in group.held

    def let_go(self, key: str) -> tuple[str, ...]:
        """Nobody of a group is held any more; the uids of those who were."""
        group = self._groups.get(key)
        if group is None:
            return ()
        held = tuple(group.held)
        group.held.clear()
        return held

    def object_moved(
        self, kind: Kind, name: str, group: PodGroup | CoschedulingGroup | None
    ) -> None:
        """The object "namespace/name" that makes a group appeared, changed or went."""
        key = coscheduled_key(name) if kind.resource == COSCHEDULING_GROUP.resource else name
        if group is None:
            self.gangs.pop(key, None)
        else:
            self.gangs[key] = gang_in(group)


def by_age(listed: Mapping[str, Pod]) -> Iterator[tuple[str, Pod] | None]:
    """Pods that have a node, then those that wait: by creation, then name; those of a group count
    from its last one. Sorted in parts, as a long list is taken in step by step; None is a step
    without a pod.
    """
    waiting: list[str] = []
    complete: dict[str, str] = {}  # when the last pod of a group was made
    for key, pod in listed.items():
        if pod.spec.node_name:
            yield key, pod
            continue
        waiting.append(key)
        if group := group_key(pod):
            complete[group] = max(complete.get(group, ""), pod.metadata.creation_timestamp or "")
        if not len(waiting) % SORTED_AT_ONCE:
            yield None

    def age(key: str) -> tuple[str, str, str]:
        pod = listed[key]
        made = complete.get(group_key(pod)) if complete else None
        if made is None:
            made = pod.metadata.creation_timestamp or ""
        return made, pod.metadata.name, key

    parts: list[list[tuple[str, str, str]]] = []
    for start in range(0, len(waiting), SORTED_AT_ONCE):
        parts.append(sorted(map(age, waiting[start : start + SORTED_AT_ONCE])))
        yield None
    for _, _, key in merge(*parts):
        yield key, listed[key]
