"""End a failed attempt: return the pod to the queue, and write its condition and an event.

An equal condition makes no request, a changed message only changes the message. A pod that was
deleted, created anew, or placed by another scheduler meanwhile is not written. Unlike upstream, a
PodScheduled=True of another scheduler is never overwritten with False (DECISIONS.md).

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (handleSchedulingFailure)
"""

from collections.abc import Iterator
from typing import Final

from asched import names
from asched.core.cluster.cluster import CannotAssumeError
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.queue_steps import room_is_free
from asched.core.cycle.unit import CLEARED, Failure, error, unschedulable
from asched.core.framework.effects import Effect, PatchPodStatus, ref_of
from asched.core.framework.points import Nomination
from asched.core.framework.rejection import NO_NODES
from asched.core.framework.runner import NoNodesError
from asched.core.model.pod import Pod, PodCondition, difference

#: The API's limit of an event's note in bytes; longer notes end in an ellipsis.
NOTE_BYTES_MAX: Final = 1024
_ELLIPSIS: Final = " ..."
#: The end of an unschedulable pod's event and condition with the flag --explain-hint. Without the
#: flag the message is kube-scheduler's, which programs compare.
ADVICE_BEGINS: Final = " Ask why: "
ADVICE: Final = ADVICE_BEGINS + "kubectl asched explain -n {0.metadata.namespace} {0.metadata.name}"


def fail(context: SchedulerContext, attempt: Attempt, failure: Failure) -> Iterator[Effect]:
    """Requeue the pod; yield its event and the change of its status."""
    message, reason, nomination = failure.message, failure.reason, failure.nomination
    result = "error" if failure.is_error else "unschedulable"
    context.observer.attempt_ended(
        result, attempt.profile, context.monotonic_s() - attempt.started_s
    )
    context.observer.scheduling_failed(attempt.pod.key, reason, message)
    if failure.rejection is None:
        context.tell(attempt, DecisionStep.ERROR, message)
    else:
        woken_by, nodes = attempt.queued.woken_by, context.cluster.nodes
        kept, size_bytes = context.decision_records.refused(failure.rejection, woken_by, nodes)
        context.tell(attempt, DecisionStep.REJECTED, kept, size_bytes)
    now = context.cluster.pods_seen.get(attempt.pod.key)
    if now is None or now.uid != attempt.pod.uid or now.spec.node_name:
        context.queue.done(attempt.pod.uid)
        return
    if context.cluster.is_assumed(now.uid):
        context.queue.done(now.uid)
        return
    nominated = context.nominator.node_of(now.uid)
    if context.owns(now):
        # A nomination that was sent may not be in the pod yet.
        node = nominated if nomination.node is None else nomination.node
        context.queue.return_failed(
            attempt.queued,
            now,
            failure.rejectors,
            failure.pending,
            context.now_s,
            is_patient=failure.is_patient,
            is_promised=bool(node) or failure.comes_back,
            pause_s=failure.pause_s,
        )
        context.nominator.add(now, node)
        if nominated is not None and nominated != context.nominator.node_of(now.uid):
            room_is_free(context, now, nominated, except_uid=now.uid)
    else:  # a reload removed the profile, or the pod's scheduler name changed
        context.queue.done(now.uid)
        nomination = CLEARED
    if failure.is_elsewhere:
        return
    advice = "" if failure.is_error or not context.advises else ADVICE.format(attempt.pod)
    text = note(message, advice)
    yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", text)
    was_nominated = failure.was_nominated or (nominated is not None and not nomination.node)
    wall_s = context.cluster.wall_clock_s
    text = message + advice
    patch = status_patch(now, reason, text, nomination, wall_s, was_nominated=was_nominated)
    if patch is not None:
        yield patch


def note(message: str, advice: str = "") -> str:
    """The message, shortened to an event's limit, and the whole advice."""
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
    """The change of the pod's status, or None if nothing changes."""
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


def end_nomination(context: SchedulerContext, pod: Pod) -> Iterator[Effect]:
    """Give back the room that was promised to a pod that waits."""
    now, node = context.cluster.pods_seen.get(pod.key), context.nominator.node_of(pod.uid)
    if now is None or now.uid != pod.uid or node is None or now.uid in context.cluster.placed:
        return
    context.nominator.delete(now.uid)
    room_is_free(context, now, node, except_uid=now.uid)
    types = tuple(c.type for c in now.status.conditions or ())
    yield PatchPodStatus(
        pod=ref_of(now), condition_types=types, nominated_node_name="", wants_answer=False
    )


def failure_of(context: SchedulerContext, raised: BaseException, about: str = "") -> Failure:
    """The failure of an attempt that an exception ended."""
    if isinstance(raised, NoNodesError):
        return unschedulable(NO_NODES)
    if isinstance(raised, CannotAssumeError):
        return error(str(raised))
    return error(context.contain(raised, "schedule", about))


def skip(context: SchedulerContext, attempt: Attempt) -> Iterator[Effect]:
    """End an attempt at a pod that needs none any more."""
    pod = attempt.pod
    now = context.cluster.pods_seen.get(pod.key)
    if now is not None and now.uid == pod.uid and now.is_terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", note)
    context.queue.done(pod.uid)
