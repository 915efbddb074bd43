"""The trial of a tree of pod groups: its leaves one after the other, all or nothing at each level.

    leaf        its pods, as a group by itself (trial.py); feasible once minCount have places
    composite   its children; feasible once minGroupCount of them are
    infeasible  its places are given back, and the next child is tried

A child without enough pods is not tried. A group with a topology constraint is tried in each
placement within that of its parent, and then once more in the best of those that take it, with the
placements that its descendants had there. There is no backtracking, as upstream, and no search for
places. Evictions are for the tree as a whole; trials for them stop at the first placement.

Bounds  after STEPS_MAX of the budget, the best of the placements found so far is taken; pauses as
        in trial.py.
Source  KEP-6012; kubernetes/kubernetes pkg/scheduler/schedule_one_podgroup.go
"""

from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import Final

from asched.batch.groups.attempt import (
    UNSCHEDULABLE,
    GroupAttempt,
    GroupOutcome,
    Result,
    unschedulable_with,
)
from asched.batch.groups.trial import (
    TRY_STEPS,
    assignments_of,
    call_plugins,
    let_go,
    take_nominations,
    try_group,
)
from asched.core.cluster.facts import Answer
from asched.core.cluster.group_trees import TreeNode
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.unit import Tried, unschedulable
from asched.core.framework.effects import Effect
from asched.core.framework.placements import EVERYWHERE, Assignments, Placement, choose, generate
from asched.core.framework.status import Status

#: By key, the placement of each feasible group at or below a node.
Choices = dict[str, Placement]

#: Three seconds of work, as for preemption for a group. A guess.
STEPS_MAX: Final = 300_000


def try_tree(
    context: SchedulerContext, group: GroupAttempt, *, only_whether: bool = False
) -> Generator[Effect, Answer, GroupOutcome]:
    """Try a group with a tree. Places of the outcome are held; `only_whether`: no pods beyond the
    minimum of a leaf are tried.
    """
    assert group.tree is not None
    outcome = group.outcome = GroupOutcome(Result.UNSCHEDULABLE, UNSCHEDULABLE)
    if group.tree.fault:
        outcome.message += f", {group.tree.fault}"
        return outcome
    take_nominations(context, group)
    trial = _TreeTrial(context, group, outcome, only_whether=only_whether)
    is_feasible = (yield from trial.attempt(group.tree.root, EVERYWHERE)) is not None
    if outcome.result is Result.ERROR:
        return outcome
    if is_feasible and any(tried.waiting is not None for tried in outcome.tried):
        outcome.result, outcome.message = Result.SCHEDULED, ""
        tried = {each.attempt.pod.uid for each in outcome.tried}
        untried = [attempt for attempt in group.attempts if attempt.pod.uid not in tried]
        outcome.tried += [Tried(each, failure=unschedulable(UNSCHEDULABLE)) for each in untried]
    elif not is_feasible:
        outcome.minimum = outcome.infeasible[group.tree.root.key]
    return outcome


