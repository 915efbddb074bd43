"""The class of equal unschedulable pods, and which of them is tried first.

Bounds  two entries in heaps for each of several equal pods.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from asched.core.queue.backoff import is_backing_off
from asched.core.queue.heap import Heap
from asched.core.queue.queued import PodHeap, QueuedPod, Worth

#: The queue sort: smaller goes first.
Order = Callable[[QueuedPod], Any]


class DueReason(NamedTuple):
    """The worth of the change, and its label."""

    worth: Worth
    label: str


class EquivalenceClass:
    """The pods of one class in a group: if one pod `in_turn` fits, each of them does. Pods `apart`
    may fit where equal pods do not, and vice versa.

    `due`: why the pods in turn need a dry run, None if they do not; `heap` and `ticket`: the place
    of a due class. A pod that was tried since then gets no further dry run. `number`: serial number
    of the class.
    """

    __slots__ = (
        "_heaps",
        "_is_gated",
        "_of_gang",
        "_order",
        "_tried",
        "apart",
        "due",
        "heap",
        "in_turn",
        "is_patient",
        "number",
        "ticket",
    )

    def __init__(self, order: Order, number: int = 0, *, is_gated: bool = False) -> None:
        """`is_gated`: the pods need no order, because none is tried before the others."""
        self._order = order
        self._is_gated = is_gated
        self.number = number
        #: pods that are ready, and pods that back off; None for a single pod
        self._heaps: tuple[PodHeap, PodHeap] | None = None
        self.apart: dict[str, QueuedPod] = {}
        self.in_turn: dict[str, QueuedPod] = {}
        #: the pods of a gang in turn by class, which may be several
        self._of_gang: dict[Hashable, dict[str, QueuedPod]] = {}
        self._tried: dict[str, QueuedPod] = {}
        self.due: DueReason | None = None
        #: freed room does not suffice for this group: no dry run before its backoff ends
        self.is_patient = False
        self.heap: Heap[EquivalenceClass] | None = None
        self.ticket = 0

    def __len__(self) -> int:
        return len(self.apart) + len(self.in_turn)

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.apart.values(), self.in_turn.values())

    @property
    def awaits_dry_run(self) -> bool:
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
        if self._heaps is None:
            return None if self._tried else next(iter(self.in_turn.values()), None)
        ready, backing_off = self._heaps
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
        elif self._heaps is not None:
            self._enqueue(queued)
        if self._heaps is None and len(self.in_turn) > 1 and not self._is_gated:
            self._heaps = PodHeap(), PodHeap()
            for member in self.in_turn.values():
                if member.key not in self._tried:
                    self._enqueue(member)

    def discard(self, queued: QueuedPod) -> None:
        if self.in_turn.pop(queued.key, None) is None:
            del self.apart[queued.key]
        elif queued.gang:
            alike = self._of_gang[class_of(queued)]
            del alike[queued.key]
            if not alike:
                del self._of_gang[class_of(queued)]
        self._tried.pop(queued.key, None)
        if queued.heap is not None:
            queued.heap.discard(queued)

    def note_tried(self, queued: QueuedPod) -> None:
        """Note that a dry run rejected a pod in turn."""
        self._tried[queued.key] = queued
        if queued.heap is not None:
            queued.heap.discard(queued)

    def allow_dry_runs(self, queued: QueuedPod | None = None) -> None:
        """Allow dry runs again, of all tried pods or of this pod, after a further change."""
        again = list(self._tried.values()) if queued is None else [queued]
        for tried in again:
            if self._tried.pop(tried.key, None) is not None and self._heaps is not None:
                self._enqueue(tried)

    def _enqueue(self, queued: QueuedPod) -> None:
        assert self._heaps is not None
        self._heaps[1].push(queued, (queued.backoff_until_s or 0.0, self._order(queued)))


def class_of(queued: QueuedPod) -> Hashable:
    """The class of a pod; a pod without a class key is its own class."""
    return queued if queued.class_key is None else queued.class_key
