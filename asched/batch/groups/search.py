"""Search places for a gang whose pod-by-pod trial found none.

    bounds     refuted: there is no place, with the reason
    plans      packed by prices, in one choice of domains after the other
    orders     its classes of pods, one class before the other

A plan is tried like any group, pod by pod, each on its planned node; an order on all nodes: the
filters, Reserve and Permit decide. So a place is found or it is not; only bounds and prices prove
that there is none. There is no search if the pod-by-pod trial succeeds. Extenders cannot be called
for trials, so gangs that need them are not searched for.

Bounds  `gang_search_steps` of the budget an attempt, in slices like all long work; half of that
        after each search of a group without a result, down to STEPS_MIN; ORDERS_MAX orders;
        KNOWN_MAX groups are remembered.
"""

from collections.abc import Generator
from itertools import islice, permutations
from typing import Final

import numpy as np

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.board import MOVED, GroupBoard
from asched.batch.groups.description import described
from asched.batch.groups.trial import TRY_STEPS, let_go, try_group, try_plan, undo
from asched.batch.placement.bounds import refuted
from asched.batch.placement.domains import planned
from asched.batch.placement.gang_problem import GangProblem, Infeasible, Plan, Unproven
from asched.batch.placement.plan import by_prices
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import count_missing, gang_of
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import failure_of
from asched.core.cycle.unit import Failure
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.status import MISTAKES
from asched.core.model.lru import Lru

STEPS_MIN: Final = 5_000
#: Orders of the classes that are tried: all of four classes.
ORDERS_MAX: Final = 24
KNOWN_MAX: Final = 1_024
#: Cells of classes by rows for one budget step of the bounds and of each plan.
CELLS_A_STEP: Final = 200

NOT_FOUND: Final = Unproven(
    "none of the plans and orders of its pods that were tried gives enough of them a place"
)

Finding = GroupOutcome | Infeasible | Unproven


class Searches:
    """Searches without a result by key of the group. Made by `Cluster.singleton`."""

    def __init__(self, _cluster: Cluster) -> None:
        self._unproven: Lru[str, int] = Lru(KNOWN_MAX)

    def steps(self, key: str, most: int) -> int:
        """The budget steps of the next search."""
        return max(most >> (self._unproven.get(key) or 0), min(most, STEPS_MIN))

    def ended(self, key: str, finding: Finding) -> None:
        before = self._unproven.pop(key) or 0
        if isinstance(finding, Unproven):
            self._unproven.put(key, before + 1)


def search_if_due(
    context: SchedulerContext, group: GroupAttempt, outcome: GroupOutcome
) -> Generator[Effect, Answer, GroupOutcome]:
    """Search after a trial without places; returns the trial's outcome, or that of a plan."""
    if outcome.result not in (Result.UNSCHEDULABLE, Result.WAITING_ON_PREEMPTION):
        return outcome
    if not missing(context, group):
        return outcome
    yield from let_go(context, group, outcome)
    finding = yield from search_places(context, group)
    if isinstance(finding, GroupOutcome):
        yield from undo(context, group, outcome)
        return finding
    outcome.proof = proof_text(finding)
    return outcome


def proof_text(finding: Infeasible | Unproven) -> str:
    if isinstance(finding, Infeasible):
        return f"there is no place for it: {finding.why}"
    return f"no place was found for it: {finding.why}"


def missing(context: SchedulerContext, group: GroupAttempt) -> int:
    """How many pods of a gang must get places; 0 if no search is needed or possible."""
    if group.hypothetical_gang is not None:
        return 0 if group.consults else group.hypothetical_gang.needed
    is_gang = gang_of(context.cluster, group.key) is not None
    if not is_gang or group.consults or not context.gang_search_steps:
        return 0
    # While places of this attempt are reserved, their pods count as placed.
    reserved = sum(context.cluster.is_assumed(attempt.pod.uid) for attempt in group.attempts)
    count = count_missing(context.cluster, group.key) + reserved
    return count if 0 < count <= len(group.attempts) else 0


def search_places(
    context: SchedulerContext, group: GroupAttempt, within: Mask | None = None
) -> Generator[Effect, Answer, Finding]:
    """Search places; no pod of the group may have one. The places of an outcome are held."""
    needed = missing(context, group)
    if not needed:
        return Unproven("it is not a gang that can be completed")
    searches, most = context.cluster.singleton(Searches), context.gang_search_steps
    board = GroupBoard(context, group, needed, within, searches.steps(group.key, most))
    try:
        finding = yield from _find(context, group, board, within)
    except OutOfTurn as stop:
        finding = Unproven(str(stop))
    except MISTAKES as raised:
        failure: Failure = failure_of(context, raised, group.key)
        finding = Unproven(failure.message)
    if isinstance(finding, Infeasible) and board.was_moved:
        finding = MOVED
    searches.ended(group.key, finding)
    return finding


def _find(
    context: SchedulerContext, group: GroupAttempt, board: GroupBoard, within: Mask | None
) -> Generator[Effect, Answer, Finding]:
    described_as = yield from board.patiently(lambda: described(board))
    if isinstance(described_as, Unproven):
        return described_as
    if described_as is not None:
        problem, hopeful, rules, names, resources = described_as
        # The bounds run even if this uses up the budget; the next charge ends the search then.
        yield from board.charge(1 + problem.rows.size // CELLS_A_STEP)
        why = refuted(problem, names, resources)
        if why:
            return Infeasible(why)
        if len(board.counts) > 1:  # of one class, the count was exact
            proof = yield from _proof(board, problem)
            if proof is not None:
                return proof
        for plan in planned(hopeful, rules):
            if not isinstance(plan, list):
                stop = yield from board.charge(plan)
                if stop is not None:
                    return stop
                continue
            where = _rows_of(context, board, plan)
            outcome = yield from try_plan(context, group, where, within)
            if outcome.result is Result.SCHEDULED:
                return outcome
            yield from undo(context, group, outcome)
    # Pods of one class have been tried in their only order.
    orders = permutations(board.members) if len(board.members) > 1 else ()
    for order in islice(orders, ORDERS_MAX):
        stop = yield from board.charge(TRY_STEPS * len(group.attempts))
        if stop is not None:
            return stop
        anywhere = {attempt.pod.uid: within for attempts in order for attempt in attempts}
        outcome = yield from try_group(context, group, within, anywhere)
        if outcome.result is Result.SCHEDULED:
            return outcome
        yield from undo(context, group, outcome)
    return NOT_FOUND


def _proof(
    board: GroupBoard, problem: GangProblem
) -> Generator[Effect, Answer, Infeasible | Unproven | None]:
    """Try to refute the problem by prices; None if it may have a solution."""
    steps = by_prices(problem, only_proof=True)
    while True:
        try:
            cost = next(steps)
        except StopIteration as end:
            return end.value if isinstance(end.value, Infeasible) else None
        stop = yield from board.charge(cost)
        if stop is not None:
            return stop


def _rows_of(context: SchedulerContext, board: GroupBoard, plan: Plan) -> dict[str, Mask]:
    """The planned row of each pod, by uid, in the plan's order."""
    remaining = [list(attempts) for attempts in board.members]
    masks: dict[int, Mask] = {}
    where: dict[str, Mask] = {}
    for c, row, count in plan:
        if row not in masks:
            masks[row] = np.zeros(context.cluster.nodes.height, dtype=np.bool_)
            masks[row][row] = True
        for _ in range(count):
            where[remaining[c].pop(0).pod.uid] = masks[row]
    return where
