"""Run a dry run before a due pod is tried, to find out whether an attempt could have a new result.

A dry run returns the plugins that would reject the pod now, or None if the pod fits, might make
room, or if only an attempt can find out. A pod that other plugins would reject than before is
tried, so that its condition is updated; equal pods then wait under the same rejectors.

When a pod leaves a node, a check of this node comes first. Mostly it shows that the node has no
room for the waiting pods, and they stay unschedulable without a dry run.

Bounds  DRY_RUNS_MAX dry runs for one pop (`due.py`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from asched.core.cluster.budget import SlicedWork
from asched.core.cluster.changes import POP_FROM_BACKOFF_Q
from asched.core.queue.due import DRY_RUNS_MAX, WAKE_STEPS
from asched.core.queue.equivalence import DueReason, EquivalenceClass
from asched.core.queue.places import SubQueues
from asched.core.queue.queued import NO_NAMES, QueuedPod, Worth


class DryRunVerdict(NamedTuple):
    """The plugins that would reject the pod now; `is_of_class`: and all pods of its class."""

    rejectors: frozenset[str]
    is_of_class: bool


class DryRunner(Protocol):
    def __call__(self, queued: QueuedPod) -> DryRunVerdict | None:
        """Run the filters for a pod; None if an attempt is useful."""

    def rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        """The plugins that reject a pod now; None if it fits, or if only an attempt can find out.
        Unlike a call, it does not ask whether room might be made.
        """

    def may_start(self, queued: QueuedPod) -> bool:
        """Whether the group of a pod has places by counting, so that its backoff may end early."""

    def may_help(self, queued: QueuedPod, freed_node: str) -> bool:
        """Whether a dry run of an unschedulable pod, or of an equal pod, is useful after a pod left
        the node `freed_node`, without any other change.
        """

    def room_test(self, freed_node: str) -> Callable[[QueuedPod], bool]:
        """Return a test whether a node that a pod left may have enough room, with its nominated
        pods, for a pod that room is being made for elsewhere. Valid for one change.
        """


class DueFilter:
    """Decides which due pods become active. Without `dry_runner` all of them do.

    `requeue(queued, worth, label, now_s)` moves a pod to where a change sends it; False if that is
    unschedulable. `count(queued, by)` counts its rejectors.
    """

    def __init__(
        self,
        places: SubQueues,
        dry_runner: DryRunner | None,
        requeue: Callable[[QueuedPod, Worth, str, float], bool],
        count: Callable[[QueuedPod, int], None],
        sliced_work: SlicedWork,
    ) -> None:
        self._places = places
        self._sliced_work = sliced_work
        self._unschedulable = places.unschedulable
        self._dry_runner = dry_runner
        self._requeue = requeue
        self._count = count
        self.is_unfinished = False  # whether due classes remain after the last pop, which resets it
        self.tried = self.not_tried = 0  # dry runs that led to an attempt, and that did not
        self.made_due = 0  # classes that became due
        self.spared = 0  # classes without a dry run, since none of their pods could fit

    def rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        """The plugins that reject a pod in a dry run at once; None if an attempt is useful."""
        return None if self._dry_runner is None else self._dry_runner.rejectors(queued)

    def wake(
        self,
        equals: EquivalenceClass,
        reason: DueReason,
        now_s: float,
        except_uid: str = "",
        freed_node: str = "",
    ) -> None:
        """Make the class due, or wake its pods. `freed_node`: the change is that a pod left this
        node, and nothing else.
        """
        in_turn = equals.in_turn.values() if except_uid else ()
        excepted = [queued for queued in in_turn if queued.pod.uid == except_uid]
        if self._dry_runner is not None:
            if (
                freed_node
                and equals.due is None
                and (example := next(iter(equals.in_turn.values()), None)) is not None
                and not self._dry_runner.may_help(example, freed_node)
            ):
                self.spared += 1
                return
            self.made_due += equals.due is None
            self._unschedulable.due.add(equals, reason)
            for queued in excepted:
                equals.note_tried(queued)
            return
        for queued in tuple(equals.in_turn.values()):
            if queued not in excepted:
                self._requeue(queued, reason.worth, reason.label, now_s)

    def wake_next(self, now_s: float) -> None:
        """Make the first due pod active if it would be popped next. If no pod is active, the due
        pod whose backoff ends first may be tried early.
        """
        due = self._unschedulable.due
        if not due:  # mostly
            return
        for _ in range(DRY_RUNS_MAX):
            equals = due.first(now_s)
            is_early = equals is None
            if equals is None and not len(self._places.active):
                equals = due.first_backing_off(now_s)
            first = equals.first(now_s) if equals is not None else None
            if equals is None or first is None:
                return
            places = self._places
            if is_early and not places.is_first(first, places.backoff):
                return
            if not places.is_first(first, places.active):
                return
            if self._wake(equals, first, now_s, is_early=is_early):
                return
        self.is_unfinished = True

    def _wake(
        self, equals: EquivalenceClass, first: QueuedPod, now_s: float, *, is_early: bool
    ) -> bool:
        """Run a dry run of a pod; whether it is active now."""
        assert self._dry_runner is not None
        assert equals.due is not None
        if is_early and first.gang and not self._dry_runner.may_start(first):
            equals.is_patient = True
            self._unschedulable.due.moved(equals)
            return False
        if equals.due.worth is Worth.IF_IT_FITS:
            if first.is_rejected_as_before(self._dry_runner.rejectors(first)):
                self.not_tried += 1
                self._unschedulable.due.drop(equals)
                return False
        elif (verdict := self._dry_runner(first)) is not None:
            rejectors, is_of_class = verdict
            if rejectors == first.rejected_by and not is_of_class:
                self.not_tried += 1
                equals.note_tried(first)
                self._unschedulable.due.moved(equals)
                return False
            if rejectors == first.rejected_by or (
                is_of_class and self._unschedulable.knows(first, rejectors)
            ):
                self.not_tried += 1
                self._unschedulable.due.drop(equals)
                self._sliced_work.do(self._refiling(equals, rejectors))
                return False
        self.tried += 1
        worth, label = cause = equals.due
        if is_early:
            worth, label = Worth.IMMEDIATELY, POP_FROM_BACKOFF_Q.label
        moved = self._requeue(first, worth, label, now_s)
        first.woken_by = cause.label  # the change, not the pop from backoff
        return moved

    def _refiling(self, equals: EquivalenceClass, rejectors: frozenset[str]) -> Iterator[None]:
        """File the pods in turn under the rejectors that one pod of the class was rejected by."""
        for queued in tuple(equals.in_turn.values()):
            if queued.rejected_by == rejectors and not queued.pending_on:
                return  # the remaining pods have these rejectors, too
            if queued.key not in equals.in_turn:
                continue  # it left meanwhile
            self._count(queued, -1)
            queued.rejected_by, queued.pending_on = rejectors, NO_NAMES
            self._count(queued, 1)
            self._unschedulable.refile(queued)
            self._sliced_work.budget.note(WAKE_STEPS)
            yield
