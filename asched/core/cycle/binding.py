"""The binding cycle: from a reserved node to a bound pod, or back to the queue.

    PreBindPreFlight ─> nomination written ─> WaitOnPermit ─> PreBind … ─> Bind ─> PostBind
          └── any failure: Unreserve in reverse order, forget, wake pods that may fit now, requeue

It is a generator: it yields effects and is sent their answers, so that many bindings are under way
at a time and none blocks. The queue records changes for the pod until Permit ends; after that a
failure cannot be a plain rejection any more.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (bindingCycle)
"""

from collections.abc import Generator, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.cluster.facts import Answer, Bound, Refused, TimedOut, Unknown
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.confirmation import follow, names_node
from asched.core.cycle.context import SKIPPED, SUCCEEDED, SchedulerContext
from asched.core.cycle.failure import fail
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.unit import Failure, error, unschedulable
from asched.core.framework.effects import (
    Bind,
    CallPlugin,
    Effect,
    EmitEvent,
    PatchPodStatus,
    PodRef,
    WaitFor,
    ref_of,
)
from asched.core.framework.per_node import late
from asched.core.framework.points import Late, PreBindPlugin
from asched.core.framework.rejection import fit_error
from asched.core.framework.status import (
    MISTAKES,
    SUCCESS,
    Code,
    PluginError,
    Status,
    failure,
    raise_plugin_error,
)
from asched.core.framework.waiting import Stage, WaitingPod

Steps = Generator[Effect, Answer, Any]


