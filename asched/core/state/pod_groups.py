"""Pod groups: which pods say that they belong together, and which of them have a place.

A pod names its group in `spec.schedulingGroup.podGroupName`, once and for all. Every pod that the
watch shows counts, whoever schedules it, whether or not the PodGroup object exists. A place is a
node, assumed or told.

Bounds  one entry per pod of a group; a group without pods is forgotten.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/cache (state of pod groups)
"""

from asched.core.model.pod import Pod


def group_key(pod: Pod) -> str:
    """The "namespace/name" of the pod's group; empty if it belongs to none."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return ""
    return f"{pod.metadata.namespace}/{group.pod_group_name}"


class GroupPods:
    """The pods of one group by uid: those with a place, and those without.

    `turned_away`: those of the latter whose last attempt failed.
    """

    __slots__ = ("placed", "turned_away", "unplaced")

    def __init__(self) -> None:
        self.placed: dict[str, Pod] = {}
        self.unplaced: dict[str, Pod] = {}
        self.turned_away: dict[str, Pod] = {}

    @property
    def count(self) -> int:
        return len(self.placed) + len(self.unplaced)


class PodGroups:
    """All groups that have pods. Only the cluster calls what changes something."""

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
        group.turned_away.pop(pod.uid, None)
        if not group.count:
            del self._groups[group_key(pod)]

    def place(self, pod: Pod) -> None:
        """A pod has a place now. One that is gone already counts no more."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        if group.unplaced.pop(pod.uid, None) is not None:
            group.turned_away.pop(pod.uid, None)
            group.placed[pod.uid] = pod

    def displace(self, pod: Pod) -> None:
        """A pod gave its place back."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        if group.placed.pop(pod.uid, None) is not None:
            group.unplaced[pod.uid] = pod

    def turn_away(self, pod: Pod) -> None:
        """An attempt to place the pod failed."""
        if pod.spec.scheduling_group is None or (group := self._of(pod)) is None:
            return
        if pod.uid in group.unplaced:
            group.turned_away[pod.uid] = pod

    def _of(self, pod: Pod) -> GroupPods | None:
        return self._groups.get(group_key(pod))
