"""Hearing: a change goes through all who rest, and whom it helps is woken.

A hundred thousand classes may have to hear of one change, and as many pods may have waited too
long at once. All of that is `sliced`: it stops after each class and each pod, and goes on in later
turns, before anything else happens.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.due import WAKE_STEPS, DueReason
from asched.core.queue.gangs import Gangs
from asched.core.queue.hints import HintEvaluator, Worth
from asched.core.queue.looking import Looking
from asched.core.queue.places import SubQueues
from asched.core.queue.queued import QueuedPod
from asched.core.queue.unschedulable import EquivalenceClass
from asched.core.queue.waking import Waking, Woken
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change
from asched.core.state.sliced import Sliced

#: Steps of the budget for a class that is asked, or indexed.
HEAR_STEPS: Final = 1


class ChangeDelivery:
    """`requeue(queued, worth, label, now_s)` moves a pod to where a change sends it, and says
    whether that is not unschedulable. `waking` and `judge` are those of the present profiles.
    """

    def __init__(
        self,
        places: SubQueues,
        looking: Looking,
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
        """How many pods and classes it woke, as far as there was time."""
        if not self._sliced and self._is_vain(change):
            if change.trigger == ASSIGNED_POD_DELETE and isinstance(change.old, Pod):
                self.waking.gates.expecting(change.old)  # else it would be remembered for good
            return 0
        moved: list[int] = []
        self._sliced.do(self._hearing(change, now_s, except_uid, gangs, moved))
        return sum(moved)

    def _is_vain(self, change: Change) -> bool:
        """Whether nobody hears of a change, or all who do say whom it can concern, and that it is
        nobody: as of each pod that comes before its gang is complete, and of each that goes without
        a device. Nothing is made for it then.
        """
        listeners = self.judge.listeners(self._places.unschedulable.groups(), change.trigger)
        if not listeners.told:
            return True
        if listeners.concerns is None or change.priority_at_most is not None:
            return False
        old, new = change.old, change.new
        try:
            for one, groups in listeners.concerns:
                offered = one.offered(old, new)
                if offered is None:
                    return False
                for concerned in groups if offered or not one.is_of_gang else ():
                    if concerned.may_have(one, offered):
                        return False
        except MISTAKES:  # hints are asked
            return False
        return True

    def flush(self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float) -> None:
        """These have waited too long."""
        self._sliced.do(self._flushing(overdue, timeout, now_s))

    def take_notes(self) -> None:
        """File pods that rest on under those who were blamed anew."""
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
                where = left if self._is_told_by_hints(found, change) else ""
                moved.append(self._looking.wake(found, reason, now_s, except_uid, where))
            elif found.group is not None:
                moved.append(self._requeue(found, worth, label, now_s))
            note(WAKE_STEPS)
            yield
        for _ in self._taking_notes():
            note(WAKE_STEPS)
            yield

    def _is_told_by_hints(self, equals: EquivalenceClass, change: Change) -> bool:
        """Whether nobody looked already: what that found may have nothing to do with the change."""
        example = next(iter(equals), None)
        if example is None or example.group is None:  # they went meanwhile
            return False
        return not self.judge.heard(example.group.key, change.trigger).profits

    def _flushing(
        self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float
    ) -> Iterator[None]:
        for queued in overdue:
            if queued.group is None:
                continue  # it went meanwhile
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
    """The node that a pod left; "" if the change is another one, or of more than that node."""
    gone = change.old
    if change.trigger != ASSIGNED_POD_DELETE or change.only_if_fits or not isinstance(gone, Pod):
        return ""
    if change.is_of_many:
        return ""
    return gone.spec.node_name if change.priority_at_most is None else ""
