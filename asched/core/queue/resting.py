"""Pods at rest: rejected or gated, waiting for a change that could help them.

They are kept in groups of equal rejectors, so that a change nobody in a group registered for is
dismissed with one look at the group, and inside a group by class, so that equal pods are judged
once.

Bounds  one entry per resting pod; empty groups and classes go at once.
"""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from asched.core.queue.queued import QueuedPod


class GroupKey(NamedTuple):
    profile: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]
    gated_by: str
    also_blamed: frozenset[str] = frozenset()


class Group:
    """Pods with equal rejectors: class -> pods by key. A pod without a class is its own class."""

    __slots__ = ("classes", "key", "rejectors")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.rejectors = key.rejected_by | key.pending_on
        self.classes: dict[Hashable, dict[str, QueuedPod]] = {}


class RestingPods:
    def __init__(self) -> None:
        self._groups: dict[GroupKey, Group] = {}
        self.unschedulable_count = 0
        self.gated_count = 0

    def __iter__(self) -> Iterator[QueuedPod]:
        for group in self._groups.values():
            for pods in group.classes.values():
                yield from pods.values()

    def __len__(self) -> int:
        return self.unschedulable_count + self.gated_count

    def groups(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def add(self, queued: QueuedPod) -> None:
        assert queued.group is None, f"{queued} rests already"
        key = GroupKey(
            queued.pod.spec.scheduler_name,
            queued.rejected_by,
            queued.pending_on,
            queued.gated_by,
            queued.also_blamed,
        )
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
        group.classes.setdefault(_class_of(queued), {})[queued.key] = queued
        queued.group = group
        self._count(group, 1)

    def discard(self, queued: QueuedPod) -> None:
        """Call before the pod's class or rejectors change."""
        group = queued.group
        assert group is not None, f"{queued} does not rest"
        pods = group.classes[_class_of(queued)]
        del pods[queued.key]
        if not pods:
            del group.classes[_class_of(queued)]
        if not group.classes:
            del self._groups[group.key]
        queued.group = None
        self._count(group, -1)

    def _count(self, group: Group, by: int) -> None:
        if group.key.gated_by:
            self.gated_count += by
        else:
            self.unschedulable_count += by


def _class_of(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else queued.class_key