class Binding(msgspec.Struct):
    """The binding of one pod to one node."""

    context: SchedulerContext
    attempt: Attempt
    node: str
    waiting: WaitingPod
    was_nominated: bool = False
    is_elsewhere: bool = False

    def run(self) -> Steps:
        """Run the whole cycle. It ends with the pod bound, or returned to the queue."""
        try:
            status = yield from self._until_bound()
        except MISTAKES as raised:  # costs the pod this attempt, not the process
            status = failure(self.context.contain(raised, "bind", self.attempt.pod.key))
        self.context.waiting.drop(self.attempt.info.pod.metadata.uid)
        if status.code is Code.SUCCESS:
            try:
                yield self._bound()
            except MISTAKES as raised:  # the pod stays bound
                self.context.contain(raised, "bind", self.attempt.pod.key)
            if self.attempt.runner.profile.post_binds:
                yield from self._post_bind()
            else:
                self.context.point_passed(self.attempt, "PostBind")
            self.attempt.info.state = None
            return
        try:
            yield from self._failed(status)
        except MISTAKES as raised:
            message = self.context.contain(raised, "failure", self.attempt.pod.key)
            yield from end_failed(self.context, self.attempt, error(message))

    # --- until the pod is bound -------------------------------------------------------------------

    def _until_bound(self) -> Generator[Effect, Answer, Status]:
        context, attempt, waiting = self.context, self.attempt, self.waiting
        working: list[PreBindPlugin] = []
        if attempt.pre_binds:
            working, status = self._pre_flight()
            if status.code is not Code.SUCCESS:
                return status
        else:
            context.point_passed(attempt, "PreBindPreFlight", SKIPPED)
        if context.announces_places and (working or waiting.deadlines):
            yield from self._write_nomination()
        if waiting.deadlines:
            status = yield from self._wait_on_permit()
            if not status.is_success:
                return status
        context.queue.done(attempt.info.pod.metadata.uid)
        if working:
            waiting.stage, started_s = Stage.PRE_BIND, context.monotonic_s()
            status = yield from self._pre_bind(working)
            context.point_ran(attempt, "PreBind", status.code.text, started_s)
            if not status.is_success:
                return status
        else:
            context.point_passed(attempt, "PreBind")
        waiting.stage = Stage.BINDING
        started_s = context.monotonic_s()
        status = yield from self._bind()
        code = SUCCEEDED if status is SUCCESS else status.code.text
        context.point_ran(attempt, "Bind", code, started_s)
        return status

    def _pre_bind(self, working: list[PreBindPlugin]) -> Generator[Effect, Answer, Status]:
        context, attempt = self.context, self.attempt
        try:
            for plugin in working:
                started_s, self.waiting.plugin = context.monotonic_s(), plugin.name
                steps = plugin.pre_bind(attempt.info, self.node)
                status = yield from self._until_decided(
                    late.checked_effects(steps, plugin.name, "preBind")
                )
                context.plugin_ran(attempt, plugin.name, "PreBind", status, started_s)
                status = self.waiting.decision or status
                if not status.is_success:
                    return _named(status, "PreBind", plugin.name)
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "preBind", raised)
        return SUCCESS

    def _pre_flight(self) -> tuple[list[PreBindPlugin], Status]:
        """Return the PreBind plugins that have work to do."""
        context, attempt = self.context, self.attempt
        outcome, begun_s = SUCCESS, context.monotonic_s()
        working: list[PreBindPlugin] = []
        try:
            for plugin in attempt.pre_binds:
                started_s = context.monotonic_s()
                status = plugin.pre_bind_pre_flight(attempt.info, self.node)
                context.plugin_ran(attempt, plugin.name, "PreBindPreFlight", status, started_s)
                if status.is_success:
                    working.append(plugin)
                elif status.code is not Code.SKIP:
                    problem = f'running PreBindPreFlight "{plugin.name}": {status.message}'
                    if status.code is not Code.ERROR:
                        problem = (
                            f'PreBindPreFlight {plugin.name} returned "{status.code.text}", which'
                            " is unsupported. It is supposed to return Success, Skip, or Error"
                            " status"
                        )
                    outcome = failure(problem)
                    break
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "preBind", raised)
        code = outcome.code if working or not outcome.is_success else Code.SKIP
        context.point_ran(attempt, "PreBindPreFlight", code.text, begun_s)
        return working, outcome

    def _write_nomination(self) -> Iterator[Effect]:
        """Write the pod's nomination before steps that may take long, so that other schedulers and
        autoscalers know its node. A failed write has no consequences.
        """
        pod = self.context.cluster.pods_seen.get(self.attempt.pod.key, self.attempt.pod)
        if pod.status.nominated_node_name != self.node:
            types = tuple(c.type for c in pod.status.conditions or ())
            self.was_nominated = True
            yield PatchPodStatus(
                pod=ref_of(pod),
                condition_types=types,
                nominated_node_name=self.node,
                wants_answer=False,
            )

    def _wait_on_permit(self) -> Generator[Effect, Answer, Status]:
        waiting, context = self.waiting, self.context
        started_s = context.monotonic_s()
        context.tell(self.attempt, DecisionStep.WAITING, tuple(waiting.deadlines))
        context.waiting.held += 1
        try:
            yield from self._ask_permits()
            while not waiting.is_settled:
                remaining_s = max(waiting.next_deadline_s - context.now_s, 0.0)
                answer = yield WaitFor(
                    ready=lambda: waiting.is_settled, timeout_s=remaining_s, on=(waiting.topic,)
                )
                if isinstance(answer, TimedOut) and not waiting.is_settled:
                    waiting.expire()
        finally:
            context.waiting.held -= 1
        status = waiting.decision or SUCCESS
        context.observer.permit_waited(status.code.text, context.monotonic_s() - started_s)
        if status.code is Code.ERROR:
            return failure(f"waiting on permit for pod: {status.message}")
        return status

    def _ask_permits(self) -> Generator[Effect, Answer, None]:
        """Run Permit plugins that decide later about a pod that waits; the first rejection ends the
        wait.
        """
        waiting, info = self.waiting, self.attempt.info
        try:
            for plugin in self.attempt.runner.profile.permits:
                steps = None
                if plugin.name in waiting.deadlines and waiting.decision is None:
                    steps = plugin.permit_late(info, self.node)
                if steps is None:
                    continue
                status = yield from self._until_decided(
                    late.checked_effects(steps, plugin.name, "permit")
                )
                if waiting.decision is not None:
                    return
                if status.is_success:
                    waiting.allow(plugin.name)
                elif status.code is Code.WAIT:  # its timeout has passed
                    waiting.expire()
                else:
                    is_error = not status.is_rejection
                    waiting.decision = (
                        failure(f'running Permit plugin "{plugin.name}": {status.message}')
                        if is_error
                        else status.by(plugin.name)
                    )
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "permit", raised)

    def _until_decided(self, steps: Late) -> Late:
        """Run a plugin's steps. Once the pod is rejected or deleted, the steps are closed at their
        next wait, and Unreserve undoes what they began. Only a wait for the outcome of their own
        writes goes on.
        """
        waiting, answer = self.waiting, None
        while True:
            try:
                effect = steps.send(answer)  # type: ignore[arg-type]
            except StopIteration as done:
                status: Status = done.value
                return status
            waiting.why = effect.why if isinstance(effect, WaitFor) else None
            if isinstance(effect, WaitFor) and effect.in_doubt:
                answer = yield effect
                continue
            if isinstance(effect, WaitFor | CallPlugin):
                effect = _interruptible(effect, waiting)
            answer = yield effect
            if waiting.decision is not None and isinstance(effect, WaitFor | CallPlugin):
                steps.close()
                return waiting.decision

    def _bind(self) -> Generator[Effect, Answer, Status]:
        """Run the bind plugins in order until one does not skip."""
        cluster, info = self.context.cluster, self.attempt.info
        reason = self.context.why_not_placed(self.attempt, self.node)
        if not reason and cluster.pods_seen.get(self.attempt.queued.key) is not info.pod:
            reason = self._follow_changes()
        if reason:
            return failure(reason)
        try:
            for plugin in self.attempt.runner.binders(info):
                started_s = self.context.monotonic_s()
                status = yield from self._follow_binding(
                    plugin.name,
                    late.checked_effects(plugin.bind(info, self.node), plugin.name, "bind"),
                )
                self.context.plugin_ran(self.attempt, plugin.name, "Bind", status, started_s)
                if status.code is Code.SUCCESS:
                    return status
                if status.code is not Code.SKIP:
                    return _named(status, "Bind", plugin.name)
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "bind", raised)
        return failure("every bind plugin skipped the pod")

    def _follow_binding(self, plugin: str, steps: Late) -> Generator[Effect, Answer, Status]:
        """Run a bind plugin, and follow the binding that it sends to its end."""
        try:
            effect = next(steps)
            while True:
                answer: Answer
                if isinstance(effect, Bind):
                    if not effect.pod.resource_version:  # of a user's plugin
                        effect = replace(effect, pod=self.attempt.ref)
                    answer = yield effect
                    if not isinstance(answer, Bound):  # rare
                        answer = yield from follow(
                            effect,
                            self.context.cluster,
                            self._record_unknown,
                            answer,
                            self._newest,
                        )
                    self.is_elsewhere = isinstance(answer, Refused) and names_node(answer)
                else:
                    answer = yield effect
                if isinstance(effect, CallPlugin) and isinstance(answer, TimedOut):
                    text = f"the binding of plugin {plugin} did not end in time"
                    bind = Bind(pod=self.attempt.ref, node=self.node)
                    lost = Unknown(0, text)
                    outcome = yield from follow(
                        bind, self.context.cluster, self._record_unknown, lost, lambda _: None
                    )
                    if isinstance(outcome, Bound):
                        steps.close()
                        return SUCCESS
                effect = steps.send(answer)
        except StopIteration as done:
            status: Status = done.value
            return status

    def _record_unknown(self, message: str) -> None:
        self.context.tell(self.attempt, DecisionStep.UNKNOWN, message)

    def _newest(self, is_lost: bool) -> PodRef | None:
        """The pod with its newest version if its binding may be sent once more, as `Newest`: not if
        the pod is gone. Its node is checked again, since it may have changed meanwhile. A member of
        a group keeps its place without that while the node exists and no answer is lost: the others
        may be bound already.
        """
        context, attempt = self.context, self.attempt
        if not context.cluster.is_assumed(attempt.pod.uid):
            return None
        if context.why_not_placed(attempt, self.node) or self._follow_changes():
            return None
        keeps_place = bool(attempt.queued.gang) and not is_lost and attempt.info.row >= 0
        if not keeps_place and not attempt.runner.still_takes(attempt.info):
            return None
        return attempt.ref

    def _follow_changes(self) -> str:
        """Continue with the newest version of the pod. If what decides about it has changed, check
        its node once more; returns why the pod may not be bound there. A member of a group keeps
        its place: the others may be bound already.
        """
        context, attempt = self.context, self.attempt
        now = context.cluster.pods_seen.get(attempt.queued.key)
        if now is None or not context.cluster.renew(attempt.info, now) or attempt.queued.gang:
            return ""
        if attempt.runner.still_takes(attempt.info):
            return ""
        return f"pod {now.metadata.name} has changed and no longer fits on {self.node}"

    # --- the end ---------------------------------------------------------------------------------

    def _bound(self) -> EmitEvent:
        """Report the binding, and return the pod's event."""
        context, attempt = self.context, self.attempt
        queued = attempt.queued
        context.tell_bound(attempt, self.node)
        profile = attempt.runner.profile.scheduler_name
        context.observer.attempt_ended(
            "scheduled", profile, context.monotonic_s() - attempt.started_s
        )
        first_s = (
            queued.initial_attempt_s if queued.initial_attempt_s is not None else context.now_s
        )
        context.observer.pod_scheduled(
            profile, queued.attempts, context.now_s - first_s, was_flushed=queued.was_flushed
        )
        context.observer.pod_bound(queued.key, self.node, attempt.evaluated, attempt.feasible)
        message = f"Successfully assigned {queued.key} to {self.node}"
        return attempt.emit("Normal", names.EVENT_SCHEDULED, "Binding", message)

    def _post_bind(self) -> Steps:
        context, attempt = self.context, self.attempt
        started_s = context.monotonic_s()
        for plugin in attempt.runner.profile.post_binds:
            try:
                steps = plugin.post_bind(attempt.info, self.node)
                if steps is not None:
                    yield from late.checked_effects(steps, plugin.name, "postBind")
            except MISTAKES as error:  # the pod stays bound
                context.contain(PluginError.of(plugin.name, "postBind", error), "postBind")
        context.point_ran(attempt, "PostBind", SUCCEEDED, started_s)

    def _failed(self, status: Status) -> Steps:
        context, attempt = self.context, self.attempt
        context.observer.binding_failed(attempt.pod.key, self.node, status.message)
        context.tell(attempt, DecisionStep.FAILED, status.message)
        on_node = attempt.info.pod.on(self.node)
        given_back = yield from give_back(context, attempt, self.node)
        # The place of a pod deleted meanwhile was freed at once; PreBind's reservations are now.
        given_back |= bool(attempt.pre_binds)
        freed = Change(ASSIGNED_POD_DELETE, on_node, None)
        if status.is_rejection and status.plugin:
            message = fit_error(1, "", {status.message: 1}, "")
            failure = Failure(
                message,
                names.REASON_UNSCHEDULABLE,
                frozenset((status.plugin,)),
                is_patient=True,
                was_nominated=self.was_nominated,
            )
            yield from fail(context, attempt, failure)
            if given_back:
                context.queue.move(freed, context.now_s, except_uid=attempt.pod.uid)
            return
        if given_back:
            context.queue.move(freed, context.now_s)
        make_failure = unschedulable if status.is_rejection else error
        failed = replace(
            make_failure(status.message),
            was_nominated=self.was_nominated,
            is_elsewhere=self.is_elsewhere,
        )
        yield from fail(context, attempt, failed)


