"""The scheduling cycle: one pod, from the head of the queue to a reserved node or a reason.

    skip checks ─> runner.schedule ─> assume ─> Reserve ─> Permit ─> the binding cycle takes over
                        └─> Rejection ─> PostFilter ─> back to the queue

Strictly one at a time. A generator only because an extender may have to be asked, and because an
attempt that costs more than a slice of the budget pauses: then it is made again from the top.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (schedulingCycle)
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import NamedTuple

from asched import names
from asched.core.cycle.binding import Binding, give_back
from asched.core.cycle.desk import Attempt, Desk, blame
from asched.core.cycle.failure import CLEARED, Failure, error, fail, unschedulable
from asched.core.cycle.story import Step
from asched.core.framework.attempt import NO_NODES, Rejection, fit_error
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.points import Late, PostFilterResult
from asched.core.framework.runner import Decision, NoNodesError
from asched.core.framework.status import SUCCESS, Code, PointError, Status, failure
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX, Stage, WaitingPod
from asched.core.model.pod import Pod
from asched.core.state.budget import SLICES_MAX, OutOfTurn
from asched.core.state.cluster import CannotAssumeError
from asched.core.state.facts import Answer


@dataclass(slots=True)
class Background:
    """What a PostFilter plugin does after the attempt, evictions for the most part."""

    desk: Desk
    pod: Pod
    steps: Late

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        """To its end, which may be an error: a plugin's bug costs its pod an attempt, no more."""
        started_s = self.desk.counter_s()
        try:
            status = yield from self.steps
        except Exception as error:  # noqa: BLE001 - a plugin's bug costs its pod an attempt, no more
            status = failure(self.desk.contain(error, "postFilter"))
        is_done = status.is_success or status.code is Code.SKIP
        result = "success" if is_done else "error"
        self.desk.observer.preempted(result, self.desk.counter_s() - started_s)
        return status, self.pod


#: What a cycle leads to: a binding to run, background work to start, or nothing.
Next = Binding | Background | None


def schedule_one(desk: Desk, attempt: Attempt) -> Generator[Effect, Answer, Next]:
    """Try one pod. Every way out has told the queue what becomes of the pod."""
    while True:
        if (yield from is_skipped(desk, attempt)):
            return None
        try:
            found = yield from attempt.runner.schedule(attempt.info, desk.seed + attempt.id)
            desk.observer.algorithm_ran(desk.counter_s() - attempt.started_s)
            if isinstance(found, Rejection):
                return (yield from _rejected(desk, attempt, found))
            return (yield from _reserve(desk, attempt, found))
        except OutOfTurn as stop:
            ended = yield from out_of_turn(attempt, stop)
            if ended is None:
                continue
            failure = ended
        except Exception as raised:  # noqa: BLE001 - `failure_of` raises what is no plugin's fault
            failure = failure_of(desk, raised)
        break
    if desk.cluster.is_assumed(attempt.pod.uid):
        yield from give_back(desk, attempt, attempt.info.node_name)
    yield from fail(desk, attempt, failure)
    return None


def out_of_turn(attempt: Attempt, stop: OutOfTurn) -> Generator[Effect, Answer, Failure | None]:
    """Pause, after which the attempt is to be made again; or why there is no more of it."""
    attempt.slices += 1
    if attempt.slices >= SLICES_MAX:
        return error(str(stop))
    yield Pause()
    return None


def is_skipped(desk: Desk, attempt: Attempt) -> Generator[Effect, Answer, bool]:
    """Whether the pod needs no attempt any more; then the queue is told."""
    pod, pointless = attempt.pod, desk.why_pointless(attempt)
    if not pointless and pod.uid not in desk.cluster.placed:
        return False
    now = desk.cluster.pods_seen.get(pod.key)
    if now is not None and now.uid == pod.uid and now.is_terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", note)
    desk.queue.done(pod.uid)
    return True


def failure_of(desk: Desk, raised: Exception) -> Failure:
    """What an attempt failed by that ended in an exception. Raises it if no plugin is to blame."""
    if isinstance(raised, NoNodesError):
        return unschedulable(NO_NODES)
    if isinstance(raised, CannotAssumeError):
        return error(str(raised))
    if isinstance(raised, PointError) or blame(raised).plugin:
        return error(desk.contain(raised, "schedule"))
    raise raised


def _rejected(
    desk: Desk, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, Next]:
    """No node: try to make room, then give the pod back to the queue under its rejectors."""
    result = yield from make_room(desk, attempt, rejection)
    if result is not None and result.victims:
        desk.observer.preempting(len(result.victims))
    failure = rejected(rejection, result)
    made_no_room = result is None or (result.background is None and not failure.nomination.node)
    if made_no_room and attempt.runner.speaks_for_class(attempt.info):
        failure = replace(failure, speaks_for_class=True)
    yield from fail(desk, attempt, failure)
    if result is None or result.background is None:
        return None
    return Background(desk, attempt.pod, result.background)


