"""What follows a failed attempt: the pod goes back to the queue, its condition and an event say
why.

Nothing is written that the pod already says: an equal condition makes no request, a changed message
only the message. A pod that is gone, placed by somebody else, or created anew meanwhile is left
alone; unlike upstream, nobody writes PodScheduled=False over somebody else's True (DECISIONS.md).

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (handleSchedulingFailure)
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from asched import names
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.queue_steps import room_is_free
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect, PatchPodStatus, ref_of
from asched.core.framework.points import Nomination
from asched.core.model.condition import difference
from asched.core.model.pod import Pod, PodCondition

#: An event's note holds no more (bytes); longer ones end in an ellipsis.
NOTE_BYTES_MAX: Final = 1024
_ELLIPSIS: Final = " ..."
#: What the event and the condition of a pod that fits nowhere end with where the flag
#: --explain-hint asks for it; without it the words are kube-scheduler's, which programs compare.
ADVICE_BEGINS: Final = " Ask why: "
ADVICE: Final = ADVICE_BEGINS + "kubectl asched explain -n {0.metadata.namespace} {0.metadata.name}"

CLEARED: Final = Nomination("")
KEPT: Final = Nomination(None)


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt came to nothing, in the words in which it is told.

    Without rejectors the queue takes it for an error, whatever the reason. `rejection` is what
    stands behind it, for the history. `is_patient`: the pod waits out its backoff.
    `was_nominated`: this attempt wrote a nomination, which the pod as last seen may not show yet.
    `pause_s`: so long at least. `comes_back`: it is tried again after its backoff, whatever
    happens. `is_elsewhere`: the API says that the pod has a node, and the watch has yet to tell; it
    is not ours to write that it has none.
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
    """No plugin is to blame for it."""
    return Failure(message, names.REASON_UNSCHEDULABLE, nomination=nomination)


def error(message: str) -> Failure:
    return Failure(message, names.REASON_SCHEDULER_ERROR)


def fail(context: SchedulerContext, attempt: Attempt, failure: Failure) -> Iterator[Effect]:
    """Requeue the pod and tell why."""
    message, reason, nomination = failure.message, failure.reason, failure.nomination
    result = "error" if failure.is_error else "unschedulable"
    context.observer.attempt_ended(result, attempt.profile, context.counter_s() - attempt.started_s)
    context.observer.scheduling_failed(attempt.pod.key, reason, message)
    if failure.rejection is None:
        context.tell(attempt, DecisionStep.ERROR, message)
    else:
        woken_by, nodes = attempt.queued.woken_by, context.cluster.nodes
        kept, size_bytes = context.patterns.refused(failure.rejection, woken_by, nodes)
        context.tell(attempt, DecisionStep.REJECTED, kept, size_bytes)
    now = context.cluster.pods_seen.get(attempt.pod.key)
    if now is None or now.uid != attempt.pod.uid or now.spec.node_name:
        context.queue.done(attempt.pod.uid)
        return
    if context.cluster.is_assumed(now.uid):
        context.queue.done(now.uid)
        return
    if attempt.profile in context.runners:
        attempt.queued.pause_s = failure.pause_s
        context.queue.return_failed(
            attempt.queued,
            now,
            failure.rejectors,
            failure.pending,
            context.now_s,
            is_patient=failure.is_patient,
            is_promised=bool(nomination.node) or failure.comes_back,
        )
        promised = context.nominator.node_of(now.uid)
        context.nominator.add(now, nomination.node)
        if promised is not None and promised != context.nominator.node_of(now.uid):
            room_is_free(context, now, promised, except_uid=now.uid)
    else:  # it went with a reload: nobody would ever take the pod from the queue
        context.queue.done(now.uid)
        nomination = CLEARED
    if failure.is_elsewhere:
        return
    advice = "" if failure.is_error or not context.advises else ADVICE.format(attempt.pod)
    said = note(message, advice)
    yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", said)
    was_nominated = failure.was_nominated
    wall_s = context.cluster.wall_clock_s
    told = message + advice
    patch = status_patch(now, reason, told, nomination, wall_s, was_nominated=was_nominated)
    if patch is not None:
        yield patch


def note(message: str, advice: str = "") -> str:
    """The message as an event may carry it, and all of the advice."""
    raw, bytes_max = message.encode(), NOTE_BYTES_MAX - len(advice.encode())
    if len(raw) <= bytes_max:
        return message + advice
    return raw[: bytes_max - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS + advice


def status_patch(
    pod: Pod,
    reason: str,
    message: str,
    nomination: Nomination,
    now_s: float,
    *,
    was_nominated: bool = False,
) -> PatchPodStatus | None:
    """What of the pod's status must change, or None if it says all of this already."""
    wanted = PodCondition(
        type=names.POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation or None,
    )
    condition = difference(pod.condition(names.POD_SCHEDULED), wanted, now_s)
    nominated = nomination.node
    if nominated == pod.status.nominated_node_name and not was_nominated:
        nominated = None
    if condition is None and nominated is None:
        return None
    types = [c.type for c in pod.status.conditions or ()]
    if types and names.POD_SCHEDULED not in types:  # a first condition needs no order
        types.append(names.POD_SCHEDULED)
    return PatchPodStatus(
        pod=ref_of(pod),
        condition=condition,
        condition_types=tuple(types),
        nominated_node_name=nominated,
        wants_answer=False,
    )