def _interruptible(effect: WaitFor | CallPlugin, waiting: WaitingPod) -> WaitFor | CallPlugin:
    """Return a wait that also ends as soon as the pod is allowed or rejected."""
    ready = effect.ready
    on = (*effect.on, waiting.topic) if effect.on or isinstance(effect, CallPlugin) else ()
    return replace(effect, ready=lambda: waiting.decision is not None or ready(), on=on)


def give_back(
    context: SchedulerContext, attempt: Attempt, node: str
) -> Generator[Effect, Answer, bool]:
    """Undo a reservation: Unreserve of every plugin in reverse order, then forget the pod."""
    for plugin in reversed(attempt.runner.profile.reserves):
        try:
            steps = plugin.unreserve(attempt.info, node)
            if steps is not None:
                status = yield from late.checked_effects(steps, plugin.name, "reserve")
                if not status.is_success:
                    context.tell(attempt, DecisionStep.FAILED, status.message)
        except MISTAKES as error:  # the other plugins must still unreserve
            context.contain(PluginError.of(plugin.name, "reserve", error), "reserve")
    return context.cluster.forget(attempt.info)


def end_failed(
    context: SchedulerContext, attempt: Attempt, failure: Failure
) -> Generator[Effect, Answer, None]:
    """Give back the place of an attempt that an exception ended, and return its pod to the queue:
    with backoff and its message or, if that raises as well, without a message.
    """
    uid, key, queue = attempt.pod.uid, attempt.pod.key, context.queue
    try:
        if context.cluster.is_assumed(uid):
            yield from give_back(context, attempt, attempt.info.node_name)
        context.waiting.drop(uid)
        if queue.places.get(key) is None:
            yield from fail(context, attempt, failure)
    except MISTAKES as raised:
        context.contain(raised, "failure", key)
        context.cluster.forget(attempt.info)
        now = context.cluster.pods_seen.get(key)
        if queue.places.get(key) is not None:
            return
        if now is None or now.uid != uid or now.spec.node_name or not context.owns(now):
            queue.done(uid)
        else:
            queue.return_failed(attempt.queued, now, (), (), context.now_s)


def _named(status: Status, point: str, plugin: str) -> Status:
    """Name the point and the plugin in an error. A rejection after Permit loses its plugin, because
    the queue no longer records changes for the pod. Messages of extenders stay as they are.
    """
    if status.is_rejection or plugin == names.EXTENDER:
        return Status(status.code, status.reasons)
    return failure(f'running {point} plugin "{plugin}": {status.message}')
