"""Due classes: unschedulable pods that a change may help, until a dry run shows whether they fit.

    a hint says that a change may help a class        the class is due
    its first pod would be popped next                a dry run of this pod
      it fits, or only an attempt can find out        it is tried, and its class stays due
      it would be rejected by the same plugins        the class is not due any more

    only an extra event may help a class              the same, but a pod for which a PostFilter
                                                      plugin might make room is not tried

So freed room is offered to one pod after the other, in the order of the queue, until no waiting pod
fits any more. Freed room causes no unnecessary attempt, however many pods wait for it. A pod that
fits is never left behind: its class stays due until a dry run rejects it, and a later change makes
the class due again.

Bounds  a class is due at most once.
Source  our own; kube-scheduler tries all these pods
"""

from collections.abc import Iterator
from typing import Final

from asched.core.queue.backoff import is_backing_off
from asched.core.queue.equivalence import DueReason, EquivalenceClass, Order
from asched.core.queue.heap import Heap
from asched.core.queue.queued import Worth

#: Dry runs for one pop (5 to 10 ms); classes that are still due then wait for the next turn.
DRY_RUNS_MAX: Final = 32
#: Budget steps for a class that becomes due, or a pod that moves.
WAKE_STEPS: Final = 1.0


class Due:
    """Due classes in the order in which their first pods would be popped."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._ready: Heap[EquivalenceClass] = Heap()
        self._backing_off: Heap[EquivalenceClass] = Heap()
        #: classes without a dry run before the end of their backoff
        self._patient: Heap[EquivalenceClass] = Heap()
        #: classes whose first pod may have changed
        self._moved: dict[EquivalenceClass, None] = {}

    def __len__(self) -> int:
        return self._ready.live + self._backing_off.live + self._patient.live + len(self._moved)

    def __iter__(self) -> Iterator[EquivalenceClass]:
        yield from self._moved
        yield from self._ready.in_order()
        yield from self._backing_off.in_order()
        yield from self._patient.in_order()

    def add(self, equals: EquivalenceClass, reason: DueReason) -> None:
        if equals.due is None or reason.worth > equals.due.worth:
            equals.due = reason
        equals.allow_dry_runs()
        equals.is_patient = False
        self.moved(equals)

    def moved(self, equals: EquivalenceClass) -> None:
        """Note that a pod of a due class was added or removed."""
        if equals.heap is not None:
            equals.heap.discard(equals)
        self._moved[equals] = None

    def drop(self, equals: EquivalenceClass) -> None:
        """Note that a class is not due any more."""
        if equals.heap is not None:
            equals.heap.discard(equals)
        self._moved.pop(equals, None)
        equals.due = None

    def first(self, now_s: float) -> EquivalenceClass | None:
        """The class with the first pod of all due pods without backoff."""
        self.refile(now_s)
        return self._ready.head()

    def first_backing_off(self, now_s: float) -> EquivalenceClass | None:
        """Of classes whose pods all back off, the class whose backoff ends first."""
        self.refile(now_s)
        return self._backing_off.head()

    def next_deadline_s(self) -> float | None:
        """The end of the first backoff among filed classes, in seconds; None without backoff."""
        ends_s = []
        for heap in (self._backing_off, self._patient):
            equals = heap.head()
            first = equals.first(0.0) if equals is not None else None
            if first is not None and first.backoff_until_s is not None:
                ends_s.append(first.backoff_until_s + 1)
        return min(ends_s, default=None)

    def refile(self, now_s: float) -> None:
        """Move each class to the heap that its first pod belongs to now."""
        for heap in (self._backing_off, self._patient):
            while (equals := heap.head()) is not None:
                first = equals.first(now_s)
                if first is not None and is_backing_off(first, now_s):
                    break
                self.moved(equals)
        for equals in self._moved:
            assert equals.due is not None
            first = equals.first(now_s)
            if first is None:
                equals.due = None
            elif equals.due.worth is not Worth.IMMEDIATELY and is_backing_off(first, now_s):
                is_patient = first.gang and (equals.is_patient or not first.may_be_early)
                heap = self._patient if is_patient else self._backing_off
                heap.push(equals, (first.backoff_until_s, self._order(first)))
            else:
                self._ready.push(equals, self._order(first))
        self._moved.clear()
