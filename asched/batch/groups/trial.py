"""The trial of a pod group: one pod after the other, with the places of earlier pods held.

    each pod:  filters, scores ─> node ─> assume, Reserve, Permit ─> the place is held
                   └─> PostFilter ─> a node once victims are gone ─> held as well
                            └─> no node: the group may go on without this pod

The group is schedulable as soon as Permit allows any of its pods. It is tried on the columns
themselves: cycles are serial, so no other pod sees a place that is given back in the end. (While an
extender is called, or the trial pauses, other pods see the place as taken.) Evictions are only
noted; they begin if the group fits with them.

Earlier nominations of the group's pods do not bind the other pods of the group: each pod counts
only once it has its place.

A pod that was rejected because of where other pods are, or are not, is tried again once further
pods of its group have places, so that the order of trials does not matter.

Bounds  a trial pauses between two pods once its slice of the budget is used up. Each further round
        places a pod, or is the last.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (podGroupSchedulingDefaultAlgorithm); further rounds are our own
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from asched.batch.groups.attempt import (
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
    GroupAttempt,
    GroupOutcome,
    Result,
)
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.placing import try_pod
from asched.core.cycle.unit import Tried
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Assignments, Mask, Placement
from asched.core.framework.status import MISTAKES, SUCCESS, Status, failure

T = TypeVar("T")
P = ParamSpec("P")

#: Budget steps for one pod of a group: its attempt, and the handling of its place.
TRY_STEPS: Final = 10
#: Budget steps for a pod's PostFilter, in addition to what that charges itself.
ROOM_STEPS: Final = 100
LET_GO_STEPS: Final = 5


def seen(group: GroupAttempt, steps: Generator[Effect, Answer, T]) -> Generator[Effect, Answer, T]:
    """Run the steps of a group, and note whether other pods could be tried meanwhile, while the
    steps wait for an extender, a plugin, or the next slice.
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
    plan: Mapping[str, Mask | None] | None = None,
    *,
    only_whether: bool = False,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try all pods, on the nodes `within` if that is given (bool[N]).

    Places of `GroupOutcome.tried` are held until `let_go`. `plan`: by uid, the rows for pods;
    these pods come first, in this order. With a plan nothing is evicted. `only_whether`: stop once
    the group is schedulable. Hypothetical pods, all of which are needed, stop at the first pod
    without a place. Beyond the group's minimum, pods of a lower priority than the popped pod are
    left out; they are tried by their own priority.
    """
    outcome = group.outcome = GroupOutcome(Result.UNSCHEDULABLE, UNSCHEDULABLE)
    take_nominations(context, group)
    have_places = True
    needed = (
        len(group.attempts)
        if group.hypothetical_gang
        else count_missing(context.cluster, group.key)
    )
    for attempt in group.attempts if plan is None else _in_order(group, plan):
        if needed <= 0 and attempt.pod.priority < group.pod.priority:
            continue
        yield from context.pause_if_due(TRY_STEPS)
        tried = yield from try_member(context, group, attempt, within, plan)
        outcome.tried.append(tried)
        have_places &= tried.decision is not None
        needed -= tried.decision is not None
        is_refuted = tried.failure is not None and group.hypothetical_gang is not None and not plan
        if not _count(outcome, tried) or is_refuted:
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
                yield from context.pause_if_due(TRY_STEPS)
                again = yield from try_member(context, group, before.attempt, within, plan)
                outcome.tried[index] = again
                if not _count(outcome, again):
                    return outcome
    return outcome


def take_nominations(context: SchedulerContext, group: GroupAttempt) -> None:
    """Withdraw the nominations of the group's pods, which do not bind each other."""
    for attempt in group.attempts if context.nominator else ():
        node = context.nominator.node_of(attempt.pod.uid)
        if node is not None:
            group.nominated[attempt.pod.uid] = node
            context.nominator.delete(attempt.pod.uid)


def try_plan(
    context: SchedulerContext, group: GroupAttempt, plan: Mapping[str, Mask], within: Mask | None
) -> Generator[Effect, Answer, GroupOutcome]:
    """As `try_group`; pods that do not fit on their planned rows are then tried elsewhere."""
    outcome = yield from try_group(context, group, within, plan)
    for index, before in enumerate(outcome.tried):
        if outcome.result is Result.UNSCHEDULABLE and before.decision is None:
            yield from context.pause_if_due(TRY_STEPS)
            again = yield from try_member(context, group, before.attempt, within, {})
            outcome.tried[index] = again
            if not _count(outcome, again):
                break
    return outcome


def _in_order(group: GroupAttempt, plan: Mapping[str, Mask | None]) -> list[Attempt]:
    order = {uid: at for at, uid in enumerate(plan)}
    return sorted(group.attempts, key=lambda a: order.get(a.pod.uid, len(order)))


