"""A pod group tried in placements: in each of them by itself, and then in the best.

The group's condition tells how many placements were tried if none takes it; its pods are told what
they were told in the first. Between trials everything is as it was, so the last trial, in the
placement that was chosen, comes to the same as the one before.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (podGroupSchedulingPlacementAlgorithm)
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from asched.core.cycle.context import SchedulerContext, blame
from asched.core.cycle.group import UNSCHEDULABLE, GroupAttempt, Outcome, Result
from asched.core.cycle.group_search import missing, search_places, told
from asched.core.cycle.group_trial import try_group, undo
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Assignments, Mask, Placement, choose, generate
from asched.core.framework.status import Status, failure
from asched.core.gang.problem import Infeasible, Unknown
from asched.core.state.facts import Answer

R = TypeVar("R")


def try_placements(
    context: SchedulerContext, group: GroupAttempt, *, only_whether: bool = False
) -> Generator[Effect, Answer, Outcome]:
    """Try all placements. Places of the outcome are held, as after `try_group`.

    `only_whether`: nobody makes room, or searches; those are not tried whom the group does without.
    """
    profile = group.runner.profile
    plan: dict[str, Mask] | None = {} if only_whether else None
    started_s = context.counter_s()
    placements = _called(context, lambda: generate(profile.placement_generators, group.key))
    said = placements.code.text if isinstance(placements, Status) else "Success"
    context.point_ran(group.attempts[0], "PlacementGenerate", said, started_s)
    if isinstance(placements, Status):
        return _without_pods(placements)
    first: Outcome | None = None
    fitting: list[Assignments] = []
    for placement in placements:
        outcome = yield from try_group(
            context, group, placement.rows, plan, only_whether=only_whether
        )
        is_last = placement is placements[-1]
        if outcome.result is Result.ERROR:
            return outcome
        if outcome.result is not Result.UNSCHEDULABLE:
            if is_last and not fitting:
                return outcome
            fitting.append(_assignments(placement, outcome))
        yield from undo(context, group, outcome)
        first = first or outcome
    if not fitting:
        assert first is not None
        first.message = (
            f"0/{len(placements)} placements are available, first placement status: {UNSCHEDULABLE}"
        )
        ended: Infeasible | Unknown | None = None
        is_due = not only_whether and missing(context, group)
        for placement in placements if is_due else ():
            found = yield from search_places(context, group, placement.rows)
            if isinstance(found, Outcome):
                return found
            if ended is None or isinstance(found, Unknown):
                ended = found
        if ended is not None:
            first.proof = told(ended)
        return first
    chosen = 0
    if len(fitting) > 1:
        started_s, seed = context.counter_s(), context.seed + group.id
        best = _called(context, lambda: choose(profile.placement_scorers, group.key, fitting, seed))
        said = best.code.text if isinstance(best, Status) else "Success"
        context.point_ran(group.attempts[0], "PlacementScore", said, started_s)
        if isinstance(best, Status):
            return _without_pods(best)
        chosen = best
    rows = fitting[chosen].placement.rows
    return (yield from try_group(context, group, rows, plan, only_whether=only_whether))


def _assignments(placement: Placement, outcome: Outcome) -> Assignments:
    placed = [
        (tried.attempt.info, tried.decision.node)
        for tried in outcome.tried
        if tried.decision is not None
    ]
    return Assignments(placement, tuple(placed))


def _without_pods(status: Status) -> Outcome:
    """The group failed before any of its pods was tried, or after all of them were."""
    result = Result.UNSCHEDULABLE if status.is_rejection else Result.ERROR
    return Outcome(result, status.message)


def _called(context: SchedulerContext, call: Callable[[], R]) -> R | Status:
    """What the plugins answer. What one of them raises costs the group its attempt, no more."""
    try:
        return call()
    except Exception as raised:
        if not blame(raised).plugin:
            raise
        return failure(context.contain(raised, "placement"))
