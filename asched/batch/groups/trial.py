"""The trial of a pod group: one pod after the other, with places held for those before it.

    each pod:  filters, scores ─> node ─> assume, Reserve, Permit ─> the place is held
                   └─> PostFilter ─> a node once others are gone ─> held as well
                            └─> no node: the group may go on without this pod

The group is schedulable as soon as Permit lets any of its pods go. It is tried on the columns
themselves: cycles are serial, so nobody sees a place that is given back in the end. (While an
extender is asked, or the trial pauses, pods of others do see it: to them the room is taken.)
Evictions are only noted; they begin if the group fits with their help.

What is promised to the pods of the group by earlier nominations binds nobody among themselves: each
of them is tried, and counts once it has its place.

A pod that was rejected for where pods of the cluster are, or are not, is tried again once others of
its group have places: the order in which they are tried shall not matter to them.

Bounds  a trial pauses between two pods once its slice of the budget is used up. Each further round
        places a pod, or is the last.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (podGroupSchedulingDefaultAlgorithm); further rounds are our own
"""

from collections.abc import Generator, Mapping
from typing import Any, Final, TypeVar

from asched.batch.groups.attempt import (
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
    GroupAttempt,
    GroupOutcome,
    Result,
    Tried,
)
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.decided import chosen
from asched.core.cycle.failure import Failure
from asched.core.cycle.queue_steps import notify_of_freed
from asched.core.cycle.scheduling import (
    failure_of,
    find_node,
    hold,
    make_room,
    out_of_turn,
    rejected,
)
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.placements import Mask
from asched.core.framework.runner import Decision
from asched.core.framework.status import MISTAKES, SUCCESS
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Answer
from asched.core.state.gang import count_missing

T = TypeVar("T")

#: Steps of the budget for one pod of a group: its attempt, and what becomes of its place.
TRY_STEPS: Final = 10
#: ... and for the search of one for room of its own, beside what that counts itself.
ROOM_STEPS: Final = 100
LET_GO_STEPS: Final = 5
#: ... and for what is told of it to those who wait, or to its own owner.
TELL_STEPS: Final = 5


def seen(group: GroupAttempt, steps: Generator[Effect, Answer, T]) -> Generator[Effect, Answer, T]:
    """Run the steps of a group, and note whether others had their turn meanwhile: whatever it is
    that they wait for, an extender, a plugin, the next slice.
    """
    answer: Any = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        group.was_seen |= effect.lets_others
        answer = yield effect


