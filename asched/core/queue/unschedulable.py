"""Pods unschedulable: rejected or gated, waiting for a change that could help them.

They are kept in groups of equal rejectors, so that a change nobody in a group registered for is
dismissed with one look at the group, and inside a group by class, so that equal pods are judged
once, and woken one after the other (`scouts.py`).

Bounds  one entry per unschedulable pod, and two in heaps where equal ones wait; empty groups and
        classes go at once.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from asched.core.model.pod import Pod
from asched.core.queue.backoff import is_backing_off
from asched.core.queue.lane import PodHeap
from asched.core.queue.queued import QueuedPod

if TYPE_CHECKING:
    from asched.core.queue.scouts import Sent

#: The queue sort: smaller goes first.
Order = Callable[[QueuedPod], Any]


class GroupKey(NamedTuple):
    profile: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]
    gated_by: str
    also_blamed: frozenset[str] = frozenset()


class Equals:
    """The pods of one class in a group: if one of those `in_turn` fits somewhere, any of them does.
    Those `apart` may fit where their like do not, and the other way round.

    `ahead`: the scouts that these pods wait for.
    """

    __slots__ = ("_lanes", "_order", "ahead", "apart", "in_turn")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lanes: tuple[PodHeap, PodHeap] | None = (
            None  # ready, backing off; where there are several
        )
        self.apart: dict[str, QueuedPod] = {}
        self.in_turn: dict[str, QueuedPod] = {}
        self.ahead: dict[Sent, None] = {}  # for its order

    def __len__(self) -> int:
        return len(self.apart) + len(self.in_turn)

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.apart.values(), self.in_turn.values())

    def first(self, now_s: float, except_uid: str = "") -> QueuedPod | None:
        """Of those in turn: the first in the order of the queue that does not back off; where all
        do, the one whose backoff ends first. `except_uid`: anybody but this pod.
        """
        if self._lanes is None:
            return next((q for q in self.in_turn.values() if q.pod.uid != except_uid), None)
        ready, backing_off = self._lanes
        while (head := backing_off.head()) is not None and not is_backing_off(head, now_s):
            backing_off.pop()
            ready.push(head, self._order(head))
        head = ready.head() or backing_off.head()
        if head is None or head.pod.uid != except_uid:
            return head
        self.discard(head)
        second = self.first(now_s)
        self.add(head)
        return second

    def add(self, queued: QueuedPod) -> None:
        if queued.stands_apart:
            self.apart[queued.key] = queued
            return
        self.in_turn[queued.key] = queued
        if self._lanes is not None:
            self._line_up(queued)
        elif len(self.in_turn) > 1:
            self._lanes = PodHeap(), PodHeap()
            for one in self.in_turn.values():
                self._line_up(one)

    def discard(self, queued: QueuedPod) -> None:
        if self.in_turn.pop(queued.key, None) is None:
            del self.apart[queued.key]
        if queued.lane is not None:
            queued.lane.discard(queued)

    def _line_up(self, queued: QueuedPod) -> None:
        assert self._lanes is not None
        self._lanes[1].push(queued, (queued.backoff_until_s or 0.0, self._order(queued)))


class RejectorGroup:
    """Pods with equal rejectors, by class. A pod without a class is its own class."""

    __slots__ = ("classes", "key", "rejectors")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.rejectors = key.rejected_by | key.pending_on
        self.classes: dict[Hashable, Equals] = {}


class UnschedulablePods:
    def __init__(self, order: Order = lambda queued: queued.timestamp_s) -> None:
        self._order = order
        self._groups: dict[GroupKey, RejectorGroup] = {}
        self.unschedulable_count = 0
        self.gated_count = 0

    def __iter__(self) -> Iterator[QueuedPod]:
        for group in self._groups.values():
            for equals in group.classes.values():
                yield from equals

    def __len__(self) -> int:
        return self.unschedulable_count + self.gated_count

    def groups(self) -> Iterator[RejectorGroup]:
        return iter(self._groups.values())

    def add(self, queued: QueuedPod) -> Equals:
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
        equals = group.classes.get(_class_of(queued))
        if equals is None:
            equals = group.classes[_class_of(queued)] = Equals(self._order)
        equals.add(queued)
        queued.group = group
        self._count(group, 1)
        return equals

    def discard(self, queued: QueuedPod) -> Equals:
        """Call before the pod's class changes."""
        group = queued.group
        assert group is not None, f"{queued} does not rest"
        equals = equals_of(queued)
        equals.discard(queued)
        if not len(equals):
            del group.classes[_class_of(queued)]
        if not group.classes:
            del self._groups[group.key]
        queued.group = None
        self._count(group, -1)
        return equals

    def refile(self, queued: QueuedPod) -> None:
        """Its rejectors have changed. It goes on waiting for whoever went ahead."""
        before = self.discard(queued)
        _follow(queued, before, self.add(queued))

    def resort(self) -> None:
        """The order is another one: keys of two kinds cannot be compared."""
        left = [(queued, self.discard(queued)) for queued in list(self)]
        for queued, before in left:
            _follow(queued, before, self.add(queued))

    def replace(self, queued: QueuedPod, pod: Pod, class_key: Hashable | None) -> bool:
        """Its pod has a new version. Whether those ahead do not go ahead of it any more."""
        before = self.discard(queued)
        was_like = queued.class_key
        queued.pod, queued.class_key = pod, class_key
        now = self.add(queued)
        if before.ahead and (class_key != was_like or queued.stands_apart):
            return True
        _follow(queued, before, now)
        return False

    def _count(self, group: RejectorGroup, by: int) -> None:
        if group.key.gated_by:
            self.gated_count += by
        else:
            self.unschedulable_count += by


def equals_of(queued: QueuedPod) -> Equals:
    """Among whom an unschedulable pod stands."""
    assert queued.group is not None, f"{queued} does not rest"
    return queued.group.classes[_class_of(queued)]


def _follow(queued: QueuedPod, before: Equals, now: Equals) -> None:
    """A pod that waits for scouts does so elsewhere; behind a gate it waits for that alone."""
    if before is not now and not queued.gated_by:
        for sent in tuple(before.ahead):
            sent.goes_ahead_of(now)


def _class_of(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else queued.class_key
