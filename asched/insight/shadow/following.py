"""Follow another scheduler's pods, and compare each of its decisions when it is observed.

    Seen, a node now and none before      compared with the decision here, in the state just before
    Seen, PodScheduled=False, new         likewise
    differs                               compared again when the decisions around it are known

The other scheduler decides a little before its binding is observed. Its bindings are concurrent, so
some that were decided earlier arrive later, and vice versa. A decision that differs is therefore
compared again after NEAR more bindings or AGAIN_S, in the orders in which the decisions around it
may have been made (`neighbours.py`). If it agrees in one of them, the outcome is `lag`, and the
finding names the fewest bindings that explain it. The rest is compared once more LATE_S later,
since a binding decided before may have taken this long; and finally node by node, since each node
that is chosen here may have been full by then. A refusal that differs is compared again after the
longest backoff: by then the pod may have a node.

Bounds  AGAIN_MAX decisions wait for a second comparison, further decisions keep the result of the
        first; a number for each waiting pod; FEW bindings are left out one by one to find those
        that matter.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from operator import is_not
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from asched import names
from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Fact, Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.failure import failure_of
from asched.core.cycle.post_filter import rejected
from asched.core.framework.points import PostFilterResult
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.sampling import adaptive_count
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.framework.status import MISTAKES, Status
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod, PodCondition
from asched.insight.shadow.finding import (
    AGREES,
    NOT_COMPARED,
    Agreement,
    FindingTally,
    OtherVerdict,
    ShadowFinding,
)
from asched.insight.shadow.neighbours import NEAR, Neighbours, ObservedBinding, ReorderedBindings

#: 50 ms of work.
STEPS_MAX: Final = 5_000
ALL_NODES: Final = 100


class DecisionComparison:
    """Compares decisions about the pods of one profile in the present state. `configured` is the
    profile's own runner.

        placed         the same node? as high a score? does its node fit? which plugin differs?
        unschedulable  do we refuse it, too? with the same message? is room made on the same node?

    It uses a runner with its own cached results: all nodes are scored, and extenders are not
    called. Results of PostFilter plugins are withdrawn at once. It leaves the budget open.

    Bounds  STEPS_MAX of the cluster's budget a comparison: what costs more is not compared.
    """

    def __init__(self, context: SchedulerContext, configured: Runner) -> None:
        self.configured = configured
        self._context = context
        self._cluster = context.cluster
        self._name = configured.profile.scheduler_name
        profile = replace(configured.profile, percentage_of_nodes_to_score=ALL_NODES)
        self._runner = Runner(profile, context.cluster, context.nominator)

    def placed(self, pod: Pod, node: str) -> ShadowFinding:
        """Compare a binding of a pod that has no node in the cluster's state."""
        finding = ShadowFinding(
            pod.key, self._name, OtherVerdict.PLACED, Agreement.UNKNOWN_NODE, node
        )
        row = self._cluster.nodes.row_of.get(node)
        if row is None:
            return finding
        return self._compared(pod, finding, lambda info: self._placed(info, row, finding))

    def refused(self, pod: Pod, message: str, nominated: str) -> ShadowFinding:
        """Compare a refusal of a pod, with a nominated node if room is made there."""
        finding = ShadowFinding(
            pod.key, self._name, OtherVerdict.UNSCHEDULABLE, Agreement.SAME, nominated
        )
        return self._compared(pod, finding, lambda info: self._refused(info, message, finding))

    # --- inside ----------------------------------------------------------------------------------

    def _compared(
        self, pod: Pod, finding: ShadowFinding, compare: Callable[[PodInfo], ShadowFinding]
    ) -> ShadowFinding:
        """The result of `compare`; ERROR if it raises, EXTENDER for differences of pods for which
        extenders are called.
        """
        info = self._cluster.classes.info_of(pod)
        try:
            found = compare(info)
        except OutOfTurn as raised:
            return finding._replace(outcome=Agreement.ERROR, details={"error": str(raised)})
        except MISTAKES as raised:
            message = failure_of(self._context, raised).message
            return finding._replace(outcome=Agreement.ERROR, details={"error": message})
        if found.outcome is not Agreement.SAME and self.configured.consults(info):
            return found._replace(outcome=Agreement.EXTENDER)
        return found

    def _schedule(self, info: PodInfo) -> Decision | Rejection:
        self._cluster.budget.open(STEPS_MAX)
        found: Decision | Rejection = run_alone(self._runner.schedule(info, seed=0))
        return found

    def _placed(self, info: PodInfo, row: int, finding: ShadowFinding) -> ShadowFinding:
        found = self._schedule(info)
        if isinstance(found, Rejection):
            return _refused_by(finding, found.status_at(row) or found.absent)
        finding = finding._replace(ours=found.node)
        if found.row == row:
            return finding._replace(outcome=Agreement.SAME)
        dry_run = self._runner.dry_run(info)
        rows = dry_run.rows()
        if not rows[row]:
            return _refused_by(finding, dry_run.status_on(row))
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
        failure = rejected(found, self._make_room(info, found), info.pod, self._cluster)
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


