"""The scheduling cycle: from a popped pod to a reserved node or a rejection.

    skip checks ─> runner.schedule ─> assume ─> Reserve ─> Permit ─> the binding cycle takes over
                        └─> Rejection ─> PostFilter ─> back to the queue

One cycle runs at a time. It is a generator because it may call an extender, and because an attempt
that costs more than a slice of the budget pauses, and is then made again from the beginning.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (schedulingCycle)
"""

from collections.abc import Generator, Iterator, Sequence
from typing import ClassVar, NamedTuple

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.budget import SLICES_MAX, OutOfTurn
from asched.core.cluster.cluster import CannotAssumeError
from asched.core.cluster.facts import Answer
from asched.core.config.new_nodes import node_helps
from asched.core.cycle.binding import Binding, end_failed, give_back
from asched.core.cycle.context import SUCCEEDED, Attempt, SchedulerContext
from asched.core.cycle.extension import Addition, Finding
from asched.core.cycle.failure import CLEARED, KEPT, Failure, error, fail, unschedulable
from asched.core.cycle.history import DecisionStep, chosen
from asched.core.framework.attempt import NO_NODES, Rejection, fit_error
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.placements import Mask
from asched.core.framework.points import Late, PostFilterResult
from asched.core.framework.results.nominated import FOR_A_MOMENT
from asched.core.framework.runner import Decision, NoNodesError
from asched.core.framework.status import MISTAKES, SUCCESS, Code, Status, failure
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX, Stage, WaitingPod
from asched.core.model.pod import Pod
from asched.core.queue.queued import NO_NAMES


class Background(msgspec.Struct):
    """Work of a PostFilter plugin after the attempt, mostly evictions."""

    context: SchedulerContext
    pod: Pod
    steps: Late
    preemptor: ClassVar = "pod"

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        """Run the work to its end. A plugin's exception costs its pod this attempt only."""
        started_s = self.context.counter_s()
        status = yield from _contained(self.context, self.steps)
        is_done = status.is_success or status.code is Code.SKIP
        result = "success" if is_done else "error"
        took_s = self.context.counter_s() - started_s
        self.context.observer.preempted(result, took_s, self.preemptor)
        if not is_done:
            self.context.observer.preemption_failed(self.pod.key, status.message)
        return status, self.pod


class GivingBack(msgspec.Struct):
    """The end of an attempt whose PostFilter plugins first run steps, such as giving claims back.
    The pod returns to the queue after them, with their result in its message. If they fail, the pod
    is tried again after its backoff, since no event would wake it.
    """

    context: SchedulerContext
    attempt: Attempt
    result: PostFilterResult
    failure: Failure

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        """Run the steps, and then the evictions of a plugin that made room."""
        context, attempt = self.context, self.attempt
        try:
            evicting = yield from self._given_back()
        except MISTAKES as raised:
            self.result.drop()
            failure = failure_of(context, raised, attempt.pod.key)
            yield from end_failed(context, attempt, failure)
            evicting = None
        if evicting is None:
            return SUCCESS, attempt.pod
        return (yield from Background(context, attempt.pod, evicting).run())

    def _given_back(self) -> Generator[Effect, Answer, Late | None]:
        """Run the steps and return the pod to the queue; returns evictions to run afterwards."""
        context, attempt, why = self.context, self.attempt, self.failure
        for steps in self.result.first:
            status = yield from _contained(context, steps)
            if not (status.is_success or status.code is Code.SKIP):
                self.result.drop()
                message = status.message
                if why.rejection is not None:
                    message = why.rejection.message(message)
                why = replace(
                    why, message=message, nomination=KEPT, rejectors=NO_NAMES, pending=NO_NAMES
                )
                yield from fail(context, attempt, why)
                return None
        if is_obsolete(context, attempt):
            self.result.drop()
            yield from skip(context, attempt)
            return None
        yield from fail(context, attempt, why)
        return self.result.background


#: The result of a cycle: a binding to run, background work to start, or nothing.
Next = Binding | Background | GivingBack | None


def _contained(context: SchedulerContext, steps: Late) -> Generator[Effect, Answer, Status]:
    """Run a PostFilter plugin's steps; an exception becomes a status."""
    try:
        return (yield from steps)
    except MISTAKES as error:
        return failure(context.contain(error, "postFilter"))


def schedule_one(context: SchedulerContext, attempt: Attempt) -> Generator[Effect, Answer, Next]:
    """Try one pod. On every return the pod is reserved, queued again or done in the queue."""
    while True:
        try:
            if is_obsolete(context, attempt):
                yield from skip(context, attempt)
                return None
            found = yield from find_node(context, attempt)
            context.observer.algorithm_ran(context.counter_s() - attempt.started_s)
            if isinstance(found, Rejection):
                return (yield from _rejected(context, attempt, found))
            tell_node(context, attempt, found)
            reserved = yield from hold(context, attempt, found)
            if isinstance(reserved, Failure):
                yield from fail(context, attempt, reserved)
                return None
            for placed in context.extensions.placed:
                placed(attempt.pod)
            return Binding(context, attempt, found.node, reserved.waiting)
        except OutOfTurn as stop:
            ended = yield from out_of_turn(attempt, stop)
            if ended is None:
                continue
            failure = ended
        except MISTAKES as raised:
            failure = failure_of(context, raised, attempt.pod.key)
        break
    yield from end_failed(context, attempt, failure)
    return None


