"""Pod groups: the pods of each group, and which of them have a node.

A pod names its group in `spec.schedulingGroup.podGroupName`, permanently; or, for PodGroups of
scheduling.x-k8s.io, by a label. Every watched pod of any scheduler counts, whether or not the
PodGroup object exists. A place is a node, assumed or confirmed.

A waiting pod of a scheduler that this process does not serve gets no place here: it counts only
once that scheduler has placed it.

Bounds  one entry per pod of a group; a group without pods is dropped.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/cache (state of pod groups);
        kubernetes-sigs/scheduler-plugins pkg/coscheduling (the label)
"""

from collections.abc import Container, Iterator, Mapping
from heapq import merge
from typing import Final

import msgspec

from asched.core.cluster.group_trees import COMPOSITE, GroupTree, GroupTrees
from asched.core.model.kinds import COMPOSITE_POD_GROUP, COSCHEDULING_GROUP, Kind
from asched.core.model.pod import Pod
from asched.core.model.quantity import Quantity
from asched.core.model.workload import CoschedulingGroup, PodGroup

COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
#: Prefix of the keys of groups named by the label: no name has a colon.
COSCHEDULED: Final = "scheduling.x-k8s.io:"
#: Pods of a list sorted per step: about as long as applying one.
SORTED_AT_ONCE: Final = 32


def group_key(pod: Pod) -> str:
    """The key of the pod's group: "namespace/name", with the prefix COSCHEDULED for groups named by
    the label; empty without a group.
    """
    group = pod.spec.scheduling_group
    if group is not None:
        return f"{pod.metadata.namespace}/{group.pod_group_name}" if group.pod_group_name else ""
    labels = pod.metadata.labels
    if labels and (name := labels.get(COSCHEDULING_LABEL)):
        return f"{COSCHEDULED}{pod.metadata.namespace}/{name}"
    return ""


def is_coscheduled(key: str) -> bool:
    """Whether the key is that of a group of scheduling.x-k8s.io."""
    return key.startswith(COSCHEDULED)


def coscheduled_key(key: str) -> str:
    """The key of the group of a PodGroup of scheduling.x-k8s.io."""
    return COSCHEDULED + key


class Gang(msgspec.Struct, frozen=True):
    """`min_count` pods start together. `min_resources` are promised to all of them, and `timeout_s`
    limits how long they wait for each other, if the object sets it.
    """

    min_count: int
    min_resources: Mapping[str, Quantity] | None = None
    timeout_s: int | None = None


def gang_in(group: PodGroup | CoschedulingGroup) -> Gang | None:
    """The gang that a group's object defines; None if it does not require a common start."""
    if isinstance(group, CoschedulingGroup):
        spec = group.spec
        return Gang(max(spec.min_member, 1), spec.min_resources, spec.schedule_timeout_seconds)
    policy = group.spec.scheduling_policy.gang
    return Gang(policy.min_count) if policy is not None else None


