"""The trial of a tree of pod groups: its leaves one after the other, all or nothing at each level.

    leaf        its pods, as a group by itself (trial.py); feasible once minCount have places
    composite   its children; feasible once minGroupCount of them are
    infeasible  its places are given back, and the next child is tried

A child without enough pods is not tried. A group with a topology constraint is tried in one
placement after the other, within that of its parent, and stays in the first that takes it; upstream
scores the placements. There is no backtracking, as upstream, and no search for places. Evictions
are for the tree as a whole.

Bounds  each leaf is tried once in each placement; pauses as in trial.py.
Source  KEP-6012; kubernetes/kubernetes pkg/scheduler/schedule_one_podgroup.go
"""

from collections import defaultdict
from collections.abc import Generator, Sequence

from asched.batch.groups.attempt import UNSCHEDULABLE, GroupAttempt, GroupOutcome, Result, Tried
from asched.batch.groups.trial import let_go, take_nominations, try_group
from asched.core.cluster.facts import Answer
from asched.core.cluster.group_trees import TreeNode
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.failure import unschedulable
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask, Placement, generate
from asched.core.framework.status import MISTAKES, Status, failure


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
    is_feasible = yield from trial.attempt(group.tree.root, None)
    if outcome.result is Result.ERROR:
        return outcome
    if is_feasible and any(tried.waiting is not None for tried in outcome.tried):
        outcome.result, outcome.message = Result.SCHEDULED, ""
        tried = {each.attempt.pod.uid for each in outcome.tried}
        left = [attempt for attempt in group.attempts if attempt.pod.uid not in tried]
        outcome.tried += [Tried(each, failure=unschedulable(UNSCHEDULABLE)) for each in left]
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
        self._attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
        for attempt in group.attempts:
            self._attempts[attempt.queued.gang].append(attempt)

    def attempt(self, node: TreeNode, within: Mask | None) -> Generator[Effect, Answer, bool]:
        """Try a node; whether it is feasible, and if so its places are held."""
        self._outcome.infeasible.pop(node.key, None)
        if not node.is_ready:
            what = "pods" if node.is_leaf else "groups with enough pods"
            return self._fail(node, f"{node.count} of {node.minimum} {what} exist")
        mark = len(self._outcome.tried)
        placements = self._placements(node, within)
        if isinstance(placements, Status):
            return self._fail(node, placements.message, is_error=not placements.is_rejection)
        for rows in placements:
            del self._outcome.tried[mark:]
            does = self._leaf(node, rows) if node.is_leaf else self._composite(node, rows)
            if (yield from does):
                return True
            if self._outcome.result is Result.ERROR:
                return False
            yield from self._take_back(mark)
        return False

    def _fail(self, node: TreeNode, message: str, *, is_error: bool = False) -> bool:
        """Note why a node is not feasible."""
        self._outcome.infeasible[node.key] = message
        if is_error:
            self._outcome.result, self._outcome.message = Result.ERROR, message
        return False

    def _leaf(self, node: TreeNode, within: Mask | None) -> Generator[Effect, Answer, bool]:
        group, attempts = self._group, self._attempts[node.key]
        pods = self._context.cluster.pod_groups.get(node.key)
        if attempts:
            of_leaf = GroupAttempt(node.key, attempts, group.id, attempts[0].pod, group.started_s)
            of_leaf.nominated = group.nominated
            found = yield from try_group(
                self._context, of_leaf, within, {}, only_whether=self._only_whether
            )
            self._outcome.tried += found.tried
            if found.result is Result.ERROR:
                return self._fail(node, found.message, is_error=True)
        if len(pods.placed) >= node.minimum:
            return True
        return self._fail(node, _cannot(node.minimum, len(pods.placed), 0))

    def _composite(self, node: TreeNode, within: Mask | None) -> Generator[Effect, Answer, bool]:
        feasible, remaining = 0, len(node.children)
        for child in node.children:
            if feasible + remaining < node.minimum:
                break
            feasible += yield from self.attempt(child, within)
            remaining -= 1
            if self._outcome.result is Result.ERROR:
                return False
        if feasible >= node.minimum:
            return True
        return self._fail(node, _cannot(node.minimum, feasible, remaining))

    def _take_back(self, mark: int) -> Generator[Effect, Answer, None]:
        """Give back the places of the pods that were tried since then; their group failed."""
        tried = self._outcome.tried[mark:]
        given = GroupOutcome(Result.UNSCHEDULABLE, UNSCHEDULABLE, tried)
        yield from let_go(self._context, self._group, given)
        for each in tried:
            if each.failure is None:
                each.failure, each.decision = each.unschedulable(), None

    def _placements(self, node: TreeNode, within: Mask | None) -> Sequence[Mask | None] | Status:
        if not (self._context.gangs.tries_placements and node.group.topology_key):
            return (within,)
        generators = self._group.runner.profile.placement_generators
        try:
            found = generate(generators, node.key, Placement("", within))
        except MISTAKES as raised:
            return failure(self._context.contain(raised, "placement"))
        return found if isinstance(found, Status) else [each.rows for each in found]


def _cannot(minimum: int, scheduled: int, remaining: int) -> str:
    return f"minCount ({minimum}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