def find_node(context: SchedulerContext, attempt: Attempt, within: Mask | None = None) -> Finding:
    """Find a node. Raises as `Runner.schedule` does. `within` bool[N]: only these rows."""
    place = context.extensions.place
    if place is not None:
        return place(attempt, within)
    return attempt.runner.schedule(attempt.info, context.seed + attempt.id, within)


def additions(
    context: SchedulerContext, attempts: Sequence[Attempt]
) -> Generator[Effect, Answer, Addition]:
    """What extensions add to the condition of a unit that found no place."""
    words, do_not_help = "", False
    for rejected in context.extensions.rejected:
        added = yield from rejected(attempts)
        words += added.text
        do_not_help |= added.new_nodes_do_not_help
    return Addition(words, do_not_help)


def out_of_turn(attempt: Attempt, stop: OutOfTurn) -> Generator[Effect, Answer, Failure | None]:
    """Pause before the attempt is made again; returns a failure if it used up all its slices."""
    attempt.slices += 1
    if attempt.slices >= SLICES_MAX:
        return error(str(stop))
    yield Pause()
    return None


def is_obsolete(context: SchedulerContext, attempt: Attempt) -> bool:
    """Whether the pod needs no attempt any more: deleted, replaced or placed."""
    if context.why_not_placed(attempt):
        return True
    return attempt.info.pod.metadata.uid in context.cluster.placed


def skip(context: SchedulerContext, attempt: Attempt) -> Iterator[Effect]:
    """End an attempt at a pod that needs none any more."""
    pod = attempt.pod
    now = context.cluster.pods_seen.get(pod.key)
    if now is not None and now.uid == pod.uid and now.is_terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", note)
    context.queue.done(pod.uid)


def failure_of(context: SchedulerContext, raised: BaseException, about: str = "") -> Failure:
    """The failure of an attempt that an exception ended."""
    if isinstance(raised, NoNodesError):
        return unschedulable(NO_NODES)
    if isinstance(raised, CannotAssumeError):
        return error(str(raised))
    return error(context.contain(raised, "schedule", about))


def _rejected(
    context: SchedulerContext, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, Next]:
    """Try to make room for a pod without a node, then return it to the queue."""
    result = yield from make_room(context, attempt, rejection)
    try:
        if is_obsolete(context, attempt):
            yield from skip(context, attempt)
            return None
        if result is not None and result.victims:
            count = len(result.victims)
            context.observer.preempting(count, result.violations, result.disruptions)
        why = rejected(rejection, result)
        if context.extensions.rejected and not why.nomination.node:
            added = yield from additions(context, (attempt,))
            why = replace(why, message=why.message + added.text)
            if added.new_nodes_do_not_help:
                why = replace(why, reason=names.REASON_NEW_NODES_DO_NOT_HELP)
        if result is not None and result.first:
            return GivingBack(context, attempt, result, why)
        yield from fail(context, attempt, why)
    except MISTAKES:
        if result is not None:
            result.drop()
        raise
    if result is None or result.background is None:
        return None
    return Background(context, attempt.pod, result.background)


def make_room(
    context: SchedulerContext, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, PostFilterResult | None]:
    """Run the PostFilter plugins; None without any, or if the pod was deleted or placed while an
    extender was called: then no victim is evicted.
    """
    runner = attempt.runner
    if not runner.profile.post_filters or is_obsolete(context, attempt):
        return None
    state = runner.cache.state_of(attempt.info)
    trial = runner.trial(state, context.waiting, context.seed + attempt.id, context.now_s)
    if attempt.pod.spec.scheduling_group is not None:
        gangs = context.gangs
        in_placements, is_of_group = gangs.tries_placements, gangs.makes_room
        trial = replace(trial, in_placements=in_placements, is_of_group=is_of_group)
    started_s = context.counter_s()
    result = yield from runner.post_filter(attempt.info, rejection, trial)
    if is_obsolete(context, attempt):
        result.drop()
        return None
    if any(plugin.preempts for plugin in runner.profile.post_filters):
        context.observer.preemption_tried()
    context.point_ran(attempt, "PostFilter", result.status.code.text, started_s)
    if result.nomination.node:
        seen = context.cluster.pods_seen
        victims = tuple([(key, seen[key].priority) for key in result.victims if key in seen])
        context.tell(attempt, DecisionStep.NOMINATED, (result.nomination.node, victims))
    return result