class GroupPods:
    """The pods of one group by uid: with and without a place.

    Of the former, `held` wait at Permit for the rest of their gang, and `leaving` terminate; of the
    latter, `gated` may not be scheduled yet, and `foreign` name another scheduler. `moves`
    counts additions to `placed`, always at its end, and removals: if it grew as much as `placed`,
    no pod was removed.

    Sets are dicts without values: an empty one takes a third of the memory, and the garbage
    collector does not track it.
    """

    __slots__ = (
        "__weakref__",
        "foreign",
        "gated",
        "held",
        "leaving",
        "moves",
        "placed",
        "unplaced",
    )

    def __init__(self) -> None:
        self.placed: dict[str, Pod] = {}
        self.unplaced: dict[str, Pod] = {}
        self.held: dict[str, None] = {}
        self.leaving: dict[str, None] = {}
        self.gated: dict[str, None] = {}
        self.foreign: dict[str, None] = {}
        self.moves = 0

    @property
    def count(self) -> int:
        return len(self.placed) + len(self.unplaced)

    @property
    def present(self) -> int:
        """The number of pods that have a place, or may get one here."""
        return self.count - len(self.foreign)

    @property
    def staying(self) -> int:
        """The number of pods with a place that do not terminate."""
        return len(self.placed) - len(self.leaving)

    @property
    def ready(self) -> int:
        """The number of pods that have and keep a place, or may get one."""
        return self.staying + len(self.unplaced) - len(self.gated) - len(self.foreign)

    def put(self, pod: Pod, *, placed: bool, is_foreign: bool = False) -> None:
        """Add or move a pod; called several times per pod, so it avoids repeated checks."""
        metadata = pod.metadata
        uid = metadata.uid
        if placed:
            if uid not in self.placed:
                self.moves += 1
                self.unplaced.pop(uid, None)
                if self.gated:
                    self.gated.pop(uid, None)
                if self.foreign:
                    self.foreign.pop(uid, None)
            self.placed[uid] = pod
            if metadata.deletion_timestamp is not None:
                self.leaving[uid] = None
            return
        self.unplaced[uid] = pod
        is_gated = pod.spec.scheduling_gates or metadata.deletion_timestamp is not None
        for marks, is_marked in (
            (self.foreign, is_foreign),
            (self.gated, is_gated and not is_foreign),
        ):
            if is_marked:
                marks[uid] = None
            elif marks:
                marks.pop(uid, None)
        if uid in self.placed:
            del self.placed[uid]
            self.moves += 1
            self.held.pop(uid, None)
            self.leaving.pop(uid, None)

    def hold(self, uid: str) -> None:
        """A pod with a place waits for the rest of its gang."""
        if uid in self.placed:
            self.held[uid] = None

    def drop(self, uid: str) -> None:
        self.moves += self.placed.pop(uid, None) is not None
        self.unplaced.pop(uid, None)
        for marks in (self.held, self.leaving, self.gated, self.foreign):
            marks.pop(uid, None)


