"""Place one pod: by itself, or as one of a group.

    filters, scores ─> node ─> assume, Reserve, Permit ─> the place is held
          └─> PostFilter ─> a node once victims are gone, or none

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (schedulingCycle)
"""

from collections.abc import Generator

from asched import names
from asched.core.cluster.budget import SLICES_MAX, OutOfTurn
from asched.core.cluster.facts import Answer
from asched.core.config.new_nodes import node_helps
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import SUCCEEDED, SchedulerContext
from asched.core.cycle.failure import failure_of
from asched.core.cycle.post_filter import make_room, rejected
from asched.core.cycle.queue_steps import room_is_free
from asched.core.cycle.unit import Failure, Tried, Unit, UnitOutcome, error, unschedulable
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.placements import Mask
from asched.core.framework.rejection import Rejection, fit_error
from asched.core.framework.runner import Decision
from asched.core.framework.status import MISTAKES, SUCCESS, Code, Status, raise_plugin_error
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX, Stage, WaitingPod


class PodUnit(Unit):
    """The unit of a pod by itself."""

    def place(self, context: SchedulerContext) -> Generator[Effect, Answer, UnitOutcome]:
        """Reserve a place for the pod, or return why there is none."""
        tried = yield from try_pod(context, self.popped)
        why = tried.failure
        if why is None:
            return UnitOutcome((tried,), is_placed=True)
        finds_none = why.rejection is not None and not why.nomination.node
        takes_additions = finds_none and not context.is_obsolete(self.popped)
        return UnitOutcome((tried,), is_placed=False, takes_additions=takes_additions)


def try_pod(
    context: SchedulerContext,
    attempt: Attempt,
    within: Mask | None = None,
    *,
    makes_room: bool = True,
    takes_nominated: bool = False,
) -> Generator[Effect, Answer, Tried]:
    """Find a node and reserve it, or else make room. `within` bool[N]: only these rows.
    `takes_nominated`: reserve the nominated node, too, as if its victims were gone.

    Nothing is requested yet, and the pod is not queued. An exception costs it this attempt only.
    """
    tried = Tried(attempt)
    try:
        decision = yield from _find(context, tried, within, makes_room=makes_room)
        if decision is None and takes_nominated:
            decision = _nominated(context, tried)
        if decision is not None:
            yield from _reserve(context, tried, decision)
    except MISTAKES as raised:
        tried.failure = failure_of(context, raised, attempt.pod.key)
        tried.withdraw_post_filter()
        tried.decision = None
        if context.cluster.is_assumed(attempt.pod.uid):
            yield from give_back(context, attempt, attempt.info.node_name)
        context.waiting.drop(attempt.pod.uid)
    return tried


def _find(
    context: SchedulerContext, tried: Tried, within: Mask | None, *, makes_room: bool
) -> Generator[Effect, Answer, Decision | None]:
    """Find a node over as many turns as needed; without one, `tried.failure` has the reason."""
    attempt, place = tried.attempt, context.extensions.place
    while True:
        try:
            if place is not None:
                result = yield from place(attempt, within)
            else:
                seed = context.seed + attempt.id
                result = yield from attempt.runner.schedule(attempt.info, seed, within)
            context.observer.algorithm_ran(context.monotonic_s() - attempt.started_s)
            if not isinstance(result, Rejection):
                return result
            evicts = makes_room and not context.extensions.defers_evictions(attempt)
            tried.post_filter = (yield from make_room(context, attempt, result)) if evicts else None
            tried.failure = rejected(result, tried.post_filter, attempt.pod, context.cluster)
        except OutOfTurn as stop:  # made again from the beginning, with the results so far
            attempt.slices += 1
            if attempt.slices >= SLICES_MAX:
                tried.failure = error(str(stop))
                return None
            yield Pause()
            is_real = attempt.hypothetical_gang is None  # not a pod of a ProvisioningRequest
            if is_real and context.is_obsolete(attempt):
                tried.failure = unschedulable(context.why_not_placed(attempt))
                return None
        else:
            return None


