"""Deliver changes to unschedulable pods, and wake the pods that a change may help.

One change may concern a hundred thousand classes, and as many pods may exceed their longest wait at
once. So delivery is `sliced`: it stops after each class and each pod, and goes on in later turns,
before other facts or attempts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asched.core.cluster.budget import Sliced
from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.concerned import WAKE_STEPS, DueReason
from asched.core.queue.gangs import Gangs
from asched.core.queue.hints import HintEvaluator
from asched.core.queue.looking import DryRunFilter
from asched.core.queue.places import SubQueues
from asched.core.queue.queued import QueuedPod, Worth
from asched.core.queue.unschedulable import EquivalenceClass
from asched.core.queue.waking import Waking, Woken

#: Budget steps for a class whose hints are called, or that is indexed.
HEAR_STEPS: Final = 1


class ChangeDelivery:
    """`requeue(queued, worth, label, now_s)` moves a pod to where a change sends it; False if that
    is unschedulable. `waking` and `judge` belong to the current profiles.
    """

    def __init__(
        self,
        places: SubQueues,
        looking: DryRunFilter,
        requeue: Callable[[QueuedPod, Worth, str, float], bool],
        sliced: Sliced,
        waking: Waking,
        judge: HintEvaluator,
    ) -> None:
        self._places = places
        self._looking = looking
        self._requeue = requeue
        self._sliced = sliced
        self.waking = waking
        self.judge = judge

    def hear(self, change: Change, now_s: float, except_uid: str, gangs: Gangs) -> int:
        """Deliver a change. Returns how many pods and classes it woke within this turn's slice."""
        if not self._sliced.pieces and self._concerns_no_class(change):
            if change.trigger == ASSIGNED_POD_DELETE and isinstance(change.old, Pod):
                self.waking.gates.expecting(change.old)  # lets plugins forget the victim
            return 0
        moved: list[int] = []
        self._sliced.do(self._hearing(change, now_s, except_uid, gangs, moved))
        return sum(moved)

    def _concerns_no_class(self, change: Change) -> bool:
        """Whether no group listens to a change, or the registrations of all that do exclude all of
        their classes. Usual for pods that arrive before their gang is complete, or are deleted and
        had no devices. Such a change allocates nothing.
        """
        listeners = self.judge.listeners(self._places.unschedulable.groups(), change.trigger)
        if not listeners.groups:
            return True
        if listeners.concerns is None or change.priority_at_most is not None:
            return False
        old, new = change.old, change.new
        try:
            for concern, indexes in listeners.concerns:
                offered = concern.offered(old, new)
                if offered is None:
                    return False
                for index in indexes if offered or not concern.is_of_gang else ():
                    if index.may_have(concern, offered):
                        return False
        except MISTAKES:  # the hints are called instead
            return False
        return True

    def flush(self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float) -> None:
        """Requeue pods that have been unschedulable for too long."""
        self._sliced.do(self._flushing(overdue, timeout, now_s))

    def take_notes(self) -> None:
        """File unschedulable pods under the rejectors that dry runs have added."""
        deque(self._taking_notes(), maxlen=0)

    def _hearing(
        self, change: Change, now_s: float, except_uid: str, gangs: Gangs, moved: list[int]
    ) -> Iterator[None]:
        label, note, left = change.trigger.label, self._sliced.budget.note, _left(change)
        woken: list[Woken] = []
        groups = self._places.unschedulable.groups()
        for of_class in self.waking.woken(groups, change, except_uid):
            woken += of_class
            note(HEAR_STEPS)
            yield
        if gangs.are_tried:
            gangs.complete(woken, self._places.get(getattr(change.new, "key", "")))
        for found, worth in woken:
            if isinstance(found, EquivalenceClass):
                reason = DueReason(worth, label)
                node = left if self._hints_decided(found, change) else ""
                moved.append(self._looking.wake(found, reason, now_s, except_uid, node))
            elif found.group is not None:
                moved.append(self._requeue(found, worth, label, now_s))
            note(WAKE_STEPS)
            yield
        for _ in self._taking_notes():
            note(WAKE_STEPS)
            yield

    def _hints_decided(self, equals: EquivalenceClass, change: Change) -> bool:
        """Whether hints alone woke the class. A dry run may have found room elsewhere."""
        example = next(iter(equals), None)
        if example is None or example.group is None:  # its pods left meanwhile
            return False
        return not self.judge.heard(example.group.key, change.trigger).profits

    def _flushing(
        self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float
    ) -> Iterator[None]:
        for queued in overdue:
            if queued.group is None:
                continue  # it left meanwhile
            queued.was_flushed = True
            if self.judge.may_hear(queued.group.key, timeout.trigger):
                worth = self.judge.worth(queued, timeout)
                self._requeue(queued, worth, timeout.trigger.label, now_s)
            self._sliced.budget.note(WAKE_STEPS)
            yield

    def _taking_notes(self) -> Iterator[None]:
        notes = self.waking.notes
        while notes:
            queued, blamed = notes.popleft()
            queued.also_blamed |= blamed
            if queued.group is not None:
                self._places.to_rest(queued)
            yield


def _left(change: Change) -> str:
    """The node that a pod left; "" for other changes, and for changes of several nodes."""
    gone = change.old
    if change.trigger != ASSIGNED_POD_DELETE or change.only_if_fits or not isinstance(gone, Pod):
        return ""
    if change.is_of_many:
        return ""
    return gone.spec.node_name if change.priority_at_most is None else ""