class PodGroups:
    """All groups with pods. Only the cluster moves pods; the gang plugin calls `hold` and
    `let_go`.
    `gangs`: by key, the gang defined by the object of a group, with or without pods: None if it
    does not require a common start. Groups without an object are missing.
    """

    def __init__(self) -> None:
        self._groups: dict[str, GroupPods] = {}
        #: by uid of a pod: its last group, which avoids computing the key; read-only
        self.of_pod: dict[str, GroupPods] = {}
        self.gangs: dict[str, Gang | None] = {}
        #: with the gate CompositePodGroup
        self.trees: GroupTrees | None = None
        self._served: Container[str] | None = None

    def form_trees(self) -> None:
        """Follow the parents of PodGroups from now on."""
        self.trees = GroupTrees(lambda key: self.get(key).present)

    def serve(self, names: Container[str]) -> Iterator[None]:
        """Pods of schedulers that are not among `names` are foreign from now on; before, none is.
        Yields after each waiting pod of a group.
        """
        self._served = names
        for key, group in self.all():
            for pod in tuple(group.unplaced.values()):
                if pod.uid in group.unplaced:
                    self._put(group, pod, placed=False)
                yield
            self._pods_moved(key)

    def _put(self, group: GroupPods, pod: Pod, *, placed: bool) -> None:
        served = self._served
        is_foreign = served is not None and pod.spec.scheduler_name not in served
        group.put(pod, placed=placed, is_foreign=is_foreign)

    def _pods_moved(self, key: str) -> None:
        if self.trees is not None:
            self.trees.pods_moved(key)

    def tree_of(self, key: str) -> GroupTree | None:
        """The tree of which a group is a part, or None."""
        return self.trees.of(key) if self.trees is not None else None

    def root_of(self, key: str) -> str:
        """The key of the group, or of the root of its tree; empty if an object is missing. May be
        called by another thread.
        """
        if key not in self.gangs:
            return ""
        return self.trees.root_of(key) if self.trees is not None else key

    def leaves_of(self, key: str) -> tuple[str, ...]:
        """The groups with pods that are scheduled together with this group, in order."""
        tree = self.tree_of(key)
        return (key,) if tree is None else tree.leaves

    def get(self, key: str) -> GroupPods:
        """The pods of a group, empty for an unknown group."""
        return self._groups.get(key) or GroupPods()

    def leaves_below(self, key: str) -> tuple[str, ...]:
        """The groups with pods of a group: itself, unless it is a composite."""
        tree = self.tree_of(key) if key.startswith(COMPOSITE) else None
        node = tree.nodes.get(key) if tree is not None else None
        return node.leaves if node is not None else (key,)

    def evicted_with(self, key: str) -> str:
        """The key of the highest group above that is evicted as a whole; else of the group."""
        return self.trees.whole_above(key) if self.trees is not None else key

    def __len__(self) -> int:
        return len(self._groups)

    def all(self) -> list[tuple[str, GroupPods]]:
        """(key, pods) of every group."""
        return list(self._groups.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def see(self, pod: Pod, old: Pod | None = None) -> None:
        """A pod is new, or a version replaces `old`: its group may have changed."""
        uid, is_placed = pod.metadata.uid, False
        if old is not None and (group := self.of_pod.get(uid)) is not None:
            if old.metadata.labels == pod.metadata.labels:
                self._put(group, pod, placed=uid in group.placed)
                return
            if group_key(old) != group_key(pod):
                is_placed = uid in group.placed
                self.lose(old)
        if not (key := group_key(pod)):
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupPods()
        self.of_pod[uid] = group
        self._put(group, pod, placed=is_placed or uid in group.placed)
        self._pods_moved(key)

    def lose(self, pod: Pod) -> None:
        """A pod was deleted."""
        if not (key := group_key(pod)) or (group := self._groups.get(key)) is None:
            return
        group.drop(pod.uid)
        self.of_pod.pop(pod.uid, None)
        if not group.count:
            del self._groups[key]
        self._pods_moved(key)

    def place(self, pod: Pod) -> None:
        """A pod got a place. A deleted pod is ignored."""
        uid = pod.metadata.uid
        group = self.of_pod.get(uid)
        if group is not None and (known := group.unplaced.get(uid)) is not None:
            was_foreign = uid in group.foreign
            group.put(known, placed=True)
            if was_foreign:
                self._pods_moved(group_key(known))

    def displace(self, pod: Pod) -> None:
        """A pod lost its place."""
        group = self.of_pod.get(pod.uid)
        if group is not None and (known := group.placed.get(pod.uid)) is not None:
            self._put(group, known, placed=False)
            if known.uid in group.foreign:
                self._pods_moved(group_key(known))

    def hold(self, pod: Pod) -> None:
        """A pod with a place waits for the rest of its gang."""
        group = self.of_pod.get(pod.uid)
        if group is not None:
            group.hold(pod.uid)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod with a place waits for the rest of its gang."""
        group = self.of_pod.get(pod.uid)
        return group is not None and pod.uid in group.held

    def let_go(self, key: str) -> tuple[str, ...]:
        """End the wait of a group's pods; returns the uids of those that waited."""
        group = self._groups.get(key)
        if group is None:
            return ()
        held = tuple(group.held)
        group.held.clear()
        return held

    def object_moved(
        self, kind: Kind, name: str, group: PodGroup | CoschedulingGroup | None
    ) -> None:
        """The object "namespace/name" of a group was added, changed or deleted."""
        key = coscheduled_key(name) if kind.resource == COSCHEDULING_GROUP.resource else name
        if kind.resource == COMPOSITE_POD_GROUP.resource:
            key = COMPOSITE + name
        if self.trees is not None and not isinstance(group, CoschedulingGroup):
            self.trees.object_moved(key, group)
        if key.startswith(COMPOSITE):
            return
        if group is None:
            self.gangs.pop(key, None)
        else:
            self.gangs[key] = gang_in(group)


def by_age(listed: Mapping[str, Pod]) -> Iterator[tuple[str, Pod] | None]:
    """Pods with a node, then waiting ones by creation time, then name; pods of a group count from
    the creation of its last pod. Sorted in parts, since a long list is applied step by step; None
    is a step without a pod.
    """
    waiting: list[str] = []
    complete: dict[str, str] = {}  # creation time of the last pod of a group
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