def _count(outcome: GroupOutcome, tried: Tried) -> bool:
    """Update the group's outcome with a pod's trial. False ends the trial after an error."""
    if tried.decision is None:
        assert tried.failure is not None
        if tried.failure.is_error:
            outcome.result = Result.ERROR
            message = tried.failure.message
            outcome.message = f"failed to schedule other pod from a pod group: {message}"
        return not tried.failure.is_error
    outcome.waits_for_victims |= tried.failure is not None
    if tried.permit is SUCCESS or (tried.permit is not None and tried.permit.is_success):
        if outcome.waits_for_victims:
            outcome.result = Result.WAITING_ON_PREEMPTION
            outcome.message = WAITING_ON_PREEMPTION
        else:
            outcome.result, outcome.message = Result.SCHEDULED, ""
    return True


def _may_profit(tried: Tried) -> bool:
    """Whether places of other pods may help a rejected pod. Not if room is being made for it."""
    failure = tried.failure
    if failure is None or tried.decision is not None:
        return False
    room = tried.post_filter
    if room is not None and (room.background is not None or room.withdraw is not None):
        return False
    plugins = tried.attempt.runner.profile.plugins
    return any(getattr(plugins.get(name), "reads_counts", False) for name in failure.rejectors)


def try_member(
    context: SchedulerContext,
    group: GroupAttempt,
    attempt: Attempt,
    within: Mask | None,
    plan: Mapping[str, Mask | None] | None = None,
) -> Generator[Effect, Answer, Tried]:
    """Try one pod; a node that victims would have to leave first is reserved as well, and the
    evictions are only noted.
    """
    pod = attempt.info.pod
    where = within if plan is None else plan.get(pod.uid, within)
    attempt.started_s = context.monotonic_s()
    nominated = group.nominated.get(pod.uid) if group.nominated else None
    if nominated is not None:  # its own trial respects it
        context.nominator.add(pod, nominated)
    gangs = context.gangs
    is_whole = gangs.makes_room and pod.spec.scheduling_group is not None
    is_whole &= gangs.rules["pods-of-groups-skip-post-filter"]
    makes_room = plan is None and not is_whole
    tried = yield from try_pod(
        context, attempt, where, makes_room=makes_room, takes_nominated=makes_room
    )
    if tried.post_filter is not None:
        context.cluster.budget.note(ROOM_STEPS)
    if tried.waiting is None:  # else the nomination was deleted with the reservation
        context.nominator.delete(pod.uid)
    tried.duration_s = context.monotonic_s() - attempt.started_s
    return tried


def let_go(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """Give back all held places, the last one first. If other pods could be tried meanwhile, the
    places are added to `group.freed`. Waiting pods are notified of these once the group's own pods
    are queued again, which would miss the change during their attempt, and be tried again for it.
    """
    for tried in reversed(outcome.tried):
        if tried.waiting is None or tried.decision is None:
            continue
        yield from context.pause_if_due(LET_GO_STEPS)
        attempt, node = tried.attempt, tried.decision.node
        if group.was_seen:
            group.freed.add(attempt.info.cls.number, attempt.pod, node)
        yield from give_back(context, attempt, node)
        context.waiting.drop(attempt.pod.uid)
        tried.waiting = None


def released(
    context: SchedulerContext, group: GroupAttempt, steps: Generator[Effect, Answer, T]
) -> Generator[Effect, Answer, T]:
    """Run steps of a group's attempt; after an exception, give back the places of its pods."""
    try:
        return (yield from steps)
    except MISTAKES:
        if group.outcome is not None:
            yield from undo(context, group, group.outcome)
        yield from release(context, group)
        raise


def release(context: SchedulerContext, group: GroupAttempt) -> Generator[Effect, Answer, None]:
    """Give back places that no outcome records, because an exception ended their trial."""
    for attempt in reversed(group.attempts):
        if context.cluster.is_assumed(attempt.pod.uid):
            yield from give_back(context, attempt, attempt.info.node_name)
            context.waiting.drop(attempt.pod.uid)


def undo(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, None]:
    """Undo a trial: give back places and withdraw evictions."""
    yield from let_go(context, group, outcome)
    for tried in outcome.tried:
        tried.withdraw_post_filter()


def assignments_of(placement: Placement, tried: Iterable[Tried]) -> Assignments:
    """The pods that have places, as plugins that score the placement see them."""
    placed = [(t.attempt.info, t.decision.node) for t in tried if t.decision is not None]
    return Assignments(placement, tuple(placed))


def call_plugins(
    context: SchedulerContext, call: Callable[P, T], *args: P.args, **named: P.kwargs
) -> T | Status:
    """Call plugins. An exception costs the group this attempt, not the process."""
    try:
        return call(*args, **named)
    except MISTAKES as raised:
        return failure(context.contain(raised, "placement"))
