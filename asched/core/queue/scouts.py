"""Scouts: of equal pods that a change may help, one is tried, and the next once it had room.

    a change is worth an attempt to equal pods   their first one is woken, the others rest on
    it got a place                               the next one is woken: there may be more room
    it was rejected, as all of them would be     they rest on, as it does, by its rejectors
    it makes room, ends in an error, or is gone  the next one is woken: it told nothing
    it was rejected for reasons of its own       all others are woken, as there is no telling

So freed room costs one attempt in vain, however many pods wait for it, and nobody sleeps who fits:
whoever rests on after a change waits for an attempt that is still to begin.

Source  our own; kube-scheduler wakes them all
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from asched.core.queue.hints import Worth
from asched.core.queue.places import SubQueues
from asched.core.queue.queued import NOBODY, QueuedPod
from asched.core.queue.unschedulable import Equals, equals_of


@dataclass(eq=False, slots=True)
class Sent:
    """A scout: what the change was worth, and its label. `behind`: where its equals rest, which may
    be several places once they were found to have other rejectors (a dict for its order).
    """

    queued: QueuedPod
    worth: Worth
    label: str
    behind: dict[Equals, None] = field(default_factory=dict)

    def goes_ahead_of(self, equals: Equals) -> None:
        self.behind[equals] = None
        equals.ahead[self] = None


class Scouts:
    """`requeue(queued, worth, label, now_s)` moves a pod to where a change sends it, and says
    whether that is not unschedulable.
    """

    def __init__(
        self, places: SubQueues, requeue: Callable[[QueuedPod, Worth, str, float], bool]
    ) -> None:
        self._resting = places.unschedulable
        self._places = places
        self._requeue = requeue
        self._out: dict[str, Sent] = {}
        self._owing: list[Sent] = []  # their equals are to send the next one

    # --- waking -----------------------------------------------------------------------------------

    def wake_first(
        self, equals: Equals, worth: Worth, label: str, now_s: float, except_uid: str = ""
    ) -> bool:
        """Wake one of them, unless one is awake that will tell; whether one was."""
        for _ in range(len(equals.in_turn)):  # gates may hold some
            first = equals.first(now_s, except_uid)
            if first is None or self._is_one_awaited(equals, first, worth):
                return False
            if self._requeue(first, worth, label, now_s):
                if equals.in_turn:
                    sent = self._out[first.pod.uid] = Sent(first, worth, label)
                    sent.goes_ahead_of(equals)
                return True
        return False

    def wake_next(self, now_s: float) -> None:
        """Where a scout's attempt ended without telling anything against its equals."""
        while self._owing:
            owing, self._owing = self._owing, []
            for sent in owing:
                for equals in tuple(sent.behind):
                    self.wake_first(equals, sent.worth, sent.label, now_s)

    def _is_one_awaited(self, equals: Equals, first: QueuedPod, worth: Worth) -> bool:
        """Whether some scout will look no later than the first of them could, and did not yet."""
        for sent in equals.ahead:
            lane = sent.queued.lane
            if lane is self._places.active:
                return True
            if lane is None or worth > sent.worth:
                continue  # it is in flight and may have looked already, or waits for too long
            until_s, first_s = sent.queued.backoff_until_s, first.backoff_until_s
            if until_s is not None and first_s is not None and until_s <= first_s:
                return True
        return False

    # --- what became of them ----------------------------------------------------------------------

    def ended(self, uid: str) -> None:
        """Whatever became of this pod, if it is a scout, it says nothing against its equals."""
        sent = self.back(uid) if self._out else None
        if sent is not None:
            self._owing.append(sent)

    def back(self, uid: str) -> Sent | None:
        """The pod is a scout no longer; None if it was none."""
        sent = self._out.pop(uid, None)
        if sent is not None:
            for equals in sent.behind:
                equals.ahead.pop(sent, None)
        return sent

    def failed(self, uid: str, now_s: float, *, is_rejected: bool, speaks: bool) -> Sent | None:
        """A pod comes back. `speaks`: as it was rejected, any of its equals would be; then the pod
        is returned if it is a scout.
        """
        if not is_rejected:
            self.ended(uid)
            return None
        sent = self.back(uid)
        if sent is None or speaks:
            return sent
        for equals in tuple(sent.behind):
            for one in tuple(equals.in_turn.values()):
                self._requeue(one, sent.worth, sent.label, now_s)
        return None

    def rejected(self, sent: Sent, count: Callable[[QueuedPod, int], None]) -> None:
        """A scout that is back was rejected as all its equals would be: by the same plugins.

        `count(queued, by)` counts its rejectors.
        """
        queued = sent.queued
        for equals in tuple(sent.behind):
            for one in tuple(equals.in_turn.values()):
                if (one.rejected_by, one.pending_on) == (queued.rejected_by, queued.pending_on):
                    break  # nor have the others any others
                count(one, -1)
                one.rejected_by, one.pending_on = queued.rejected_by, queued.pending_on
                one.also_blamed = NOBODY
                count(one, 1)
                self._resting.refile(one)
                sent.behind[equals_of(one)] = None

    def awake_again(self, sent: Sent) -> None:
        """It missed a change meanwhile, as its equals did."""
        self._out[sent.queued.pod.uid] = sent
        for equals in sent.behind:
            equals.ahead[sent] = None