class _TreeTrial:
    def __init__(
        self,
        context: SchedulerContext,
        group: GroupAttempt,
        outcome: GroupOutcome,
        *,
        only_whether: bool,
    ) -> None:
        self._context, self._group, self._outcome = context, group, outcome
        self._only_whether = only_whether
        self._spent = 0.0
        self._attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
        for attempt in group.attempts:
            self._attempts[attempt.queued.gang].append(attempt)

    def attempt(
        self, node: TreeNode, parent: Placement, repeated: Choices | None = None
    ) -> Generator[Effect, Answer, Choices | None]:
        """Try a node; None if it is not feasible, else its places are held. `repeated`: the
        placements of an earlier trial.
        """
        self._outcome.infeasible.pop(node.key, None)
        if not node.is_ready:
            what = "pods" if node.is_leaf else "groups with enough pods"
            return self._fail(node, f"{node.count} of {node.minimum} {what} exist")
        tried, mark = self._outcome.tried, len(self._outcome.tried)
        known = repeated.get(node.key) if repeated is not None else None
        placements: Sequence[Placement] | Status = (parent if known is None else known,)
        if known is None and self._context.gangs.tries_placements and node.group.topology_key:
            generators = self._group.runner.profile.placement_generators
            placements = call_plugins(self._context, generate, generators, node.key, parent)
        if isinstance(placements, Status):
            return self._fail(node, placements.message, is_error=not placements.is_rejection)
        fitting: list[tuple[Assignments, Choices]] = []
        for placement in placements:
            del tried[mark:]
            does = self._leaf if node.is_leaf else self._composite
            choices_of_child = yield from does(node, placement, repeated)
            if self._outcome.result is Result.ERROR:
                return None
            if choices_of_child is not None:
                choices_of_child[node.key] = placement
                is_only = placement is placements[-1] and not fitting
                if is_only or self._only_whether:
                    return choices_of_child
                fitting.append((assignments_of(placement, tried[mark:]), choices_of_child))
            yield from self._take_back(mark)
            if fitting and self._spent >= STEPS_MAX:
                break
        if not fitting:
            return None
        scorers, seed = self._group.runner.profile.placement_scorers, self._context.seed
        each, seed = [assignments for assignments, _ in fitting], seed + self._group.popped.id
        best = call_plugins(self._context, choose, scorers, node.key, each, seed)
        if isinstance(best, Status):
            return self._fail(node, best.message, is_error=True)
        del tried[mark:]
        return (yield from self.attempt(node, parent, fitting[best][1]))

    def _fail(self, node: TreeNode, message: str, *, is_error: bool = False) -> Choices | None:
        """Note why a node is not feasible."""
        self._outcome.infeasible[node.key] = message
        if is_error:
            self._outcome.result, self._outcome.message = Result.ERROR, message
        return None

    def _leaf(
        self, node: TreeNode, placement: Placement, _repeated: Choices | None
    ) -> Generator[Effect, Answer, Choices | None]:
        group, attempts = self._group, self._attempts[node.key]
        pods = self._context.cluster.pod_groups.get(node.key)
        if attempts:
            of_leaf = GroupAttempt(attempts[0], attempts, node.key)
            of_leaf.nominated = group.nominated
            found = yield from try_group(
                self._context, of_leaf, placement.rows, {}, only_whether=self._only_whether
            )
            self._outcome.tried += found.tried
            self._spent += TRY_STEPS * len(found.tried)
            if found.result is Result.ERROR:
                return self._fail(node, found.message, is_error=True)
        if len(pods.placed) >= node.minimum:
            return {}
        return self._fail(node, _cannot(node.minimum, len(pods.placed), 0))

    def _composite(
        self, node: TreeNode, placement: Placement, repeated: Choices | None
    ) -> Generator[Effect, Answer, Choices | None]:
        feasible, remaining, choices = 0, len(node.children), Choices()
        for child in node.children:
            if feasible + remaining < node.minimum:
                break
            found = yield from self.attempt(child, placement, repeated)
            remaining -= 1
            if self._outcome.result is Result.ERROR:
                return None
            if found is not None:
                feasible, choices = feasible + 1, {**choices, **found}
        if feasible >= node.minimum:
            return choices
        return self._fail(node, _cannot(node.minimum, feasible, remaining))

    def _take_back(self, mark: int) -> Generator[Effect, Answer, None]:
        """Give back the places of the pods that were tried since then; their group failed."""
        tried = self._outcome.tried[mark:]
        given = GroupOutcome(Result.UNSCHEDULABLE, UNSCHEDULABLE, tried)
        yield from let_go(self._context, self._group, given)
        for each in tried:
            if each.failure is None:
                each.failure, each.decision = unschedulable_with(each), None


def _cannot(minimum: int, scheduled: int, remaining: int) -> str:
    return f"minCount ({minimum}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
