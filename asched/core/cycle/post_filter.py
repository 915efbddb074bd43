"""Make room for a pod without a node: the PostFilter plugins, and what follows of their work.

    Rejection ─> PostFilter ─> back to the queue, maybe nominated ─> Background: evictions
                      └─> GivingBack: steps before the pod's return, such as releasing claims

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (schedulingCycle)
"""

from collections.abc import Generator
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.config.new_nodes import node_helps
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.binding import end_failed
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import end_nomination, fail, failure_of, skip
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.unit import CLEARED, KEPT, Failure
from asched.core.framework.effects import Effect
from asched.core.framework.points import Late, PostFilterResult
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.nominated import HELD_OFF
from asched.core.framework.status import MISTAKES, SUCCESS, Code, Status, failure
from asched.core.model.pod import Pod
from asched.core.queue.queued import NO_NAMES

#: A pod that avoids a node is tried at once when another node gives it a place; other changes
#: wake no pod that backs off, so it does not wait for the whole time.
PAUSE_S: Final = 30.0


def make_room(
    context: SchedulerContext, attempt: Attempt, rejection: Rejection
) -> Generator[Effect, Answer, PostFilterResult | None]:
    """Run the PostFilter plugins; None without any, or if the pod was deleted or placed while an
    extender was called: then no victim is evicted.
    """
    runner = attempt.runner
    if not runner.profile.post_filters or context.is_obsolete(attempt):
        return None
    state = runner.cache.state_of(attempt.info)
    trial = runner.trial(state, context.waiting, context.seed + attempt.id, context.now_s)
    if attempt.pod.spec.scheduling_group is not None:
        gangs = context.gangs
        in_placements, is_of_group = gangs.tries_placements, gangs.makes_room
        trial = replace(trial, in_placements=in_placements, is_of_group=is_of_group)
    started_s = context.monotonic_s()
    result = yield from runner.post_filter(attempt.info, rejection, trial)
    if context.is_obsolete(attempt):
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


def rejected(
    rejection: Rejection, result: PostFilterResult | None, pod: Pod, cluster: Cluster
) -> Failure:
    """The failure of a pod that fits on no node. A pod that a node rejects only for a time is tried
    again after its backoff, because no event marks the end of that time; while it avoids a kubelet
    that refused a pod of its owner, every PAUSE_S.
    """
    avoids_node = HELD_OFF in rejection.overrides.values()
    comes_back = avoids_node or (result is not None and result.comes_back)
    pause_s = 0.0
    if avoids_node:
        held_s = cluster.refusals.rows(pod, cluster.steady_s).values()
        pause_s = min(*held_s, PAUSE_S) if held_s else 0.0
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
        pause_s=pause_s,
    )


class Background(msgspec.Struct):
    """Work of a PostFilter plugin after the attempt, mostly evictions. If its status is
    unschedulable, no room is made, and the nomination of the pod ends.
    """

    context: SchedulerContext
    pod: Pod
    steps: Late
    preemptor: ClassVar = "pod"

    def run(self) -> Generator[Effect, Answer, tuple[Status, Pod]]:
        """Run the work to its end. A plugin's exception costs its pod this attempt only."""
        started_s = self.context.monotonic_s()
        status = yield from _contained(self.context, self.steps)
        is_done = status.is_success or status.code is Code.SKIP
        result = "success" if is_done else "error"
        took_s = self.context.monotonic_s() - started_s
        self.context.observer.preempted(result, took_s, self.preemptor)
        if status.code is Code.UNSCHEDULABLE:
            yield from end_nomination(self.context, self.pod)
            return SUCCESS, self.pod  # a change of the cluster wakes the pod
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
        for steps in self.result.before_return:
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
        if context.is_obsolete(attempt):
            self.result.drop()
            yield from skip(context, attempt)
            return None
        yield from fail(context, attempt, why)
        return self.result.background


def _contained(context: SchedulerContext, steps: Late) -> Generator[Effect, Answer, Status]:
    """Run a PostFilter plugin's steps; an exception becomes a status."""
    try:
        return (yield from steps)
    except MISTAKES as error:
        return failure(context.contain(error, "postFilter"))
