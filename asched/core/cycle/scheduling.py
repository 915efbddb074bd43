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
from asched.core.framework.status import Code, PointError, Status, failure
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
        try:
            status = yield from self.steps
        except Exception as error:  # noqa: BLE001
            plugin = blame(error)
            self.desk.observer.plugin_raised(plugin, "postFilter", error)
            status = failure(f'plugin "{plugin}" raised {type(error).__name__}: {error}')
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
    desk.tell(attempt, Step.ATTEMPT, attempt.queued.attempts)
    try:
        found = yield from attempt.runner.schedule(attempt.info, desk.seed + attempt.id)
        desk.observer.algorithm_ran(desk.counter_s() - attempt.started_s)
        if isinstance(found, Rejection):
            return (yield from _rejected(desk, attempt, found))
        return (yield from _reserve(desk, attempt, found))
    except NoNodesError:
        reason = names.REASON_UNSCHEDULABLE
        yield from fail(desk, attempt, NO_NODES, reason=reason, nomination=CLEARED)
    except (PointError, CannotAssumeError) as error:
        yield from _error(desk, attempt, str(error))
    except Exception as error:
        plugin = blame(error)
        if not plugin:
            raise
        desk.observer.plugin_raised(plugin, "schedule", error)
        yield from _error(
            desk, attempt, f'plugin "{plugin}" raised {type(error).__name__}: {error}'
        )
    return None


def _error(desk: Desk, attempt: Attempt, message: str) -> Generator[Effect, Answer, None]:
    if desk.cluster.is_assumed(attempt.pod.uid):
        give_back(desk, attempt, attempt.info.node_name)
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
        result = yield from runner.post_filter(attempt.info, rejection, trial)
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
    profile, info, node = attempt.runner.profile, attempt.info, decision.node
    desk.tell(attempt, Step.NODE, (node, decision.score, decision.feasible))
    desk.cluster.assume(info, node)
    desk.nominator.delete(info.pod.uid)
    for plugin in profile.reserves:
        data = decision.state.data_of(plugin.name)
        status = plugin.reserve(info, node, data)
        if not status.is_success:
            yield from _turned_away(desk, attempt, node, status.by(plugin.name), "Reserve")
            return None
    waiting = WaitingPod(info, node, attempt.profile)
    for permit in profile.permits:
        status, patience_s = permit.permit(info, node)
        if status.code is Code.WAIT:
            patience_s = min(patience_s, PERMIT_TIMEOUT_S_MAX)
            waiting.deadlines[permit.name] = (desk.now_s + patience_s, patience_s)
        elif not status.is_success:
            yield from _turned_away(desk, attempt, node, status.by(permit.name), "Permit")
            return None
    if waiting.deadlines:
        waiting.stage = Stage.PERMIT
    desk.waiting.add(waiting)
    return Binding(desk, attempt, node, waiting)


def _turned_away(
    desk: Desk, attempt: Attempt, node: str, status: Status, point: str
) -> Generator[Effect, Answer, None]:
    give_back(desk, attempt, node)
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
