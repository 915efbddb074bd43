"""A pod group tried in placements: in each of them by itself, and then in the best.

The group's condition tells how many placements were tried if none takes it; its pods are told what
they were told in the first. Between trials everything is as it was, so the last trial, in the
placement that was chosen, comes to the same as the one before.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (podGroupSchedulingPlacementAlgorithm)
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import compress
from typing import ParamSpec, TypeVar

from asched.batch.groups.attempt import UNSCHEDULABLE, GroupAttempt, GroupOutcome, Result
from asched.batch.groups.guess import guess
from asched.batch.groups.search import missing, search_places, told
from asched.batch.groups.trial import try_group, undo
from asched.batch.placement.problem import Infeasible, Unproven
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.effects import Effect
from asched.core.framework.placements import (
    Assignments,
    Mask,
    Placement,
    RepeatedPlacements,
    choose,
    generate,
)
from asched.core.framework.status import MISTAKES, Status, failure
from asched.core.state.facts import Answer

P = ParamSpec("P")
R = TypeVar("R")


def try_placements(
    context: SchedulerContext,
    group: GroupAttempt,
    *,
    only_whether: bool = False,
    counts: bool = True,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try all placements. Places of the outcome are held, as after `try_group`. `counts`: those
    that take the group for sure are tried only if they are chosen.

    `only_whether`: nobody makes room, or searches; those are not tried whom the group does without.
    """
    profile = group.runner.profile
    plan: dict[str, Mask] | None = {} if only_whether else None
    started_s = context.counter_s()
    placements = _called(context, generate, profile.placement_generators, group.key)
    said = placements.code.text if isinstance(placements, Status) else "Success"
    context.point_ran(group.attempts[0], "PlacementGenerate", said, started_s)
    if isinstance(placements, Status):
        return _without_pods(placements)
    first: GroupOutcome | None = None
    known: list[bool | None] = [None]
    if len(placements) > 1:
        known = guess(context, group, placements, is_wanted=counts and not only_whether)
    everybody = tuple([(attempt.info, "") for attempt in group.attempts]) if True in known else ()
    if None not in known:  # some take the group: who would say False of all of them?
        sure = placements if False not in known else tuple(compress(placements, known))
        return (yield from _try_best(context, group, RepeatedPlacements(sure, everybody), plan))
    fitting: list[Assignments] = []
    for placement, fits in zip(placements, known, strict=True):
        if fits:
            fitting.append(Assignments(placement, everybody))
        if fits is not None:
            continue
        outcome = yield from try_group(
            context, group, placement.rows, plan, only_whether=only_whether
        )
        if outcome.result is Result.ERROR:
            return outcome
        if outcome.result is not Result.UNSCHEDULABLE:
            if placement is placements[-1] and not fitting:
                return outcome
            fitting.append(_assignments(placement, outcome))
        yield from undo(context, group, outcome)
        first = first or outcome
    if not fitting:
        assert first is not None
        due = placements if not only_whether and missing(context, group) else []
        return (yield from _in_vain(context, group, first, len(placements), due))
    return (yield from _try_best(context, group, fitting, plan, counted=True in known))


def _try_best(
    context: SchedulerContext,
    group: GroupAttempt,
    fitting: Sequence[Assignments],
    plan: Mapping[str, Mask] | None,
    *,
    counted: bool = True,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Of placements that take the group the best. `counted`: of some this is known by counting; if
    the trial does not bear it out, all are tried.
    """
    chosen = 0
    if len(fitting) > 1:
        started_s, seed = context.counter_s(), context.seed + group.id
        scorers = group.runner.profile.placement_scorers
        best = _called(context, choose, scorers, group.key, fitting, seed)
        said = best.code.text if isinstance(best, Status) else "Success"
        context.point_ran(group.attempts[0], "PlacementScore", said, started_s)
        if isinstance(best, Status):
            return _without_pods(best)
        chosen = best
    rows, only_whether = fitting[chosen].placement.rows, plan is not None
    outcome = yield from try_group(context, group, rows, plan, only_whether=only_whether)
    if counted and outcome.result is not Result.SCHEDULED:
        yield from undo(context, group, outcome)
        return (yield from try_placements(context, group, counts=False))
    return outcome


def _in_vain(
    context: SchedulerContext,
    group: GroupAttempt,
    first: GroupOutcome,
    count: int,
    searched: Sequence[Placement],
) -> Generator[Effect, Answer, GroupOutcome]:
    """None of `count` placements takes the group one pod after the other: search in these."""
    first.message = f"0/{count} placements are available, first placement status: {UNSCHEDULABLE}"
    ended: Infeasible | Unproven | None = None
    for placement in searched:
        found = yield from search_places(context, group, placement.rows)
        if isinstance(found, GroupOutcome):
            return found
        if ended is None or isinstance(found, Unproven):
            ended = found
    if ended is not None:
        first.proof = told(ended)
    return first


def _assignments(placement: Placement, outcome: GroupOutcome) -> Assignments:
    placed = [
        (tried.attempt.info, tried.decision.node)
        for tried in outcome.tried
        if tried.decision is not None
    ]
    return Assignments(placement, tuple(placed))


def _without_pods(status: Status) -> GroupOutcome:
    """The group failed before any of its pods was tried, or after all of them were."""
    result = Result.UNSCHEDULABLE if status.is_rejection else Result.ERROR
    return GroupOutcome(result, status.message)


def _called(
    context: SchedulerContext, call: Callable[P, R], *args: P.args, **named: P.kwargs
) -> R | Status:
    """What the plugins answer. What one of them raises costs the group its attempt, no more."""
    try:
        return call(*args, **named)
    except MISTAKES as raised:
        return failure(context.contain(raised, "placement"))
