"""Judge one decision of another scheduler by a profile of ours, in the present state.

    placed         the same node? as high a score? does its node fit at all? which plugin differs?
    unschedulable  do we refuse it, too? with the same message? with room made on the same node?

It uses a runner with its own cached results: all nodes are scored, and extenders are not called.
Results of PostFilter plugins are withdrawn at once. It leaves the budget open.

Bounds  STEPS_MAX of the cluster's budget a judgement: what costs more is not judged.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.scheduling import failure_of, rejected
from asched.core.framework.attempt import Rejection
from asched.core.framework.points import PostFilterResult
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.feasible import adaptive_count
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.framework.status import MISTAKES, Status
from asched.core.model.pod import Pod
from asched.insight.shadow.finding import Agreement, OtherVerdict, ShadowFinding

#: 50 ms of work.
STEPS_MAX: Final = 5_000
ALL_NODES: Final = 100


class ShadowJudge:
    """Judges the pods of one profile. `configured` is the profile's own runner."""

    def __init__(self, context: SchedulerContext, configured: Runner) -> None:
        self.configured = configured
        self._context = context
        self._cluster = context.cluster
        self._name = configured.profile.scheduler_name
        profile = replace(configured.profile, percentage_of_nodes_to_score=ALL_NODES)
        self._runner = Runner(profile, context.cluster, context.nominator)

    def placed(self, pod: Pod, node: str) -> ShadowFinding:
        """Judge a binding of a pod that has no node in the cluster's state."""
        finding = ShadowFinding(
            pod.key, self._name, OtherVerdict.PLACED, Agreement.UNKNOWN_NODE, node
        )
        row = self._cluster.nodes.row_of.get(node)
        if row is None:
            return finding
        return self._judged(pod, finding, lambda info: self._placed(info, row, finding))

    def refused(self, pod: Pod, message: str, nominated: str) -> ShadowFinding:
        """Judge a refusal of a pod, with a nominated node if room is made there."""
        finding = ShadowFinding(
            pod.key, self._name, OtherVerdict.UNSCHEDULABLE, Agreement.SAME, nominated
        )
        return self._judged(pod, finding, lambda info: self._refused(info, message, finding))

    # --- inside ----------------------------------------------------------------------------------

    def _judged(
        self, pod: Pod, finding: ShadowFinding, judge: Callable[[PodInfo], ShadowFinding]
    ) -> ShadowFinding:
        """The result of `judge`; ERROR if it raises, EXTENDER for differences of pods for which
        extenders are called.
        """
        info = self._cluster.classes.info_of(pod)
        try:
            found = judge(info)
        except MISTAKES as raised:
            return self._failed(finding, raised)
        if found.outcome is not Agreement.SAME and self.configured.consults(info):
            return found._replace(outcome=Agreement.EXTENDER)
        return found

    def _schedule(self, info: PodInfo) -> Decision | Rejection:
        self._cluster.budget.open(STEPS_MAX)
        found: Decision | Rejection = run_alone(self._runner.schedule(info, seed=0))
        return found

    def _failed(self, finding: ShadowFinding, raised: BaseException) -> ShadowFinding:
        if isinstance(raised, OutOfTurn):
            message = str(raised)
        else:
            message = failure_of(self._context, raised).message
        return finding._replace(outcome=Agreement.ERROR, details={"error": message})

    def _placed(self, info: PodInfo, row: int, finding: ShadowFinding) -> ShadowFinding:
        found = self._schedule(info)
        if isinstance(found, Rejection):
            return _refused_by(finding, found.status_at(row) or found.absent)
        finding = finding._replace(ours=found.node)
        if found.row == row:
            return finding._replace(outcome=Agreement.SAME)
        fitting = self._runner.fitting(info)
        rows = fitting.rows()
        if not rows[row]:
            return _refused_by(finding, fitting.status_on(row))
        state = found.state
        ranking = state.rank(info, None if np.array_equal(rows, state.feasible) else rows)
        theirs, best = int(ranking[row]), int(ranking.max())
        if theirs == best and found.score is not None:
            return finding._replace(outcome=Agreement.TIE)
        plugin, points = _points(state, row, found.row)
        details = {"score": theirs, "ours": int(ranking[found.row]), "points": points}
        fits = int(np.count_nonzero(rows))
        percentage = self.configured.profile.percentage_of_nodes_to_score
        is_sampled = fits > adaptive_count(percentage, self._cluster.nodes.count)
        outcome = Agreement.SAMPLED if is_sampled else Agreement.SCORE
        if is_sampled:
            details["fits"] = fits
        return finding._replace(outcome=outcome, plugin=plugin, details=details)

    def _refused(self, info: PodInfo, message: str, finding: ShadowFinding) -> ShadowFinding:
        found = self._schedule(info)
        if isinstance(found, Decision):
            details = {"message": message}
            return finding._replace(outcome=Agreement.PLACEABLE, ours=found.node, details=details)
        failure = rejected(found, self._make_room(info, found))
        finding = finding._replace(ours=failure.nomination.node or "")
        if failure.message != message:
            details = {"message": message, "ours": failure.message}
            return finding._replace(outcome=Agreement.WORDS, details=details)
        if finding.ours != finding.theirs:
            return finding._replace(outcome=Agreement.NOMINATION)
        return finding

    def _make_room(self, info: PodInfo, rejection: Rejection) -> PostFilterResult | None:
        """The result of the PostFilter plugins, without carrying it out."""
        runner, context = self._runner, self._context
        if not runner.profile.post_filters:
            return None
        state = runner.cache.state_of(info)
        trial = runner.trial(state, context.waiting, 0, context.now_s)
        result: PostFilterResult = run_alone(runner.post_filter(info, rejection, trial))
        result.drop()
        return result


def _refused_by(finding: ShadowFinding, status: Status | None) -> ShadowFinding:
    if status is None:
        return finding._replace(outcome=Agreement.REFUSED)
    details = {"reason": status.message}
    return finding._replace(outcome=Agreement.REFUSED, plugin=status.plugin, details=details)


def _points(state: ClassState, theirs: int, ours: int) -> tuple[str, list[dict[str, Any]]]:
    """(the plugin that differs most, the weighted points of each plugin for both rows)."""
    plugins, at_theirs = state.ranking.points_of(theirs)
    _, at_ours = state.ranking.points_of(ours)
    points: list[dict[str, Any]] = [
        {
            "plugin": name,
            "weight": weight,
            "theirs": at_theirs[2 * at + 1],
            "ours": at_ours[2 * at + 1],
        }
        for at, (name, weight) in enumerate(plugins)
    ]
    most = max(points, key=lambda scored: scored["ours"] - scored["theirs"], default=None)
    return "" if most is None else most["plugin"], points
