"""Unschedulable pods: rejected or gated, waiting for a change that could help them.

They are stored in groups of equal rejectors, so that a change that no plugin of a group registered
for is skipped with one look-up, and inside a group by class, so that the hints are called once for
equal pods, which are woken one after the other (`due.py`).

Bounds  one entry per unschedulable pod, and two in heaps for equal pods; empty groups and classes
        are dropped at once.
"""

from collections.abc import Hashable, Iterator
from itertools import count
from typing import NamedTuple

from asched.core.model.pod import Pod
from asched.core.queue.concern_indexes import ConcernIndexes
from asched.core.queue.due import Due
from asched.core.queue.equivalence import DueReason, EquivalenceClass, Order, class_of
from asched.core.queue.queued import QueuedPod


class GroupKey(NamedTuple):
    profile: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]
    gated_by: str


class RejectorGroup:
    """Pods with equal rejectors, by class. A pod without a class is its own class."""

    __slots__ = ("classes", "concerned", "key", "rejectors")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.rejectors = key.rejected_by | key.pending_on
        self.classes: dict[Hashable, EquivalenceClass] = {}
        self.concerned = ConcernIndexes()


class UnschedulablePods:
    def __init__(self, order: Order = lambda queued: queued.timestamp_s) -> None:
        self._order = order
        self._groups: dict[GroupKey, RejectorGroup] = {}
        self._in_order: tuple[RejectorGroup, ...] | None = ()
        self.due = Due(order)
        self._numbers = count(1)
        #: of all pods, and of those that a gate stops
        self.count = self.gated_count = 0

    def __iter__(self) -> Iterator[QueuedPod]:
        for group in self._groups.values():
            for equals in group.classes.values():
                yield from equals

    def __len__(self) -> int:
        return self.count

    def groups(self) -> tuple[RejectorGroup, ...]:
        """The same tuple until one comes or goes."""
        if self._in_order is None:
            self._in_order = tuple(self._groups.values())
        return self._in_order

    def add(self, queued: QueuedPod) -> EquivalenceClass:
        assert queued.rejector_group is None, f"{queued} rests already"
        key = _group_key(queued)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = RejectorGroup(key)
            self._in_order = None
        class_key = _class_of(queued)
        equals = group.classes.get(class_key)
        if equals is None:
            is_gated = bool(queued.gated_by)
            equals = EquivalenceClass(self._order, next(self._numbers), is_gated=is_gated)
            group.classes[class_key] = equals
            group.concerned.add(equals, queued)
        equals.add(queued, was_tried=equals.due is not None)
        queued.rejector_group = group
        self._count(group, 1)
        return equals

    def discard(self, queued: QueuedPod) -> EquivalenceClass:
        """Remove a pod; to be called before its class changes."""
        group = group_of(queued)
        class_key = _class_of(queued)
        equals = group.classes[class_key]
        equals.discard(queued)
        if equals.due is not None:
            self.due.moved(equals)
        if not (equals.in_turn or equals.apart):
            self.due.drop(equals)
            del group.classes[class_key]
            group.concerned.discard(equals)
            if not group.classes:
                del self._groups[group.key]
                self._in_order = None
        queued.rejector_group = None
        self._count(group, -1)
        return equals

    def refile(self, queued: QueuedPod) -> None:
        """Move a pod whose rejectors may have changed to its group; it stays due if it was."""
        if group_of(queued).key == _group_key(queued):
            return
        due = equals_of(queued).due
        self.discard(queued)
        self._follow(queued, due)

    def knows(self, queued: QueuedPod, rejectors: frozenset[str]) -> bool:
        """Whether pods of this pod's class wait that these plugins rejected."""
        key = GroupKey(queued.profile, rejectors, frozenset(), "")
        group = self._groups.get(key)
        return group is not None and _class_of(queued) in group.classes

    def renew(self) -> None:
        """Use a new order; requires that no pod waits, since old keys cannot be compared to new."""
        assert not self._groups, "pods wait in the old order"
        self.due = Due(self._order)

    def replace(
        self, queued: QueuedPod, pod: Pod, class_key: Hashable | None, gang: str = ""
    ) -> bool:
        """Store the new version of a pod. Returns whether the pod was due and has changed its
        class, so that it has to be tried.
        """
        due = equals_of(queued).due
        self.discard(queued)
        old_class = queued.class_key, queued.gang
        queued.pod, queued.class_key, queued.gang = pod, class_key, gang
        if due is not None and (old_class != (class_key, gang) or queued.stands_apart):
            self.add(queued)
            return True
        self._follow(queued, due)
        return False

    def _follow(self, queued: QueuedPod, due: DueReason | None) -> None:
        """Add a pod to its class, and make the class due as it was; gated pods are never due."""
        equals = self.add(queued)
        if due is None or queued.gated_by or queued.key not in equals.in_turn:
            return
        if equals.due is None:
            self.due.add(equals, due)
        else:
            equals.allow_dry_runs(queued)
            self.due.moved(equals)

    def _count(self, group: RejectorGroup, by: int) -> None:
        self.count += by
        if group.key.gated_by:
            self.gated_count += by


def equals_of(queued: QueuedPod) -> EquivalenceClass:
    """The class of an unschedulable pod in its group."""
    return group_of(queued).classes[_class_of(queued)]


def group_of(queued: QueuedPod) -> RejectorGroup:
    """The group of an unschedulable pod."""
    assert isinstance(queued.rejector_group, RejectorGroup), f"{queued} does not rest"
    return queued.rejector_group


def _group_key(queued: QueuedPod) -> GroupKey:
    return GroupKey(queued.profile, queued.rejected_by, queued.pending_on, queued.gated_by)


def _class_of(queued: QueuedPod) -> Hashable:
    """The class in a group; pods that are tried together are of one class."""
    if queued.gang and not queued.stands_apart:
        return "gang", queued.gang
    return class_of(queued)
