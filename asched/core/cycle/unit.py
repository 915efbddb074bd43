"""What one attempt schedules: a pod by itself (`PodUnit`), or the pods of a group (`batch/groups`).

queue ─pop─> Unit ─place─> UnitOutcome: of each pod a place that is held, or its Failure
"""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from asched import names
from asched.core.cluster.facts import Answer
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import StoredEntry
from asched.core.framework.effects import Effect
from asched.core.framework.points import Nomination, PostFilterResult
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner
from asched.core.framework.status import Status
from asched.core.framework.waiting import WaitingPod
from asched.core.model.pod import Pod

CLEARED: Final = Nomination("")
KEPT: Final = Nomination(None)


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed, with the message for the pod.

    Without rejectors the queue treats it as an error, whatever the reason. `rejection`: details for
    the history. `is_patient`: the pod waits out its backoff. `was_nominated`: this attempt wrote a
    nomination, which the newest known version of the pod may not show yet. `pause_s`: the shortest
    pause before the next attempt. `comes_back`: the pod is tried again after its backoff without an
    event. `is_elsewhere`: the API reports that the pod has a node, which the watch has not shown
    yet, so no condition is written.
    """

    message: str
    reason: str
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    nomination: Nomination = CLEARED
    rejection: Rejection | None = None
    is_patient: bool = False
    was_nominated: bool = False
    pause_s: float = 0.0
    comes_back: bool = False
    is_elsewhere: bool = False

    @property
    def is_error(self) -> bool:
        return self.reason == names.REASON_SCHEDULER_ERROR


def unschedulable(message: str, nomination: Nomination = CLEARED) -> Failure:
    """A failure that no plugin caused."""
    return Failure(message, names.REASON_UNSCHEDULABLE, nomination=nomination)


def error(message: str) -> Failure:
    return Failure(message, names.REASON_SCHEDULER_ERROR)


class Tried(msgspec.Struct):
    """The result of the trial of one pod.

    A pod has a place (`decision`), or a `failure`, or both: then the place is free once the
    background of `post_filter`, the result of the PostFilter plugins, has evicted the victims.
    """

    attempt: Attempt
    decision: Decision | None = None
    #: the record of the decision
    history_entry: StoredEntry | None = None
    failure: Failure | None = None
    permit: Status | None = None
    #: while the place is reserved
    waiting: WaitingPod | None = None
    post_filter: PostFilterResult | None = None
    duration_s: float = 0.0

    def withdraw_post_filter(self) -> None:
        """Withdraw what PostFilter plugins prepared."""
        if self.post_filter is not None:
            self.post_filter.drop()
            self.post_filter = None

    @property
    def waits_for_victims(self) -> bool:
        return self.failure is not None and self.decision is not None


class FollowUp(Protocol):
    """Work that follows an attempt: a binding, or what PostFilter plugins began."""

    def run(self) -> Generator[Effect, Answer, Any]:
        """Run it to its end."""


class UnitOutcome(NamedTuple):
    """The result of `Unit.place`: pods with a failure return to the queue, the others are bound."""

    tried: Sequence[Tried]
    is_placed: bool
    #: whether extensions are asked for text to add to the condition
    takes_additions: bool = False
    #: work that follows for the unit as a whole
    background: FollowUp | None = None


class Attempts(msgspec.Struct):
    """Attempts at pods that are tried together, in the order in which they are tried. `popped` is
    the one at the pod that was popped from the queue.
    """

    popped: Attempt
    attempts: list[Attempt]
    #: "namespace/name" of a group
    key: str = ""
    #: whether some of its pods have still to be popped
    is_gathering: bool = False

    @property
    def pod(self) -> Pod:
        return self.popped.info.pod

    @property
    def runner(self) -> Runner:
        return self.attempts[0].runner

    @property
    def consults(self) -> bool:
        """Whether extenders are called for a pod."""
        return any(attempt.consults for attempt in self.attempts)


class Unit(Attempts):
    """Pods that the scheduling cycle places together, or a pod by itself."""

    def begin_again(self, context: SchedulerContext) -> None:
        """Begin now, after a wait for other cycles."""
        self.popped.started_s = context.monotonic_s()
        for attempt in tuple(self.attempts):
            runner = context.runner_of(attempt.pod)
            if runner is not None:
                attempt.runner = runner
                attempt.queued.profile = attempt.profile
            else:  # the last reload removed its profile
                context.queue.done(attempt.pod.uid)
                self.attempts.remove(attempt)

    @abstractmethod
    def place(self, context: SchedulerContext) -> Generator[Effect, Answer, UnitOutcome]:
        """Reserve places for all pods, or return why there are none. No pod is obsolete."""

    def report(
        self,
        context: SchedulerContext,  # noqa: ARG002
        outcome: UnitOutcome,  # noqa: ARG002
        added: str,  # noqa: ARG002
    ) -> Iterable[Effect]:
        """Called once the pods are bound or queued again. `added`: the text of extensions."""
        return ()

    def undo(self, context: SchedulerContext) -> Iterable[Effect]:  # noqa: ARG002
        """Give back all places, because an exception ended the attempt."""
        return ()