def _nominated(context: SchedulerContext, tried: Tried) -> Decision | None:
    """The node that the pod gets once the victims of `tried.post_filter` are gone."""
    post_filter, nodes = tried.post_filter, context.cluster.nodes
    node = post_filter.nomination.node if post_filter else None
    row = nodes.row_of.get(node) if node else None
    if not node or row is None:
        return None
    state = tried.attempt.runner.cache.state_of(tried.attempt.info)
    return Decision(node, row, 0, nodes.count, None, state)


def _reserve(
    context: SchedulerContext, tried: Tried, decision: Decision
) -> Generator[Effect, Answer, None]:
    """Assume the pod on its node, then run Reserve and Permit. If one of them rejects, everything
    is given back. Raises CannotAssumeError.
    """
    attempt = tried.attempt
    info, node, gang = attempt.info, decision.node, attempt.hypothetical_gang
    attempt.evaluated, attempt.feasible = decision.evaluated, decision.feasible
    if context.on_decision is not None:
        context.on_decision(attempt, decision)
    tried.history_entry = context.decision_records.chosen(
        decision, attempt.id, attempt.queued, context.now_s, context.cluster.nodes
    )
    reason = context.why_not_placed(attempt) if gang is None else ""
    if reason:
        tried.failure = unschedulable(reason)
        return
    attempt.pre_binds = decision.state.active_plugins.pre_binds
    context.cluster.assume(info, node)
    if info.pod.metadata.uid in context.nominator.by_uid:
        nominated = context.nominator.node_of(info.pod.metadata.uid)
        context.nominator.delete(info.pod.metadata.uid)
        if nominated and nominated != node and gang is None:
            room_is_free(context, info.pod, nominated)
    status = SUCCESS
    if decision.state.active_plugins.reserves:
        status = _ask_reserve(context, attempt, decision)
    else:
        context.point_passed(attempt, "Reserve")
    if status.code is not Code.SUCCESS:
        yield from give_back(context, attempt, node)
        tried.failure = _refusal(status, "Reserve")
        return
    waiting = WaitingPod(info, node, attempt.runner.profile.scheduler_name)
    if gang is not None:
        tried.permit = gang.permit(info.pod.uid)
        tried.decision, tried.waiting = decision, waiting
        return
    if attempt.runner.profile.permits:
        status = _ask_permit(context, attempt, waiting)
    else:
        context.point_passed(attempt, "Permit")
    if status.code not in (Code.SUCCESS, Code.WAIT):
        yield from give_back(context, attempt, node)
        tried.failure = _refusal(status, "Permit")
        return
    if waiting.deadlines:
        waiting.stage = Stage.PERMIT
    context.waiting.add(waiting)
    tried.decision, tried.waiting, tried.permit = decision, waiting, status


def _ask_reserve(context: SchedulerContext, attempt: Attempt, decision: Decision) -> Status:
    """Run the Reserve plugins until one fails."""
    outcome, started_s = SUCCESS, context.monotonic_s()
    try:
        for plugin in decision.state.active_plugins.reserves:
            data = decision.state.data_of(plugin.name)
            begun_s = context.monotonic_s()
            status = plugin.reserve(attempt.info, decision.node, data)
            context.plugin_ran(attempt, plugin.name, "Reserve", status, begun_s)
            if not status.is_success:
                outcome = status.by(plugin.name)
                break
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "reserve", raised)
    context.point_ran(attempt, "Reserve", outcome.code.text, started_s)
    return outcome


def _ask_permit(context: SchedulerContext, attempt: Attempt, waiting: WaitingPod) -> Status:
    """Run the Permit plugins; the deadlines of plugins that wait are stored in `waiting`."""
    outcome, is_measured = SUCCESS, attempt.is_measured
    begun_s = started_s = context.monotonic_s()
    for permit in attempt.runner.profile.permits:
        try:
            status, patience_s = permit.permit(attempt.info, waiting.node)
        except MISTAKES as raised:
            raise_plugin_error(permit.name, "permit", raised)
        if is_measured:
            context.plugin_ran(attempt, permit.name, "Permit", status, begun_s)
            begun_s = context.monotonic_s()
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