def try_group(
    context: SchedulerContext,
    group: GroupAttempt,
    within: Mask | None = None,
    plan: Mapping[str, Mask] | None = None,
    *,
    only_whether: bool = False,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try all pods, on the nodes `within` if that is given (bool[N]).

    Places of `Outcome.tried` are held until `let_go`, whatever came of it. `plan`: by uid, where
    pods are to go; these come first, in this order. With a plan nobody is evicted. `only_whether`:
    once the group is schedulable, its other pods are not tried. Nor are they where all are needed,
    and one found no place. Beyond its minimum, pods of a lower priority than the one that was
    popped are left out: their turn comes by their own priority.
    """
    outcome = group.outcome = GroupOutcome(Result.UNSCHEDULABLE, UNSCHEDULABLE)
    for attempt in group.attempts if context.nominator else ():
        node = context.nominator.node_of(attempt.pod.uid)
        if node is not None:
            group.nominated[attempt.pod.uid] = node
            context.nominator.delete(attempt.pod.uid)
    budget = context.cluster.budget
    have_places = True
    needed = len(group.attempts) if group.company else count_missing(context.cluster, group.key)
    for attempt in group.attempts if plan is None else _in_order(group, plan):
        if needed <= 0 and attempt.pod.priority < group.pod.priority:
            continue
        if budget.left <= 0:
            yield Pause()
        budget.note(TRY_STEPS)
        tried = yield from _try_pod(context, group, attempt, within, plan)
        outcome.tried.append(tried)
        have_places &= tried.decision is not None
        needed -= tried.decision is not None
        is_vain = tried.failure is not None and group.company is not None and not plan
        if not _count(outcome, tried) or is_vain:
            return outcome
        if only_whether and outcome.result is Result.SCHEDULED:
            return outcome
    if have_places:
        return outcome
    places = 0
    while places < (places := sum([tried.decision is not None for tried in outcome.tried])):
        if places == len(outcome.tried):
            break
        for index, before in enumerate(outcome.tried):
            if _may_profit(before):
                yield from pause_if_due(context, TRY_STEPS)
                again = yield from _try_pod(context, group, before.attempt, within, plan)
                outcome.tried[index] = again
                if not _count(outcome, again):
                    return outcome
    return outcome


def try_plan(
    context: SchedulerContext, group: GroupAttempt, plan: Mapping[str, Mask], within: Mask | None
) -> Generator[Effect, Answer, GroupOutcome]:
    """As `try_group`. Pods that cannot go where the plan has them go elsewhere in the end."""
    outcome = yield from try_group(context, group, within, plan)
    for index, before in enumerate(outcome.tried):
        if outcome.result is Result.UNSCHEDULABLE and before.decision is None:
            yield from pause_if_due(context, TRY_STEPS)
            again = yield from _try_pod(context, group, before.attempt, within, {})
            outcome.tried[index] = again
            if not _count(outcome, again):
                break
    return outcome


def _in_order(group: GroupAttempt, plan: Mapping[str, Mask]) -> list[Attempt]:
    order = {uid: at for at, uid in enumerate(plan)}
    return sorted(group.attempts, key=lambda a: order.get(a.pod.uid, len(order)))


def pause_if_due(
    context: SchedulerContext, steps: float, *, is_alone: bool = False
) -> Generator[Effect, Answer, None]:
    """Between two pods: pause if the slice is used up, then take so many steps."""
    budget = context.cluster.budget
    if budget.is_used_up:
        yield Pause(is_alone=is_alone)
    budget.note(steps)


def _count(outcome: GroupOutcome, tried: Tried) -> bool:
    """What a pod's trial means to the group. False ends it: something failed."""
    if tried.decision is None:
        assert tried.failure is not None
        if tried.failure.is_error:
            outcome.result = Result.ERROR
            said = tried.failure.message
            outcome.message = f"failed to schedule other pod from a pod group: {said}"
        return not tried.failure.is_error
    outcome.needs_room |= tried.failure is not None
    if tried.permit is SUCCESS or (tried.permit is not None and tried.permit.is_success):
        if outcome.needs_room:
            outcome.result = Result.WAITING_ON_PREEMPTION
            outcome.message = WAITING_ON_PREEMPTION
        else:
            outcome.result, outcome.message = Result.SCHEDULED, ""
    return True


def _may_profit(tried: Tried) -> bool:
    """Whether others' places may make the difference. One that makes room is left in peace."""
    failure = tried.failure
    if failure is None or tried.decision is not None:
        return False
    room = tried.room
    if room is not None and (room.background is not None or room.withdraw is not None):
        return False
    plugins = tried.attempt.runner.profile.plugins
    return any(getattr(plugins.get(name), "reads_counts", False) for name in failure.rejectors)


def _try_pod(
    context: SchedulerContext,
    group: GroupAttempt,
    attempt: Attempt,
    within: Mask | None,
    plan: Mapping[str, Mask] | None = None,
) -> Generator[Effect, Answer, Tried]:
    pod = attempt.info.pod
    where = within if plan is None else plan.get(pod.uid, within)
    attempt.started_s = context.counter_s()
    tried = Tried(attempt)
    nominated = group.nominated.get(pod.uid) if group.nominated else None
    if nominated is not None:  # to itself it matters
        context.nominator.add(pod, nominated)
    try:
        decision = yield from _find(context, tried, where, makes_room=plan is None)
        context.observer.algorithm_ran(context.counter_s() - attempt.started_s)
        if decision is not None:
            tried.line = chosen(context, attempt, decision)
            held = yield from hold(context, attempt, decision)
            if isinstance(held, Failure):
                tried.failure = held
            else:
                tried.decision, tried.waiting, tried.permit = decision, *held
    except MISTAKES as raised:
        tried.failure = failure_of(context, raised, pod.key)
        if context.cluster.is_assumed(pod.uid):
            yield from give_back(context, attempt, attempt.info.node_name)
    if tried.decision is None or tried.waiting is None:  # else it went when the place was taken
        context.nominator.delete(pod.uid)
    tried.duration_s = context.counter_s() - attempt.started_s
    return tried


def _find(
    context: SchedulerContext,
    tried: Tried,
    within: Mask | None,
    *,
    makes_room: bool,
) -> Generator[Effect, Answer, Decision | None]:
    """A node, in as many turns as that takes; without one, `tried` knows why."""
    attempt = tried.attempt
    while True:
        try:
            found = yield from find_node(context, attempt, within)
            decision: Decision | None = None
            if not isinstance(found, Rejection):
                decision = found
            elif makes_room:
                decision = yield from _find_room(context, tried, found)
            else:
                tried.failure = rejected(found, None)
        except OutOfTurn as stop:
            tried.failure = yield from out_of_turn(attempt, stop)
            if tried.failure is not None:
                return None
        else:
            return decision


def _find_room(
    context: SchedulerContext, tried: Tried, rejection: Rejection
) -> Generator[Effect, Answer, Decision | None]:
    """A node that others would have to leave first. What there is to be done is only noted."""
    attempt = tried.attempt
    context.cluster.budget.note(ROOM_STEPS)
    result = yield from make_room(context, attempt, rejection)
    tried.failure, tried.room = rejected(rejection, result), result
    if result is None:
        return None
    node = result.nomination.node
    row = context.cluster.nodes.row_of.get(node) if node else None
    if not node or row is None:
        return None
    count = context.cluster.nodes.count
    return Decision(node, row, 0, count, None, attempt.runner.cache.state_of(attempt.info))


def let_go(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """Give back every place that is held, the last one first. Nobody has seen them taken, unless
    others had their turn: `group.freed` has what these are to hear (`tell_freed`).
    """
    for tried in reversed(outcome.tried):
        if tried.waiting is None or tried.decision is None:
            continue
        yield from pause_if_due(context, LET_GO_STEPS)
        attempt, node = tried.attempt, tried.decision.node
        if group.was_seen:
            group.freed.add(attempt.info.cls.number, attempt.pod, node)
        yield from give_back(context, attempt, node)
        context.waiting.drop(attempt.pod.uid)
        tried.waiting = None


def released(
    context: SchedulerContext, group: GroupAttempt, steps: Generator[Effect, Answer, T]
) -> Generator[Effect, Answer, T]:
    """Run steps of a group's attempt; where an exception ends them, its pods keep no places."""
    try:
        return (yield from steps)
    except MISTAKES:
        if group.outcome is not None:
            yield from undo(context, group, group.outcome)
        yield from release(context, group)
        raise


def release(context: SchedulerContext, group: GroupAttempt) -> Generator[Effect, Answer, None]:
    """Give back places that no outcome knows of: an exception ended the trial that took them."""
    for attempt in reversed(group.attempts):
        if context.cluster.is_assumed(attempt.pod.uid):
            yield from give_back(context, attempt, attempt.info.node_name)
            context.waiting.drop(attempt.pod.uid)


def tell_freed(context: SchedulerContext, group: GroupAttempt) -> Generator[Effect, Answer, None]:
    """Let the pods that wait hear of what was given back. Only once the group's own pods rest: in
    the midst of their attempt it would count as something that they missed, and they would be tried
    again for it, and again.
    """
    yield from notify_of_freed(context, group.freed)


def undo(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """As if the trial had not been: places and evictions are taken back, nothing goes on."""
    yield from let_go(context, group, outcome)
    for tried in outcome.tried:
        if tried.room is not None:
            tried.room.drop()
            tried.room = None