def rejected(rejection: Rejection, result: PostFilterResult | None) -> Failure:
    """The failure of a pod that fits on no node. A pod that a node rejects only for a time is tried
    again after its backoff, because no event marks the end of that time.
    """
    comes_back = not FOR_A_MOMENT.isdisjoint(rejection.overrides.values())
    statuses = [status for status, count in rejection.statuses() if count]
    helps = (
        bool(rejection.absent_count)
        or not statuses
        or any(node_helps(status.plugin, status.message) for status in statuses)
    )
    return Failure(
        rejection.message("" if result is None else result.status.message),
        names.REASON_UNSCHEDULABLE if helps else names.REASON_NEW_NODES_DO_NOT_HELP,
        rejectors=frozenset() if comes_back else rejection.unschedulable_plugins,
        pending=frozenset() if comes_back else rejection.pending_plugins,
        nomination=CLEARED if result is None else result.nomination,
        rejection=rejection,
    )


def tell_node(context: SchedulerContext, attempt: Attempt, decision: Decision) -> None:
    attempt.line = line = chosen(context, attempt, decision)
    context.histories.add(line)


class ReservedPlace(NamedTuple):
    """A reserved place. `permit`: SUCCESS, or WAIT for the plugins in `waiting.deadlines`."""

    waiting: WaitingPod
    permit: Status


def hold(
    context: SchedulerContext, attempt: Attempt, decision: Decision
) -> Generator[Effect, Answer, ReservedPlace | Failure]:
    """Assume the pod on its node, then run Reserve and Permit.

    If one of them rejects, everything is given back. Raises CannotAssumeError.
    """
    info, node, company = attempt.info, decision.node, attempt.company
    reason = context.why_not_placed(attempt) if company is None else ""
    if reason:
        return unschedulable(reason)
    attempt.pre_binds = decision.state.active_plugins.pre_binds
    context.cluster.assume(info, node)
    if info.pod.metadata.uid in context.nominator.by_uid:
        context.nominator.delete(info.pod.metadata.uid)
    status = SUCCESS
    if decision.state.active_plugins.reserves:
        status = _ask_reserve(context, attempt, decision)
    else:
        context.point_passed(attempt, "Reserve")
    if status.code is not Code.SUCCESS:
        yield from give_back(context, attempt, node)
        return _refusal(status, "Reserve")
    waiting = WaitingPod(info, node, attempt.runner.profile.scheduler_name)
    if company is not None:
        return ReservedPlace(waiting, company.permit(info.pod.uid))
    if attempt.runner.profile.permits:
        status = _ask_permit(context, attempt, waiting)
    else:
        context.point_passed(attempt, "Permit")
    if status.code not in (Code.SUCCESS, Code.WAIT):
        yield from give_back(context, attempt, node)
        return _refusal(status, "Permit")
    if waiting.deadlines:
        waiting.stage = Stage.PERMIT
    context.waiting.add(waiting)
    return ReservedPlace(waiting, status)


def _ask_reserve(context: SchedulerContext, attempt: Attempt, decision: Decision) -> Status:
    """Run the Reserve plugins until one fails."""
    outcome, started_s = SUCCESS, context.counter_s()
    for plugin in decision.state.active_plugins.reserves:
        data = decision.state.data_of(plugin.name)
        begun_s = context.counter_s()
        status = plugin.reserve(attempt.info, decision.node, data)
        context.plugin_ran(attempt, plugin.name, "Reserve", status, begun_s)
        if not status.is_success:
            outcome = status.by(plugin.name)
            break
    context.point_ran(attempt, "Reserve", outcome.code.text, started_s)
    return outcome


def _ask_permit(context: SchedulerContext, attempt: Attempt, waiting: WaitingPod) -> Status:
    """Run the Permit plugins; the deadlines of plugins that wait are stored in `waiting`."""
    outcome, is_measured = SUCCESS, attempt.is_measured
    begun_s = started_s = context.counter_s()
    for permit in attempt.runner.profile.permits:
        status, patience_s = permit.permit(attempt.info, waiting.node)
        if is_measured:
            context.plugin_ran(attempt, permit.name, "Permit", status, begun_s)
            begun_s = context.counter_s()
        if status is SUCCESS:  # the usual case
            continue
        if status.code is Code.WAIT:
            patience_s = min(patience_s, PERMIT_TIMEOUT_S_MAX)
            waiting.deadlines[permit.name] = (context.now_s + patience_s, patience_s)
            outcome = status
        elif not status.is_success:
            outcome = status.by(permit.name)
            break
    code = SUCCEEDED if outcome is SUCCESS else outcome.code.text
    context.point_ran(attempt, "Permit", code, started_s)
    return outcome


def _refusal(status: Status, point: str) -> Failure:
    if not status.is_rejection:
        return error(f'running {point} plugin "{status.plugin}": {status.message}')
    message = fit_error(1, "", dict.fromkeys(status.reasons, 1), "")
    blamed, reason = frozenset((status.plugin,)), names.REASON_UNSCHEDULABLE
    if not node_helps(status.plugin, status.message):
        reason = names.REASON_NEW_NODES_DO_NOT_HELP
    if status.code is Code.PENDING:
        return Failure(message, reason, pending=blamed)
    return Failure(message, reason, blamed)
