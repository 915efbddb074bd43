"""The scheduling cycle: one pod, from the head of the queue to a reserved node or a reason.

    skip checks ─> runner.schedule ─> assume ─> Reserve ─> Permit ─> the binding cycle takes over
                        └─> Rejection ─> PostFilter ─> back to the queue

Strictly one at a time. A generator only because an extender may have to be asked.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (schedulingCycle)
"""

from collections.abc import Generator
from dataclasses import dataclass

from asched import names
from asched.core.cycle.binding import Binding, give_back
from asched.core.cycle.desk import Attempt, Desk, blame
from asched.core.cycle.failure import CLEARED, fail
from asched.core.cycle.story import Step
from asched.core.framework.attempt import NO_NODES, Rejection, fit_error
from asched.core.framework.effects import Effect
from asched.core.framework.points import Late
from asched.core.framework.runner import Decision, NoNodesError
from asched.core.framework.status import SUCCESS, Code, PointError, Status, failure
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX, Stage, WaitingPod
from asched.core.model.pod import Pod
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
    pod = attempt.pod
    if pod.is_terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        yield attempt.emit("Warning", names.EVENT_FAILED_SCHEDULING, "Scheduling", note)
        desk.queue.done(pod.uid)
        return None
    if pod.uid in desk.cluster.placed:
        desk.queue.done(pod.uid)
        return None
    try:
        found = yield from attempt.runner.schedule(attempt.info, desk.seed + attempt.id)
        desk.observer.algorithm_ran(desk.counter_s() - attempt.started_s)
        if isinstance(found, Rejection):
            return (yield from _rejected(desk, attempt, found))
        return (yield from _reserve(desk, attempt, found))
    except NoNodesError:
        reason = names.REASON_UNSCHEDULABLE
        yield from fail(desk, attempt, NO_NODES, reason=reason, nomination=CLEARED)
    except CannotAssumeError as error:
        yield from _error(desk, attempt, str(error))
    except Exception as error:
        if not (isinstance(error, PointError) or blame(error).plugin):
            raise
        yield from _error(desk, attempt, desk.contain(error, "schedule"))
    return None


def _error(desk: Desk, attempt: Attempt, message: str) -> Generator[Effect, Answer, None]:
    if desk.cluster.is_assumed(attempt.pod.uid):
        yield from give_back(desk, attempt, attempt.info.node_name)
    reason = names.REASON_SCHEDULER_ERROR
    yield from fail(desk, attempt, message, reason=reason, nomination=CLEARED)


def _rejected(
    desk: Desk, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, Next]:
    """No node: try to make room, then give the pod back to the queue under its rejectors."""
    runner = attempt.runner
    said, nomination, background = "", CLEARED, None
    if runner.profile.post_filters:
        state = runner.cache.state_of(attempt.info)
        trial = runner.trial(state, desk.waiting, desk.seed + attempt.id, desk.now_s)
        started_s = desk.counter_s()
        if any(plugin.name == names.DEFAULT_PREEMPTION for plugin in runner.profile.post_filters):
            desk.observer.preemption_tried()
        result = yield from runner.post_filter(attempt.info, rejection, trial)
        desk.point_ran(attempt, "PostFilter", result.status.code.text, started_s)
        if result.victims:
            desk.observer.preempting(len(result.victims))
        said, nomination, background = (
            result.status.message,
            result.nomination,
            result.background,
        )
        if nomination.node:
            desk.tell(attempt, Step.NOMINATED, nomination.node)
    yield from fail(
        desk,
        attempt,
        rejection.message(said),
        reason=names.REASON_UNSCHEDULABLE,
        rejectors=rejection.unschedulable_plugins,
        pending=rejection.pending_plugins,
        nomination=nomination,
        rejection=rejection,
    )
    return None if background is None else Background(desk, attempt.pod, background)


def _reserve(desk: Desk, attempt: Attempt, decision: Decision) -> Generator[Effect, Answer, Next]:
    """Count the pod on its node, then let Reserve and Permit have their say."""
    info, node = attempt.info, decision.node
    attempt.evaluated, attempt.feasible = decision.evaluated, decision.feasible
    attempt.pre_binds = decision.state.roster.pre_binds
    desk.tell(attempt, Step.NODE, (node, decision.score, decision.feasible))
    desk.cluster.assume(info, node)
    desk.nominator.delete(info.pod.uid)
    status = _ask_reserve(desk, attempt, decision)
    if not status.is_success:
        yield from _turned_away(desk, attempt, node, status, "Reserve")
        return None
    waiting = WaitingPod(info, node, attempt.profile)
    status = _ask_permit(desk, attempt, waiting)
    if asked_for := desk.waiting.take_asked_for():
        desk.queue.activate(asked_for, desk.now_s)
    if not (status.is_success or status.code is Code.WAIT):
        yield from _turned_away(desk, attempt, node, status, "Permit")
        return None
    if waiting.deadlines:
        waiting.stage = Stage.PERMIT
    desk.waiting.add(waiting)
    return Binding(desk, attempt, node, waiting)


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


def _turned_away(
    desk: Desk, attempt: Attempt, node: str, status: Status, point: str
) -> Generator[Effect, Answer, None]:
    yield from give_back(desk, attempt, node)
    if not status.is_rejection:
        message = f'running {point} plugin "{status.plugin}": {status.message}'
        yield from fail(
            desk, attempt, message, reason=names.REASON_SCHEDULER_ERROR, nomination=CLEARED
        )
        return
    pending = status.code is Code.PENDING
    blamed = frozenset((status.plugin,))
    yield from fail(
        desk,
        attempt,
        fit_error(1, "", dict.fromkeys(status.reasons, 1), ""),
        reason=names.REASON_UNSCHEDULABLE,
        rejectors=frozenset() if pending else blamed,
        pending=blamed if pending else frozenset(),
        nomination=CLEARED,
    )
