"""Unschedulable pods: rejected or gated, waiting for a change that could help them.

They are stored in groups of equal rejectors, so that a change that no plugin of a group registered
for is skipped with one look-up, and inside a group by class, so that the hints are called once for
equal pods, which are woken one after the other (`concerned.py`).

Bounds  one entry per unschedulable pod, and two in heaps for equal pods; empty groups and classes
        are dropped at once.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from asched.core.model.pod import Pod
from asched.core.queue.concerned import ConcernIndexes, Due, DueReason
from asched.core.queue.queued import Heap, PodHeap, QueuedPod, Worth, is_backing_off

#: The queue sort: smaller goes first.
Order = Callable[[QueuedPod], Any]


class GroupKey(NamedTuple):
    profile: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]
    gated_by: str


class EquivalenceClass:
    """The pods of one class in a group: if one pod `in_turn` fits, each of them does. Pods `apart`
    may fit where equal pods do not, and vice versa.

    `due`: why the pods in turn need a dry run, None if they do not; `lane` and `ticket`: the place
    of a due class. A pod that was tried since then gets no further dry run. `number`: serial number
    of the class.
    """

    __slots__ = (
        "_is_gated",
        "_lanes",
        "_of_gang",
        "_order",
        "_tried",
        "apart",
        "due",
        "in_turn",
        "is_patient",
        "lane",
        "number",
        "ticket",
    )

    def __init__(self, order: Order, number: int = 0, *, is_gated: bool = False) -> None:
        """`is_gated`: the pods need no order, because none is tried before the others."""
        self._order = order
        self._is_gated = is_gated
        self.number = number
        #: pods that are ready, and pods that back off; None for a single pod
        self._lanes: tuple[PodHeap, PodHeap] | None = None
        self.apart: dict[str, QueuedPod] = {}
        self.in_turn: dict[str, QueuedPod] = {}
        #: the pods of a gang in turn by class, which may be several
        self._of_gang: dict[Hashable, dict[str, QueuedPod]] = {}
        self._tried: dict[str, QueuedPod] = {}
        self.due: DueReason | None = None
        #: freed room does not suffice for this group: no dry run before its backoff ends
        self.is_patient = False
        self.lane: Heap[EquivalenceClass] | None = None
        self.ticket = 0

    def __len__(self) -> int:
        return len(self.apart) + len(self.in_turn)

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.apart.values(), self.in_turn.values())

    @property
    def awaits_look(self) -> bool:
        """Whether the class is due, and a hint would change nothing before its next dry run."""
        is_due = self.due is not None and self.due.worth is not Worth.IF_IT_FITS
        return is_due and not self._tried and not self.is_patient

    def classes(self) -> Mapping[Hashable, Mapping[str, QueuedPod]]:
        """The pods in turn by class."""
        if self._of_gang:
            return self._of_gang
        first = next(iter(self.in_turn.values()))
        return {class_of(first): self.in_turn}

    def first(self, now_s: float) -> QueuedPod | None:
        """The first pod in turn, by the order of the queue, without backoff; if all back off, the
        pod whose backoff ends first.
        """
        if self._lanes is None:
            return None if self._tried else next(iter(self.in_turn.values()), None)
        ready, backing_off = self._lanes
        while (head := backing_off.head()) is not None and not is_backing_off(head, now_s):
            backing_off.pop()
            ready.push(head, self._order(head))
        return ready.head() or backing_off.head()

    def add(self, queued: QueuedPod, *, was_tried: bool = False) -> None:
        if queued.stands_apart:
            self.apart[queued.key] = queued
            return
        self.in_turn[queued.key] = queued
        if queued.gang:
            self._of_gang.setdefault(class_of(queued), {})[queued.key] = queued
        if was_tried:
            self._tried[queued.key] = queued
        elif self._lanes is not None:
            self._line_up(queued)
        if self._lanes is None and len(self.in_turn) > 1 and not self._is_gated:
            self._lanes = PodHeap(), PodHeap()
            for member in self.in_turn.values():
                if member.key not in self._tried:
                    self._line_up(member)

    def discard(self, queued: QueuedPod) -> None:
        if self.in_turn.pop(queued.key, None) is None:
            del self.apart[queued.key]
        elif queued.gang:
            alike = self._of_gang[class_of(queued)]
            del alike[queued.key]
            if not alike:
                del self._of_gang[class_of(queued)]
        self._tried.pop(queued.key, None)
        if queued.lane is not None:
            queued.lane.discard(queued)

    def note_tried(self, queued: QueuedPod) -> None:
        """Note that a dry run rejected a pod in turn."""
        self._tried[queued.key] = queued
        if queued.lane is not None:
            queued.lane.discard(queued)

    def look_again(self, queued: QueuedPod | None = None) -> None:
        """Allow dry runs again, of all tried pods or of this pod, after a further change."""
        again = list(self._tried.values()) if queued is None else [queued]
        for tried in again:
            if self._tried.pop(tried.key, None) is not None and self._lanes is not None:
                self._line_up(tried)

    def _line_up(self, queued: QueuedPod) -> None:
        assert self._lanes is not None
        self._lanes[1].push(queued, (queued.backoff_until_s or 0.0, self._order(queued)))


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
        assert queued.group is None, f"{queued} rests already"
        key = GroupKey(
            queued.pod.spec.scheduler_name,
            queued.rejected_by,
            queued.pending_on,
            queued.gated_by,
        )
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
        queued.group = group
        self._count(group, 1)
        return equals

    def discard(self, queued: QueuedPod) -> EquivalenceClass:
        """Remove a pod; to be called before its class changes."""
        group = queued.group
        assert group is not None, f"{queued} does not rest"
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
        queued.group = None
        self._count(group, -1)
        return equals

    def refile(self, queued: QueuedPod) -> None:
        """Move a pod whose rejectors have changed to its group; it stays due if it was."""
        due = equals_of(queued).due
        self.discard(queued)
        self._follow(queued, due)

    def knows(self, queued: QueuedPod, rejectors: frozenset[str]) -> bool:
        """Whether pods of this pod's class wait that these plugins rejected."""
        key = GroupKey(queued.pod.spec.scheduler_name, rejectors, frozenset(), "")
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
            equals.look_again(queued)
            self.due.moved(equals)

    def _count(self, group: RejectorGroup, by: int) -> None:
        self.count += by
        if group.key.gated_by:
            self.gated_count += by


def equals_of(queued: QueuedPod) -> EquivalenceClass:
    """The class of an unschedulable pod in its group."""
    assert queued.group is not None, f"{queued} does not rest"
    return queued.group.classes[_class_of(queued)]


def _class_of(queued: QueuedPod) -> Hashable:
    """The class in a group; pods that are tried together are of one class."""
    if queued.gang and not queued.stands_apart:
        return "gang", queued.gang
    return class_of(queued)


def class_of(queued: QueuedPod) -> Hashable:
    """The class of a pod; a pod without a class key is its own class."""
    return queued if queued.class_key is None else queued.class_key
