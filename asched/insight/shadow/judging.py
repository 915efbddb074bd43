"""One decision of another scheduler, judged by a profile of ours as the cluster stands.

    placed         the same node? as high a score? does its node fit at all? which plugin differs?
    unschedulable  do we refuse it, too? in the same words? with room made on the same node?

A runner of its own: all nodes are scored, extenders are not asked, and what it caches is nobody
else's. What making room would have noted is taken back at once. It leaves the budget open.

Bounds  STEPS_MAX of the cluster's budget a judgement: what costs more is not judged.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.scheduling import failure_of, rejected
from asched.core.framework.attempt import Rejection
from asched.core.framework.points import PostFilterResult
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.sampling import adaptive_count
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.framework.status import MISTAKES, Status
from asched.core.model.pod import Pod
from asched.core.state.budget import OutOfTurn
from asched.core.state.pods import PodInfo
from asched.insight.shadow.finding import Agreement, OtherVerdict, ShadowFinding

#: 50 ms of work.
STEPS_MAX: Final = 5_000
ALL_NODES: Final = 100


class ShadowJudge:
    """For the pods of one profile. `configured` is the runner that was configured for it."""

    def __init__(self, context: SchedulerContext, configured: Runner) -> None:
        self.configured = configured
        self._context = context
        self._cluster = context.cluster
        self._name = configured.profile.scheduler_name
        profile = replace(configured.profile, percentage_of_nodes_to_score=ALL_NODES)
        self._runner = Runner(profile, context.cluster, context.nominator)

    def placed(self, pod: Pod, node: str) -> ShadowFinding:
        """A pod that has no node yet as far as the cluster knows, and is given one."""
        said = ShadowFinding(pod.key, self._name, OtherVerdict.PLACED, Agreement.UNKNOWN_NODE, node)
        row = self._cluster.nodes.row_of.get(node)
        if row is None:
            return said
        return self._judged(pod, said, lambda info: self._placed(info, row, said))

    def refused(self, pod: Pod, message: str, nominated: str) -> ShadowFinding:
        """A pod that is told to fit nowhere, and for which room may be made on a node."""
        said = ShadowFinding(
            pod.key, self._name, OtherVerdict.UNSCHEDULABLE, Agreement.SAME, nominated
        )
        return self._judged(pod, said, lambda info: self._refused(info, message, said))

    # --- inside ----------------------------------------------------------------------------------

    def _judged(
        self, pod: Pod, said: ShadowFinding, judge: Callable[[PodInfo], ShadowFinding]
    ) -> ShadowFinding:
        """What `judge` finds; an error where it raises, and nobody's fault where extenders are
        asked.
        """
        info = self._cluster.classes.info_of(pod)
        try:
            found = judge(info)
        except MISTAKES as raised:
            return self._failed(said, raised)
        if found.outcome is not Agreement.SAME and self.configured.consults(info):
            return found._replace(outcome=Agreement.EXTENDER)
        return found

    def _schedule(self, info: PodInfo) -> Decision | Rejection:
        self._cluster.budget.open(STEPS_MAX)
        found: Decision | Rejection = run_alone(self._runner.schedule(info, seed=0))
        return found

    def _failed(self, said: ShadowFinding, raised: BaseException) -> ShadowFinding:
        if isinstance(raised, OutOfTurn):
            told = str(raised)
        else:
            told = failure_of(self._context, raised).message
        return said._replace(outcome=Agreement.ERROR, details={"error": told})

    def _placed(self, info: PodInfo, row: int, said: ShadowFinding) -> ShadowFinding:
        found = self._schedule(info)
        if isinstance(found, Rejection):
            return _refused_by(said, found.status_at(row) or found.absent)
        said = said._replace(ours=found.node)
        if found.row == row:
            return said._replace(outcome=Agreement.SAME)
        fitting = self._runner.fitting(info)
        rows = fitting.rows()
        if not rows[row]:
            return _refused_by(said, fitting.status_on(row))
        state = found.state
        ranking = state.rank(info, None if np.array_equal(rows, state.feasible) else rows)
        theirs, best = int(ranking[row]), int(ranking.max())
        if theirs == best and found.score is not None:
            return said._replace(outcome=Agreement.TIE)
        plugin, points = _points(state, row, found.row)
        details = {"score": theirs, "ours": int(ranking[found.row]), "points": points}
        fits = int(np.count_nonzero(rows))
        percentage = self.configured.profile.percentage_of_nodes_to_score
        is_sampled = fits > adaptive_count(percentage, self._cluster.nodes.count)
        outcome = Agreement.SAMPLED if is_sampled else Agreement.SCORE
        if is_sampled:
            details["fits"] = fits
        return said._replace(outcome=outcome, plugin=plugin, details=details)

    def _refused(self, info: PodInfo, message: str, said: ShadowFinding) -> ShadowFinding:
        found = self._schedule(info)
        if isinstance(found, Decision):
            details = {"message": message}
            return said._replace(outcome=Agreement.PLACEABLE, ours=found.node, details=details)
        failure = rejected(found, self._make_room(info, found))
        said = said._replace(ours=failure.nomination.node or "")
        if failure.message != message:
            details = {"message": message, "ours": failure.message}
            return said._replace(outcome=Agreement.WORDS, details=details)
        if said.ours != said.theirs:
            return said._replace(outcome=Agreement.NOMINATION)
        return said

    def _make_room(self, info: PodInfo, rejection: Rejection) -> PostFilterResult | None:
        """What PostFilter plugins say, without anything that would come of it."""
        runner, context = self._runner, self._context
        if not runner.profile.post_filters:
            return None
        state = runner.cache.state_of(info)
        trial = runner.trial(state, context.waiting, 0, context.now_s)
        result: PostFilterResult = run_alone(runner.post_filter(info, rejection, trial))
        result.drop()
        return result


def _refused_by(said: ShadowFinding, status: Status | None) -> ShadowFinding:
    if status is None:
        return said._replace(outcome=Agreement.REFUSED)
    details = {"reason": status.message}
    return said._replace(outcome=Agreement.REFUSED, plugin=status.plugin, details=details)


def _points(state: ClassState, theirs: int, ours: int) -> tuple[str, list[dict[str, Any]]]:
    """(who differs most, the weighted points of each plugin for both rows)."""
    plugins, at_theirs = state.ranking.points_of(theirs)
    _, at_ours = state.ranking.points_of(ours)
    told: list[dict[str, Any]] = [
        {
            "plugin": name,
            "weight": weight,
            "theirs": at_theirs[2 * at + 1],
            "ours": at_ours[2 * at + 1],
        }
        for at, (name, weight) in enumerate(plugins)
    ]
    most = max(told, key=lambda one: one["ours"] - one["theirs"], default=None)
    return "" if most is None else most["plugin"], told
