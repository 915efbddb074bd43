"""Due: pods at rest that a change may help, by class, until a look has told whether they fit.

    a change is worth an attempt to pods of a class   the class is due
    its first pod would have its turn by now          it is looked at
      it fits, or only an attempt can tell            it is tried, and its class stays due
      it would be rejected as it was before           the class rests on

So room that comes free is offered to one after the other, in the order of the queue, until nobody
is left who fits into what is left of it: freed room costs no attempt in vain, however many wait for
it. Nobody sleeps who fits: a class stays due until a look has said no, and whoever rests then hears
of the next change.

Bounds  a class is due once, whatever happens meanwhile.
Source  our own; kube-scheduler tries them all
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from asched.core.queue.backoff import is_backing_off
from asched.core.queue.hints import Worth
from asched.core.queue.lane import Heap
from asched.core.queue.queued import QueuedPod

if TYPE_CHECKING:
    from asched.core.queue.unschedulable import EquivalenceClass, Order

#: Looks for one pop; whoever is still due then waits for the next turn: 5 to 10 ms.
LOOKS_MAX: Final = 32
#: Steps of the budget for a class that is due from now on, or a pod that moves.
WAKE_STEPS: Final = 1.0


class DueReason(NamedTuple):
    """What the change was worth, and its label."""

    worth: Worth
    label: str


class Due:
    """Classes in the order in which their first pods would be taken."""

    def __init__(self, order: "Order") -> None:
        self._order = order
        self._ready: Heap[EquivalenceClass] = Heap()
        self._backing_off: Heap[EquivalenceClass] = Heap()
        self._patient: Heap[EquivalenceClass] = (
            Heap()
        )  # nobody looks at them before the end of their backoff
        self._moved: dict[EquivalenceClass, None] = {}  # others may be their first now

    def __len__(self) -> int:
        return self._ready.live + self._backing_off.live + self._patient.live + len(self._moved)

    def __iter__(self) -> "Iterator[EquivalenceClass]":
        yield from self._moved
        yield from self._ready.in_order()
        yield from self._backing_off.in_order()
        yield from self._patient.in_order()

    def add(self, equals: "EquivalenceClass", reason: DueReason) -> None:
        if equals.due is None or reason.worth > equals.due.worth:
            equals.due = reason
        equals.look_again()
        self.moved(equals)

    def moved(self, equals: "EquivalenceClass") -> None:
        """A class that is due has another pod, or one less."""
        if equals.lane is not None:
            equals.lane.discard(equals)
        self._moved[equals] = None

    def drop(self, equals: "EquivalenceClass") -> None:
        """A class is not due any more."""
        if equals.lane is not None:
            equals.lane.discard(equals)
        self._moved.pop(equals, None)
        equals.due = None

    def first(self, now_s: float) -> "EquivalenceClass | None":
        """Whose first pod is the first of all that need not back off."""
        self.file(now_s)
        return self._ready.head()

    def first_backing_off(self, now_s: float) -> "EquivalenceClass | None":
        """Whose backoff ends first, where all do back off."""
        self.file(now_s)
        return self._backing_off.head()

    def next_deadline_s(self) -> float | None:
        """When the first backoff ends, of those that were filed."""
        ends_s = []
        for heap in (self._backing_off, self._patient):
            equals = heap.head()
            first = equals.first(0.0) if equals is not None else None
            if first is not None and first.backoff_until_s is not None:
                ends_s.append(first.backoff_until_s + 1)
        return min(ends_s, default=None)

    def file(self, now_s: float) -> None:
        """Put everybody where they stand by now."""
        for heap in (self._backing_off, self._patient):
            while (equals := heap.head()) is not None:
                first = equals.first(now_s)
                if first is not None and is_backing_off(first, now_s):
                    break
                self.moved(equals)
        for equals in self._moved:
            self._place(equals, equals.first(now_s), now_s)
        self._moved.clear()

    def _place(self, equals: "EquivalenceClass", first: QueuedPod | None, now_s: float) -> None:
        assert equals.due is not None
        if first is None:
            equals.due = None
        elif equals.due.worth is Worth.AFTER_BACKOFF and is_backing_off(first, now_s):
            heap = self._patient if first.gang else self._backing_off
            heap.push(equals, (first.backoff_until_s, self._order(first)))
        else:
            self._ready.push(equals, self._order(first))
