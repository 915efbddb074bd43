"""Pods unschedulable: rejected or gated, waiting for a change that could help them.

They are kept in groups of equal rejectors, so that a change nobody in a group registered for is
dismissed with one look at the group, and inside a group by class, so that equal pods are judged
once, and woken one after the other (`due.py`).

Bounds  one entry per unschedulable pod, and two in heaps where equal ones wait; empty groups and
        classes go at once.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from asched.core.model.pod import Pod
from asched.core.queue.backoff import is_backing_off
from asched.core.queue.concerned import Concerned
from asched.core.queue.due import Due, DueReason
from asched.core.queue.lane import Heap, PodHeap
from asched.core.queue.queued import QueuedPod

#: The queue sort: smaller goes first.
Order = Callable[[QueuedPod], Any]


class GroupKey(NamedTuple):
    profile: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]
    gated_by: str
    also_blamed: frozenset[str] = frozenset()


class EquivalenceClass:
    """The pods of one class in a group: if one of those `in_turn` fits somewhere, any of them does.
    Those `apart` may fit where their like do not, and the other way round.

    `due`: why those in turn are to be looked at, None if they are not; `lane` and `ticket`: where
    they stand then. Whoever was tried since then is not looked at again. `number`: the how manieth
    class it was to come to rest.
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
        "lane",
        "number",
        "ticket",
    )

    def __init__(self, order: Order, number: int = 0, *, is_gated: bool = False) -> None:
        """`is_gated`: nobody looks at one before the others, so that they are in no order."""
        self._order = order
        self._is_gated = is_gated
        self.number = number
        self._lanes: tuple[PodHeap, PodHeap] | None = (
            None  # ready, backing off; where there are several
        )
        self.apart: dict[str, QueuedPod] = {}
        self.in_turn: dict[str, QueuedPod] = {}
        #: of a gang: those in turn by class; several may be in it
        self._of_gang: dict[Hashable, dict[str, QueuedPod]] = {}
        self._tried: dict[str, QueuedPod] = {}
        self.due: DueReason | None = None
        self.lane: Heap[EquivalenceClass] | None = None
        self.ticket = 0

    def __len__(self) -> int:
        return len(self.apart) + len(self.in_turn)

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.apart.values(), self.in_turn.values())

    @property
    def awaits_look(self) -> bool:
        """Whether those in turn are due, and all of them are still to be looked at."""
        return self.due is not None and not self._tried

    def classes(self) -> Mapping[Hashable, Mapping[str, QueuedPod]]:
        """Those in turn by class."""
        if self._of_gang:
            return self._of_gang
        first = next(iter(self.in_turn.values()))
        return {class_of(first): self.in_turn}

    def first(self, now_s: float) -> QueuedPod | None:
        """Of those in turn: the first in the order of the queue that does not back off; where all
        do, the one whose backoff ends first.
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
            for one in self.in_turn.values():
                if one.key not in self._tried:
                    self._line_up(one)

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
        """An attempt at one of those in turn would be in vain."""
        self._tried[queued.key] = queued
        if queued.lane is not None:
            queued.lane.discard(queued)

    def look_again(self, queued: QueuedPod | None = None) -> None:
        """At all that were tried, or at this one: something has happened since."""
        again = list(self._tried.values()) if queued is None else [queued]
        for one in again:
            if self._tried.pop(one.key, None) is not None and self._lanes is not None:
                self._line_up(one)

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
        self.concerned = Concerned()


class UnschedulablePods:
    def __init__(self, order: Order = lambda queued: queued.timestamp_s) -> None:
        self._order = order
        self._groups: dict[GroupKey, RejectorGroup] = {}
        self._in_order: tuple[RejectorGroup, ...] | None = ()
        self.due = Due(order)
        self._numbers = count(1)
        self.unschedulable_count = 0
        self.gated_count = 0

    def __iter__(self) -> Iterator[QueuedPod]:
        for group in self._groups.values():
            for equals in group.classes.values():
                yield from equals

    def __len__(self) -> int:
        return self.unschedulable_count + self.gated_count

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
            queued.also_blamed,
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
        """Call before the pod's class changes."""
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
        """Its rejectors have changed. It is due as before."""
        due = equals_of(queued).due
        self.discard(queued)
        self._follow(queued, due)

    def knows(self, queued: QueuedPod, rejectors: frozenset[str]) -> bool:
        """Whether pods of its class rest that were rejected by these."""
        key = GroupKey(queued.pod.spec.scheduler_name, rejectors, frozenset(), "")
        group = self._groups.get(key)
        return group is not None and _class_of(queued) in group.classes

    def renew(self) -> None:
        """Nobody rests, and the order is another one: keys of two kinds cannot be compared."""
        assert not self._groups, "pods rest in the order of before"
        self.due = Due(self._order)

    def replace(
        self, queued: QueuedPod, pod: Pod, class_key: Hashable | None, gang: str = ""
    ) -> bool:
        """Its pod has a new version. Whether it was due and is another now: nobody has looked
        whether the change helps it.
        """
        due = equals_of(queued).due
        self.discard(queued)
        was_like = queued.class_key, queued.gang
        queued.pod, queued.class_key, queued.gang = pod, class_key, gang
        if due is not None and (was_like != (class_key, gang) or queued.stands_apart):
            self.add(queued)
            return True
        self._follow(queued, due)
        return False

    def _follow(self, queued: QueuedPod, due: DueReason | None) -> None:
        """Add a pod to those among whom it rests now; behind a gate it waits for that alone."""
        equals = self.add(queued)
        if due is None or queued.gated_by or queued.key not in equals.in_turn:
            return
        if equals.due is None:
            self.due.add(equals, due)
        else:
            equals.look_again(queued)
            self.due.moved(equals)

    def _count(self, group: RejectorGroup, by: int) -> None:
        if group.key.gated_by:
            self.gated_count += by
        else:
            self.unschedulable_count += by


def equals_of(queued: QueuedPod) -> EquivalenceClass:
    """Among whom an unschedulable pod stands."""
    assert queued.group is not None, f"{queued} does not rest"
    return queued.group.classes[_class_of(queued)]


def _class_of(queued: QueuedPod) -> Hashable:
    """Pods that are tried as one are of one class: an attempt at any is an attempt at all."""
    if queued.gang and not queued.stands_apart:
        return "gang", queued.gang
    return class_of(queued)


def class_of(queued: QueuedPod) -> Hashable:
    """A pod without a class is its own class."""
    return queued if queued.class_key is None else queued.class_key
