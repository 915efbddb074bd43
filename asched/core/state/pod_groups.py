"""Pod groups: which pods say that they belong together, and which of them have a place.

A pod names its group in `spec.schedulingGroup.podGroupName`, once and for all. Every pod that the
watch shows counts, whoever schedules it, whether or not the PodGroup object exists. A place is a
node, assumed or told.

Bounds  one entry per pod of a group; a group without pods is forgotten.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/cache (state of pod groups)
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop

from asched.core.model.pod import Pod


def group_key(pod: Pod) -> str:
    """The "namespace/name" of the pod's group; empty if it belongs to none."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return ""
    return f"{pod.metadata.namespace}/{group.pod_group_name}"


class GroupPods:
    """The pods of one group by uid: those with a place, and those without.

    `held`: those of the former that wait at Permit for the rest of their gang.
    """

    __slots__ = ("held", "placed", "unplaced")

    def __init__(self) -> None:
        self.placed: dict[str, Pod] = {}
        self.unplaced: dict[str, Pod] = {}
        self.held: set[str] = set()

    @property
    def count(self) -> int:
        return len(self.placed) + len(self.unplaced)


class PodGroups:
    """All groups that have pods. Only the cluster moves pods; `hold` and `let_go` are the gang
    rule's.
    """

    def __init__(self) -> None:
        self._groups: dict[str, GroupPods] = {}

    def get(self, key: str) -> GroupPods:
        """The pods of a group, none if nobody knows it."""
        return self._groups.get(key) or GroupPods()

    def __len__(self) -> int:
        return len(self._groups)

    def see(self, pod: Pod) -> None:
        """A pod appeared, or has a new version."""
        if pod.spec.scheduling_group is None or not (key := group_key(pod)):
            return
        group = self._groups.setdefault(key, GroupPods())
        (group.placed if pod.uid in group.placed else group.unplaced)[pod.uid] = pod

    def lose(self, pod: Pod) -> None:
        """A pod is gone."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        group.placed.pop(pod.uid, None)
        group.unplaced.pop(pod.uid, None)
        group.held.discard(pod.uid)
        if not group.count:
            del self._groups[group_key(pod)]

    def place(self, pod: Pod) -> None:
        """A pod has a place now. One that is gone already counts no more."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        if group.unplaced.pop(pod.uid, None) is not None:
            group.placed[pod.uid] = pod

    def displace(self, pod: Pod) -> None:
        """A pod gave its place back."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        if group.placed.pop(pod.uid, None) is not None:
            group.unplaced[pod.uid] = pod
            group.held.discard(pod.uid)

    def hold(self, pod: Pod) -> None:
        """A pod with a place waits for the others."""
        group = self._of(pod)
        if group is not None and pod.uid in group.placed:
            group.held.add(pod.uid)

    def let_go(self, key: str) -> tuple[str, ...]:
        """Nobody of a group is held any more; the uids of those who were."""
        group = self._groups.get(key)
        if group is None or not group.held:
            return ()
        held = tuple(group.held)
        group.held.clear()
        return held

    def _of(self, pod: Pod) -> GroupPods | None:
        return self._groups.get(group_key(pod))


def by_age(listed: Mapping[str, Pod]) -> Iterator[tuple[str, Pod]]:
    """Pods that have a node, then those that wait: by creation, then name; those of a group count
    from its last one. A heap, as a long list is taken in step by step.
    """
    waiting: list[tuple[str, str, str]] = []
    complete: dict[str, str] = {}  # when the last pod of a group was made
    for key, pod in listed.items():
        if pod.spec.node_name:
            yield key, pod
            continue
        made = pod.metadata.creation_timestamp or ""
        waiting.append((made, pod.metadata.name, key))
        if group := group_key(pod):
            complete[group] = max(complete.get(group, ""), made)
    if complete:
        waiting = [(complete.get(group_key(listed[k]), t), name, k) for t, name, k in waiting]
    heapify(waiting)
    while waiting:
        key = heappop(waiting)[2]
        yield key, listed[key]