def make_room(
    desk: Desk, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, PostFilterResult | None]:
    """Ask the PostFilter plugins; None if there are none."""
    runner = attempt.runner
    if not runner.profile.post_filters:
        return None
    state = runner.cache.state_of(attempt.info)
    trial = runner.trial(state, desk.waiting, desk.seed + attempt.id, desk.now_s)
    if desk.tries_placements and attempt.pod.spec.scheduling_group is not None:
        trial = replace(trial, in_placements=True)
    started_s = desk.counter_s()
    result = yield from runner.post_filter(attempt.info, rejection, trial)
    if any(plugin.preempts for plugin in runner.profile.post_filters):
        desk.observer.preemption_tried()
    desk.point_ran(attempt, "PostFilter", result.status.code.text, started_s)
    if result.nomination.node:
        desk.tell(attempt, Step.NOMINATED, result.nomination.node)
    return result


def rejected(rejection: Rejection, result: PostFilterResult | None) -> Failure:
    """No node fits, and what the PostFilter plugins said to that."""
    return Failure(
        rejection.message("" if result is None else result.status.message),
        names.REASON_UNSCHEDULABLE,
        rejectors=rejection.unschedulable_plugins,
        pending=rejection.pending_plugins,
        nomination=CLEARED if result is None else result.nomination,
        summary=rejection.summary(),
    )


def _reserve(desk: Desk, attempt: Attempt, decision: Decision) -> Generator[Effect, Answer, Next]:
    tell_node(desk, attempt, decision)
    held = yield from hold(desk, attempt, decision)
    if isinstance(held, Failure):
        yield from fail(desk, attempt, held)
        return None
    desk.queue.took_place(attempt.pod.uid)
    return Binding(desk, attempt, decision.node, held.waiting)


def tell_node(desk: Desk, attempt: Attempt, decision: Decision) -> None:
    attempt.evaluated, attempt.feasible = decision.evaluated, decision.feasible
    desk.tell(attempt, Step.NODE, (decision.node, decision.score, decision.feasible))


class Held(NamedTuple):
    """A place that is counted and promised. `permit`: SUCCESS, or WAIT for those in `waiting`."""

    waiting: WaitingPod
    permit: Status


def hold(
    desk: Desk, attempt: Attempt, decision: Decision
) -> Generator[Effect, Answer, Held | Failure]:
    """Count the pod on its node, then let Reserve and Permit have their say.

    If one of them objects, everything is given back. Raises CannotAssumeError.
    """
    info, node = attempt.info, decision.node
    pointless = desk.why_pointless(attempt)
    if pointless:
        return unschedulable(pointless)
    attempt.pre_binds = decision.state.roster.pre_binds
    desk.cluster.assume(info, node)
    desk.nominator.delete(info.pod.uid)
    status = _ask_reserve(desk, attempt, decision)
    if not status.is_success:
        yield from give_back(desk, attempt, node)
        return _refusal(status, "Reserve")
    waiting = WaitingPod(info, node, attempt.profile)
    status = _ask_permit(desk, attempt, waiting)
    if not (status.is_success or status.code is Code.WAIT):
        yield from give_back(desk, attempt, node)
        return _refusal(status, "Permit")
    if waiting.deadlines:
        waiting.stage = Stage.PERMIT
    desk.waiting.add(waiting)
    return Held(waiting, status)


def _ask_reserve(desk: Desk, attempt: Attempt, decision: Decision) -> Status:
    """Let the Reserve plugins note what they promise; the first that cannot ends it."""
    outcome, started_s = SUCCESS, desk.counter_s()
    for plugin in decision.state.roster.reserves:
        data = decision.state.data_of(plugin.name)
        begun_s = desk.counter_s()
        status = plugin.reserve(attempt.info, decision.node, data)
        desk.plugin_ran(attempt, plugin.name, "Reserve", status, begun_s)
        if not status.is_success:
            outcome = status.by(plugin.name)
            break
    desk.point_ran(attempt, "Reserve", outcome.code.text, started_s)
    return outcome


def _ask_permit(desk: Desk, attempt: Attempt, waiting: WaitingPod) -> Status:
    """Ask the Permit plugins; those that want to wait are noted in `waiting`."""
    outcome, started_s = SUCCESS, desk.counter_s()
    for permit in attempt.runner.profile.permits:
        begun_s = desk.counter_s()
        status, patience_s = permit.permit(attempt.info, waiting.node)
        desk.plugin_ran(attempt, permit.name, "Permit", status, begun_s)
        if status.code is Code.WAIT:
            patience_s = min(patience_s, PERMIT_TIMEOUT_S_MAX)
            waiting.deadlines[permit.name] = (desk.now_s + patience_s, patience_s)
            outcome = status
        elif not status.is_success:
            outcome = status.by(permit.name)
            break
    desk.point_ran(attempt, "Permit", outcome.code.text, started_s)
    return outcome


def _refusal(status: Status, point: str) -> Failure:
    if not status.is_rejection:
        return error(f'running {point} plugin "{status.plugin}": {status.message}')
    message = fit_error(1, "", dict.fromkeys(status.reasons, 1), "")
    blamed = frozenset((status.plugin,))
    if status.code is Code.PENDING:
        return Failure(message, names.REASON_UNSCHEDULABLE, pending=blamed)
    return Failure(message, names.REASON_UNSCHEDULABLE, blamed)
