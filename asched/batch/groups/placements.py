"""Try a pod group in each placement by itself, and then in the best.

If no placement takes the group, its condition has the number of placements that were tried, and
its pods have the messages of the first trial. Each trial is undone, so the last trial, in the
chosen placement, has the same result as the earlier trial there.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
        (podGroupSchedulingPlacementAlgorithm)
"""

from collections.abc import Generator, Mapping, Sequence
from itertools import compress

from asched.batch.groups.attempt import UNSCHEDULABLE, GroupAttempt, GroupOutcome, Result
from asched.batch.groups.search import missing, proof_text, search_places
from asched.batch.groups.slots import guess
from asched.batch.groups.trial import assignments_of, call_plugins, try_group, undo
from asched.batch.placement.gang_problem import Infeasible, Unproven
from asched.core.cluster.facts import Answer
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
from asched.core.framework.status import Status


def try_placements(
    context: SchedulerContext,
    group: GroupAttempt,
    *,
    only_whether: bool = False,
    counts: bool = True,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try all placements. Places of the outcome are held, as after `try_group`. `counts`:
    placements that certainly take the group are tried only if they are chosen.

    `only_whether`: no room is made, no search runs, and pods beyond the minimum are not tried.
    """
    profile, observer = group.runner.profile, context.observer
    plan: dict[str, Mask] | None = {} if only_whether else None
    started_s = context.monotonic_s()
    placements = call_plugins(context, generate, profile.placement_generators, group.key)
    code = placements.code.text if isinstance(placements, Status) else "Success"
    context.point_ran(group.attempts[0], "PlacementGenerate", code, started_s)
    if isinstance(placements, Status):
        return _without_pods(placements)
    observer.placements_generated(profile.scheduler_name, len(placements))
    first: GroupOutcome | None = None
    known: list[bool | None] = [None]
    if len(placements) > 1:
        started_s = context.monotonic_s()
        known = guess(context, group, placements, is_wanted=counts and not only_whether)
        each_s = (context.monotonic_s() - started_s) / len(placements)
        for is_feasible in True, False:
            observer.placements_evaluated(
                profile.scheduler_name,
                is_feasible=is_feasible,
                duration_s=each_s,
                times=known.count(is_feasible),
            )
    members = tuple([(attempt.info, "") for attempt in group.attempts]) if True in known else ()
    if None not in known:  # some take the group: `guess` never returns only False
        sure = placements if False not in known else tuple(compress(placements, known))
        return (yield from _try_best(context, group, RepeatedPlacements(sure, members), plan))
    fitting: list[Assignments] = []
    for placement, fits in zip(placements, known, strict=True):
        if fits:
            fitting.append(Assignments(placement, members))
        if fits is not None:
            continue
        started_s = context.monotonic_s()
        outcome = yield from try_group(
            context, group, placement.rows, plan, only_whether=only_whether
        )
        if outcome.result is Result.ERROR:
            return outcome
        observer.placements_evaluated(
            profile.scheduler_name,
            is_feasible=outcome.result is not Result.UNSCHEDULABLE,
            duration_s=context.monotonic_s() - started_s,
        )
        if outcome.result is not Result.UNSCHEDULABLE:
            if placement is placements[-1] and not fitting:
                return outcome
            fitting.append(assignments_of(placement, outcome.tried))
        yield from undo(context, group, outcome)
        first = first or outcome
    if not fitting:
        assert first is not None
        due = placements if not only_whether and missing(context, group) else []
        return (yield from _without_places(context, group, first, len(placements), due))
    return (yield from _try_best(context, group, fitting, plan, counted=True in known))


def _try_best(
    context: SchedulerContext,
    group: GroupAttempt,
    fitting: Sequence[Assignments],
    plan: Mapping[str, Mask] | None,
    *,
    counted: bool = True,
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try the best of the placements that take the group. `counted`: some are only known to by
    counting; if the trial fails, all placements are tried.
    """
    chosen = 0
    if len(fitting) > 1:
        started_s, seed = context.monotonic_s(), context.seed + group.popped.id
        scorers = group.runner.profile.placement_scorers
        best = call_plugins(context, choose, scorers, group.key, fitting, seed)
        code = best.code.text if isinstance(best, Status) else "Success"
        context.point_ran(group.attempts[0], "PlacementScore", code, started_s)
        if isinstance(best, Status):
            return _without_pods(best)
        chosen = best
    rows, only_whether = fitting[chosen].placement.rows, plan is not None
    outcome = yield from try_group(context, group, rows, plan, only_whether=only_whether)
    if counted and outcome.result is not Result.SCHEDULED:
        yield from undo(context, group, outcome)
        return (yield from try_placements(context, group, counts=False))
    return outcome


def _without_places(
    context: SchedulerContext,
    group: GroupAttempt,
    first: GroupOutcome,
    count: int,
    searched: Sequence[Placement],
) -> Generator[Effect, Answer, GroupOutcome]:
    """Search in these placements, after no pod-by-pod trial in `count` placements succeeded."""
    first.message = f"0/{count} placements are available, first placement status: {UNSCHEDULABLE}"
    ended: Infeasible | Unproven | None = None
    for placement in searched:
        finding = yield from search_places(context, group, placement.rows)
        if isinstance(finding, GroupOutcome):
            return finding
        if ended is None or isinstance(finding, Unproven):
            ended = finding
    if ended is not None:
        first.proof = proof_text(ended)
    return first


def _without_pods(status: Status) -> GroupOutcome:
    """The outcome of a group that failed outside the trials of its pods."""
    result = Result.UNSCHEDULABLE if status.is_rejection else Result.ERROR
    return GroupOutcome(result, status.message)
