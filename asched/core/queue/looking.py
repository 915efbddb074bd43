"""Looking: before a pod that is due is tried, it is looked whether an attempt could come to more
than its last one.

A look tells who would reject the pod now, or nothing if it fits, might make room, or only an
attempt can tell. Whoever would be rejected by others than before is tried, so that it is told; its
equals rest under the same rejectors then.

Of a pod that left a node it is asked first whether that may have made room for those who hear of
it: mostly one look at that node tells that it has not, and they rest on.

Where a QueueSort plugin brings a queue of its own, it is to see everybody who waits: pods are woken
as ever then, and looked at when that queue gives them out.

Bounds  LOOKS_MAX looks for one pop (`due.py`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from asched.core.queue.due import LOOKS_MAX, WAKE_STEPS, DueReason
from asched.core.queue.hints import Worth
from asched.core.queue.places import SubQueues
from asched.core.queue.queued import NO_NAMES, QueuedPod
from asched.core.queue.unschedulable import EquivalenceClass
from asched.core.state.changes import POP_FROM_BACKOFF_Q
from asched.core.state.sliced import Sliced


class DryRunVerdict(NamedTuple):
    """Who would reject the pod now; `is_of_class`: as well as any other of its class."""

    rejectors: frozenset[str]
    is_of_class: bool


class Look(Protocol):
    def __call__(self, queued: QueuedPod) -> DryRunVerdict | None:
        """None if an attempt is worth while."""

    def may_help(self, queued: QueuedPod, left: str) -> bool:
        """Whether a look may be worth while to this one, or to an equal one, since a pod left this
        node; they rest, and nothing else has happened.
        """

    def room_left(self, left: str) -> Callable[[QueuedPod], bool]:
        """Whether what is promised to others on a node that a pod left may leave enough for one for
        which room is being made elsewhere. Holds for one change.
        """


class Looking:
    """`look` None: nobody can tell, and everybody is tried.

    `requeue(queued, worth, label, now_s)` moves a pod to where a change sends it, and says whether
    that is not unschedulable; `count(queued, by)` counts its rejectors.
    """

    def __init__(
        self,
        places: SubQueues,
        look: Look | None,
        requeue: Callable[[QueuedPod, Worth, str, float], bool],
        count: Callable[[QueuedPod, int], None],
        sliced: Sliced,
    ) -> None:
        self._places = places
        self._sliced = sliced
        self._resting = places.unschedulable
        self._look = look
        self._requeue = requeue
        self._count = count
        self.is_unfinished = False  # whether the last pop left some who are still to be looked at
        self.tried = self.left = 0  # looks, by what became of the pod
        self.spared = 0  # classes that no pod had to be looked at of, since none could fit

    def wake(
        self,
        equals: EquivalenceClass,
        reason: DueReason,
        now_s: float,
        except_uid: str = "",
        left: str = "",
    ) -> int:
        """A change may help those in turn: how many classes are due by it, or pods woken. `left`:
        it is that a pod left this node, and nothing more.
        """
        in_turn = equals.in_turn.values() if except_uid else ()
        excepted = [queued for queued in in_turn if queued.pod.uid == except_uid]
        if self._look is not None and not self._places.has_own_order:
            if left and equals.due is None and not self._may_help(equals, left):
                return 0
            self._resting.due.add(equals, reason)
            for queued in excepted:
                equals.note_tried(queued)
            return 1
        woken = [
            queued
            for queued in tuple(equals.in_turn.values())
            if queued not in excepted and self._requeue(queued, reason.worth, reason.label, now_s)
        ]
        for queued in woken:
            queued.looks_first = self._look is not None
        return len(woken)

    def wake_next(self, now_s: float) -> None:
        """Let the first of those due be active, if it would then be the next one to be taken. Where
        nobody is active, whose backoff ends first is looked at before its end.
        """
        due = self._resting.due
        self.is_unfinished = False
        for _ in range(LOOKS_MAX):
            equals = due.first(now_s)
            is_early = equals is None
            if equals is None and not len(self._places.active):
                equals = due.first_backing_off(now_s)
            first = equals.first(now_s) if equals is not None else None
            if equals is None or first is None:
                return
            if is_early and not self._places.is_before_backoff(first):
                return
            if not self._places.is_before_active(first):
                return
            if self._wake(equals, first, now_s, is_early=is_early):
                return
        self.is_unfinished = True

    def rests_on(self, queued: QueuedPod) -> bool:
        """Of a pod that was taken: whether it is to be laid to rest again."""
        if not queued.looks_first or self._look is None:
            return False
        queued.looks_first = False
        verdict = self._look(queued)
        if verdict is None or verdict.rejectors != queued.rejected_by:
            self.tried += 1
            return False
        self.left += 1
        self._places.to_rest(queued)
        return True

    def _may_help(self, equals: EquivalenceClass, left: str) -> bool:
        """One speaks for all of a class: if any of them, then whoever comes first."""
        assert self._look is not None
        example = next(iter(equals.in_turn.values()), None)
        if example is None or self._look.may_help(example, left):
            return True
        self.spared += 1
        return False

    def _wake(
        self, equals: EquivalenceClass, first: QueuedPod, now_s: float, *, is_early: bool
    ) -> bool:
        """Look at a pod; whether it is active now."""
        assert self._look is not None
        assert equals.due is not None
        verdict = self._look(first)
        if verdict is not None:
            rejectors, is_of_class = verdict
            if rejectors == first.rejected_by and not is_of_class:
                self.left += 1
                equals.note_tried(first)
                self._resting.due.moved(equals)
                return False
            if rejectors == first.rejected_by or (
                is_of_class and self._resting.knows(first, rejectors)
            ):
                self.left += 1
                self._resting.due.drop(equals)
                self._sliced.do(self._letting_rest(equals, rejectors))
                return False
        self.tried += 1
        worth, label = cause = equals.due
        if is_early:
            worth, label = Worth.IMMEDIATELY, POP_FROM_BACKOFF_Q.label
        moved = self._requeue(first, worth, label, now_s)
        first.woken_by = cause.label  # the wait in between is nobody's reason
        return moved

    def _letting_rest(self, equals: EquivalenceClass, rejectors: frozenset[str]) -> Iterator[None]:
        """Those in turn rest, as one of them was told before: by these rejectors."""
        for queued in tuple(equals.in_turn.values()):
            if queued.rejected_by == rejectors and not queued.pending_on:
                return  # nor have the others any others
            if queued.key not in equals.in_turn:
                continue  # it went meanwhile
            self._count(queued, -1)
            queued.rejected_by, queued.pending_on = rejectors, NO_NAMES
            queued.also_blamed = NO_NAMES
            self._count(queued, 1)
            self._resting.refile(queued)
            self._sliced.budget.note(WAKE_STEPS)
            yield