AGAIN_S: Final = 1.0
LATE_S: Final = 3.0
#: kube-scheduler's longest backoff by default is 10 s.
BACKOFF_S: Final = 12.0
AGAIN_MAX: Final = 2_048
#: Up to this number of bindings that explain a lag are checked one by one.
FEW: Final = 4
#: Nodes whose order may differ, one after the other; up to three occurred at once.
NODES_MAX: Final = 4
OWN_ORDERS: Final = 2
#: Second comparisons that share the removal of much later bindings, which is most of their work
#: when they are late; more at the end of a run.
LOOKS: Final = 4
LOOKS_ENDING: Final = 32


class _Doubt(msgspec.Struct):
    """A decision that differed. `until_s`: when it is due at the latest."""

    pod: Pod
    finding: ShadowFinding
    until_s: float
    binding: ObservedBinding
    is_late: bool = False


class Shadow:
    """Implements `core.cycle.context.ShadowObserver`."""

    def __init__(self, context: SchedulerContext, tally: FindingTally) -> None:
        self._context = context
        self._cluster = context.cluster
        self._tally = tally
        self._comparisons: dict[str, DecisionComparison] = {}
        self._numbers = count(1)
        #: uid -> serial number of arrival, of waiting pods
        self._arrived: dict[str, int] = {}
        self._neighbours = Neighbours(self._cluster.placed, self._zone_of)
        self._placed: deque[_Doubt] = deque()
        self._late: deque[_Doubt] = deque()
        self._refused: deque[_Doubt] = deque()

    def _zone_of(self, name: str) -> str:
        node = self._cluster.node_of(name)
        return "" if node is None else node.labels.get(names.LABEL_ZONE, "")

    # --- observations ----------------------------------------------------------------------------

    def about_to_see(self, fact: Fact) -> None:
        """Compare the decision in this fact, before the fact is applied to the columns."""
        if isinstance(fact, Gone):
            if fact.kind is POD:
                self._arrived.pop(fact.obj.metadata.uid, None)  # type: ignore[attr-defined]
            return
        if not isinstance(fact, Seen) or fact.kind is not POD:
            return
        pod = fact.obj
        assert isinstance(pod, Pod)
        if not self._context.owns(pod):
            return
        old = self._cluster.pods_seen.get(pod.key)
        if old is not None and old.uid != pod.uid:
            old = None
        try:
            if pod.spec.node_name:
                self._see_placed(pod, old)
            else:
                self._arrive(pod)
                condition = _refusal(pod)
                if condition is not None and (old is None or _refusal(old) != condition):
                    self._see_refused(pod, condition.message, is_new=old is None)
        finally:
            self._cluster.budget.open()  # the turn's own

    def listed(self, changes: Iterable[ObservedChange]) -> None:
        """Count decisions of a list as missed, since a list does not show their times."""
        for change in changes:
            if change.kind is not POD:
                continue
            old, new = change.old, change.new
            if new is None:
                self._arrived.pop(old.uid, None)
            elif self._context.owns(new):
                if not new.spec.node_name:
                    self._arrive(new)
                elif old is not None and not old.spec.node_name:
                    self._arrived.pop(new.uid, None)
                    profile, node = self._context.profile_of(new), new.spec.node_name
                    missed = ShadowFinding(
                        new.key, profile, OtherVerdict.PLACED, Agreement.MISSED, node
                    )
                    self._tally.add(missed)

    def look_again(self, now_s: float, *, is_ending: bool = False) -> bool:
        """Compare some due decisions again, between two turns; returns whether there were any. At
        the end all are due.
        """
        try:
            for doubts in (self._placed, self._late, self._refused):
                some: list[_Doubt] = []
                while doubts and len(some) < (LOOKS_ENDING if is_ending else LOOKS):
                    if not is_ending and not self._is_due(doubts[0], now_s):
                        break
                    some.append(doubts.popleft())
                if some:
                    self._compare_again(some, doubts, now_s)
                    return True
            return False
        finally:
            self._cluster.budget.close()

    def settle(self) -> None:
        """Count decisions that wait for a second comparison by the result of the first."""
        for doubts in (self._placed, self._late, self._refused):
            while doubts:
                finding = doubts.popleft().finding
                details = {**finding.details, "secondLook": False}
                self._tally.add(finding._replace(details=details))

    def as_json(self) -> dict[str, Any]:
        """The findings so far, as JSON."""
        return {**self._tally.as_json(), "waiting": self.doubts}

    @property
    def doubts(self) -> int:
        """The number of decisions that wait for a second comparison."""
        return len(self._placed) + len(self._late) + len(self._refused)

    # --- first comparisons ------------------------------------------------------------------------

    def _arrive(self, pod: Pod) -> None:
        if pod.uid not in self._arrived:
            self._arrived[pod.uid] = next(self._numbers)

    def _see_placed(self, pod: Pod, old: Pod | None) -> None:
        if old is None:
            bound = pod.condition(names.POD_SCHEDULED)
            if bound is None or bound.status != "True":
                return  # created with a node, without a decision
            old = pod.on("")
        elif old.spec.node_name:
            return
        came = self._arrived.pop(pod.uid, 0) or next(self._numbers)
        binding = self._neighbours.add(pod.uid, came, pod.priority, self._context.now_s)
        finding = self._comparison_of(pod).placed(old, pod.spec.node_name)
        self._note(_Doubt(old, finding, self._context.now_s + AGAIN_S, binding), self._placed)

    def _see_refused(self, pod: Pod, message: str, *, is_new: bool) -> None:
        with self._cluster.supposing() as suppose:
            if is_new:  # PostFilter plugins look the pod up
                suppose.seen(POD, pod)
            finding = self._comparison_of(pod).refused(pod, message, pod.status.nominated_node_name)
        now_s, came = self._context.now_s, self._arrived[pod.uid]
        after_last = self._neighbours.count
        place = ObservedBinding(after_last, pod.uid, came, pod.priority, now_s)
        self._note(_Doubt(pod, finding, now_s + BACKOFF_S, place), self._refused)

    def _note(self, doubt: _Doubt, doubts: deque[_Doubt]) -> None:
        """Count a first comparison, or let it wait for a second."""
        outcome = doubt.finding.outcome
        if outcome in AGREES or outcome in NOT_COMPARED or self.doubts >= AGAIN_MAX:
            self._tally.add(doubt.finding)
        else:
            doubts.append(doubt)

    def _comparison_of(self, pod: Pod) -> DecisionComparison:
        """The comparison of the pod's profile; a new one after a reload."""
        name = self._context.profile_of(pod)
        configured, comparison = self._context.runners[name], self._comparisons.get(name)
        if comparison is None or comparison.configured is not configured:
            comparison = self._comparisons[name] = DecisionComparison(self._context, configured)
        return comparison

    # --- second comparisons -----------------------------------------------------------------------

    def _compare_again(self, some: list[_Doubt], doubts: deque[_Doubt], now_s: float) -> None:
        """Compare decisions again that waited in one of the queues."""
        if doubts is self._refused:
            again = [self._refusal_again(doubt) for doubt in some]
        else:
            again = self._placed_again(some)
        for doubt, found in zip(some, again, strict=True):
            has_reason = found.outcome in (Agreement.LAG, Agreement.SAMPLED)
            if has_reason or doubts is not self._placed:
                self._tally.add(found)
            else:
                self._late.append(replace(doubt, until_s=now_s + LATE_S, is_late=True))

    def _is_due(self, doubt: _Doubt, now_s: float) -> bool:
        if doubt.until_s <= now_s:
            return True
        if doubt.finding.verdict is OtherVerdict.UNSCHEDULABLE or doubt.is_late:
            return False
        return self._neighbours.count - doubt.binding.number >= NEAR

    def _placed_again(self, doubts: list[_Doubt]) -> list[ShadowFinding]:
        """Compare placements again that were observed one after the other."""
        last, is_late = doubts[-1].binding, doubts[-1].is_late
        with self._cluster.supposing() as suppose:
            suppose.without(self._neighbours.far(last, is_late=is_late))
            return [self._one_again(doubt, last) for doubt in doubts]

    def _one_again(self, doubt: _Doubt, last: ObservedBinding) -> ShadowFinding:
        """Compare one placement again; bindings much later than `last` are removed already."""
        finding, pod = doubt.finding, doubt.pod
        own = self._cluster.placed.get(pod.uid)
        if own is None or not self._context.owns(pod):
            return finding
        binding, neighbours = doubt.binding, self._neighbours
        comparison, node = self._comparison_of(pod), finding.theirs

        def compared(moved: ReorderedBindings) -> ShadowFinding:
            with self._cluster.supposing() as suppose:
                suppose.without(neighbours.gone(binding, moved, is_late=doubt.is_late))
                return comparison.placed(pod, node)

        def agrees(moved: ReorderedBindings) -> bool:
            return compared(moved).outcome in AGREES

        with self._cluster.supposing() as suppose:
            suppose.without((own, *neighbours.far(binding, last, is_late=doubt.is_late)))
            orders = neighbours.orders(binding, node, finding.ours, is_late=doubt.is_late)
            for moved in orders:
                if agrees(moved):
                    neighbours.helped()
                    fewest = self._fewest(moved, (node, finding.ours), agrees)
                    break
            else:
                found = self._node_by_node(binding, node, compared) if doubt.is_late else None
                if found is None:
                    return finding
                fewest = found
        details = {**_first(finding), **neighbours.details(binding, fewest)}
        return finding._replace(outcome=Agreement.LAG, details=details)

    def _node_by_node(
        self,
        binding: ObservedBinding,
        node: str,
        compared: Callable[[ReorderedBindings], ShadowFinding],
    ) -> ReorderedBindings | None:
        """Find an order in which the decision agrees, by changing the order of bindings to the node
        that is chosen here instead, then to the node that is chosen then, and so on; first with its
        own `node` as observed, then with later bindings to it. Leaving out earlier bindings would
        explain too much: a quarter of decisions by other rules.
        """
        otherwise, start = self._neighbours.otherwise, ReorderedBindings()
        for _ in range(OWN_ORDERS):
            moved: ReorderedBindings | None = start
            for _ in range(NODES_MAX + 1):
                if moved is None:
                    break
                found = compared(moved)
                if found.outcome in AGREES:
                    return moved
                moved = otherwise(binding, moved, found.ours) if found.ours else None
            start = otherwise(binding, start, node) or start
        return None

    def _fewest(
        self,
        moved: ReorderedBindings,
        nodes: tuple[str, str],
        agrees: Callable[[ReorderedBindings], bool],
    ) -> ReorderedBindings:
        """Fewer of the bindings with which the decision still agrees: those to the two nodes, if
        they suffice, and of a few only those that matter.
        """
        fewer = moved.only(lambda other: self._neighbours.node_of(other) in nodes)
        if fewer == moved or (len(fewer) and agrees(fewer)):
            moved = fewer
        if len(moved) <= FEW:
            for binding in (*moved.after, *moved.before):
                fewer = moved.only(partial(is_not, binding))
                if len(moved) > 1 and agrees(fewer):
                    moved = fewer
        return moved

    def _refusal_again(self, doubt: _Doubt) -> ShadowFinding:
        finding = doubt.finding
        now = self._cluster.pods_seen.get(doubt.pod.key)
        if now is None or now.uid != doubt.pod.uid or not self._context.owns(now):
            return finding
        if now.spec.node_name:
            agrees = finding.outcome is Agreement.PLACEABLE
        else:
            condition = _refusal(now)
            message = "" if condition is None else condition.message
            nominated = now.status.nominated_node_name
            agrees = self._comparison_of(now).refused(now, message, nominated).outcome in AGREES
        if agrees:
            return finding._replace(outcome=Agreement.LAG, details=_first(finding))
        return self._refused_ahead(doubt)

    def _refused_ahead(self, doubt: _Doubt) -> ShadowFinding:
        """Compare a refusal again with bindings that were observed later.

        A nomination is not compared, since one of several equal nodes is drawn at random.
        """
        finding, pod, place = doubt.finding, doubt.pod, doubt.binding
        condition = _refusal(pod)
        assert condition is not None
        neighbours, comparison = self._neighbours, self._comparison_of(pod)
        own = self._cluster.placed.get(pod.uid)
        with self._cluster.supposing() as suppose:
            suppose.without(() if own is None else (own,))
            suppose.without(neighbours.far(place, is_late=True))  # which it may be among
            for moved in neighbours.ahead(place):
                with self._cluster.supposing() as inner:
                    inner.without(neighbours.gone(place, moved, is_late=True))
                    again = comparison.refused(pod, condition.message, finding.theirs)
                if again.outcome in (*AGREES, Agreement.NOMINATION):
                    break
            else:
                return finding
            details = {**_first(finding), **neighbours.details(place, moved)}  # without its own
        return finding._replace(outcome=Agreement.LAG, details=details)


def _first(finding: ShadowFinding) -> dict[str, Any]:
    """The result of the first comparison."""
    return {"first": finding.outcome.value, **finding.details}


def _refusal(pod: Pod) -> PodCondition | None:
    """The condition of a pod that fits on no node."""
    condition = pod.condition(names.POD_SCHEDULED)
    if condition is None or condition.status != "False":
        return None
    return condition if condition.reason == names.REASON_UNSCHEDULABLE else None
