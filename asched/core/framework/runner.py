"""Run one profile for one pod: from PreFilter to the chosen node.

`Runner.schedule` is a generator: it yields a request to an HTTP extender and is sent the answer;
without extenders it never yields. It returns a `Decision`, or a `Rejection` with the reasons. A
plugin that fails raises `PointError`, which ends the attempt.

    nominated node first ── fits ──────────────────────────────> Decision
    PreFilter ── rejected ─────────────────────────────────────> Rejection
    Filter (cached results, then nominated pods, then extenders) ─> none left: Rejection
    Score (cached results, then extenders) ── seeded choice among the best ─> Decision

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.framework.cached_trial import CachedTrial
from asched.core.framework.dry_run import FilterDryRun
from asched.core.framework.effects import Effect
from asched.core.framework.per_node import late
from asched.core.framework.placements import is_within, narrowed
from asched.core.framework.points import BindPlugin, Late, Nomination, PostFilterResult
from asched.core.framework.preemption_trial import Candidate, Trial
from asched.core.framework.profile import Profile
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.active_plugins import ActivePlugins
from asched.core.framework.results.class_cache import ClassCache
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import NONE_REFUSED, NominatedPods, RefusedRows
from asched.core.framework.results.peaks import NOT_FEASIBLE, Peaks
from asched.core.framework.results.rejections import Rejections
from asched.core.framework.results.sampling import Sampler
from asched.core.framework.status import (
    MISTAKES,
    Code,
    PointError,
    Status,
    failure,
    raise_plugin_error,
)
from asched.core.framework.waiting import WaitingPods
from asched.core.model.arrays import I64, Indices, Mask
from asched.core.model.node import Node


class ExtenderChain(Protocol):
    """The HTTP extenders of a configuration, in the order of use (`core/extender/consult.py`).

    Their generators raise PointError if an extender fails that must not be ignored.
    """

    has_filter: bool
    has_prioritize: bool
    #: whether any extender takes part in preemption
    has_preempt: bool

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether any extender takes part in the pod's cycle."""

    def filter(
        self, pod: PodInfo, feasible: Mask
    ) -> Generator[Effect, Answer, tuple[Mask, Mapping[int, Status]]]:
        """(rows left by the extenders, statuses of the rejected rows)."""

    def note_wasted(self, pod: PodInfo, node: str) -> None:
        """Record that an extender rejected the node on which room was made for the pod."""

    def wasted_rows(self, pod: PodInfo, open_rows: I64) -> I64:
        """The rows from which evictions for the pod would have no effect."""

    def prioritize(self, pod: PodInfo, feasible: Mask) -> Generator[Effect, Answer, I64 | None]:
        """int64[N] to be added to the totals, None if no extender scores."""

    def finds_victims(self, pod: PodInfo) -> bool:
        """Whether an extender may name victims for the pod."""

    def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Candidate]
    ) -> Generator[Effect, Answer, Mapping[str, Candidate]]:
        """The candidates (by node name) that the extenders interested in the pod accept, with
        changed victims or without some nodes; those without victims stay if an extender names some.
        Raises PointError if an extender that must not be ignored fails.
        """

    def binder(self, pod: PodInfo) -> BindPlugin | None:
        """The first extender that binds and is interested in the pod."""


#: Share of all rows: if a pod may use fewer than one row in this many, these are ranked separately.
#: A guess: a pass over all costs as much as gathering a third of them.
FEW_SHARE: Final = 4


class NoNodesError(Exception):
    """The cluster has no nodes."""


class Decision(msgspec.Struct, frozen=True):
    """The node of a pod. `evaluated` and `feasible` count nodes; `score` is the winner's total."""

    node: str
    row: int
    feasible: int
    evaluated: int
    score: int | None
    state: ClassState


class Runner:
    """The scheduling cycle of one profile. Deterministic: the attempt's seed decides ties."""

    def __init__(
        self,
        profile: Profile,
        cluster: Cluster,
        nominator: Nominator,
        extenders: ExtenderChain | None = None,
    ) -> None:
        self.profile = profile
        self.cluster = cluster
        self.cache = ClassCache(profile, cluster)
        self.nominated_pods = NominatedPods(cluster, nominator)
        self._nominator = nominator
        self._fixes_ties = any(scorer.plugin.fixes_ties for scorer in profile.scorers)
        self.extenders = extenders
        self._rejections = Rejections(profile, cluster, self.nominated_pods)
        self._sampler = Sampler(profile.percentage_of_nodes_to_score)
        self._part: tuple[Mask | None, int, Indices] = None, 0, np.zeros(0, dtype=np.intp)

    def schedule(
        self, pod: PodInfo, seed: int, within: Mask | None = None
    ) -> Generator[Effect, Answer, Decision | Rejection]:
        """Find a node for a pod, among the rows `within` if given (bool[N]).

        Raises PointError, NoNodesError.
        """
        if not self.cluster.nodes.count:
            raise NoNodesError
        meter = self.cache.work.meter
        if meter is not None:
            meter.begin()
        state = self.cache.state_of(pod)
        nominated = self.nominated_node(pod)
        outcome = state.update(pod, ignores_errors=bool(nominated))
        if outcome.rejection is not None:
            if meter is not None:
                meter.pre_filtered(outcome.asked, outcome.rejection.code.text)
            return self._rejections.of_pre_filter(pod, state, within)
        if nominated:
            decision = yield from self._on_nominated(pod, state, nominated, within)
            if decision is not None:
                return decision
            state = self.cache.state_of(pod)  # an extender may have been called
            state.end_on_errors(pod)
        chain = self.extenders
        may_ask = chain is not None and (chain.has_filter or chain.has_prioritize)
        if may_ask and self.consults(pod):
            return (yield from self._consulting(pod, state, seed, within))
        refusals, mask = self.cluster.refusals, state.mask
        refused, feasible, count = NONE_REFUSED, None, mask.count
        if self._nominator.by_uid or refusals.avoided:
            refused = self.nominated_pods.refused(pod, state)
        few = None if within is None else self._few(state, refused, within)
        if few is not None:
            count = len(few)
        elif within is not None or len(refused.rows):
            feasible = self._feasible(state, refused, within)
            count = int(np.count_nonzero(feasible))
        judged = self.cluster.nodes.count if outcome.rows is None else len(outcome.rows)
        if meter is not None:
            meter.filtered(outcome.asked, state.filters, judged)
        if count == 0:
            return self.rejection(pod, state, refused.by_trial, within=within)
        if self._sampler.is_on:
            among = mask.mask if feasible is None else feasible
            sample = self._sampler.sample(among, count, judged)
            if sample is not None:
                feasible, count = sample, int(np.count_nonzero(sample))
        if count == 1 and few is not None:
            return self._decision(state, few.item(), 1, None)
        if count == 1:
            row = int(np.argmax(mask.mask if feasible is None else feasible))
            return self._decision(state, row, 1, None)
        seed = 0 if self._fixes_ties else seed  # a scorer wants the first of equal nodes
        if few is not None:
            row, total = state.ranking.choose_few(pod, seed, few)
        else:
            row, total = state.ranking.choose(pod, seed, feasible)
        if meter is not None:
            meter.ranked(*state.ranking.asked, count)
        return self._decision(state, row, count, total)

    @property
    def has_extenders(self) -> bool:
        return self.extenders is not None

    def consults(self, pod: PodInfo) -> bool:
        """Whether extenders take part in scheduling the pod."""
        return self.extenders is not None and self.extenders.is_interested(pod)

    def treats_equals_alike(self, active_plugins: ActivePlugins) -> bool:
        """Whether the PostFilter plugins make room for none of a class, if not for one."""
        return all(
            plugin.treats_equals_alike or plugin.name in active_plugins.idle
            for plugin in self.profile.post_filters
        )

    def _consulting(
        self, pod: PodInfo, state: ClassState, seed: int, within: Mask | None
    ) -> Generator[Effect, Answer, Decision | Rejection]:
        """Find a node with extenders. While one is called, facts arrive and other pods are placed:
        after each answer the rows are filtered again, and accepted rows count if they still fit.
        """
        assert self.extenders is not None
        meter, outcome = self.cache.work.meter, state.outcome
        now = FilterDryRun(pod, state, self.cluster, self.nominated_pods)
        asked, refused = now.rows(within), now.refused.by_trial
        count = int(np.count_nonzero(asked))
        judged = self.cluster.nodes.count if outcome.rows is None else len(outcome.rows)
        sample = self._sampler.sample(asked, count, judged)
        if sample is not None:
            asked, count = sample, int(np.count_nonzero(sample))
        granted, turned_away = asked, False
        if count and self.extenders.has_filter:
            asking = self.extenders.filter(pod, asked)
            (granted, no), now = yield from self._answered(pod, asking, ignores_errors=False)
            turned_away = int(np.count_nonzero(granted)) != count
            granted = now.rows(granted)
            refused = {**now.refused.by_trial, **no}
            count = int(np.count_nonzero(granted))
        if meter is not None:
            meter.filtered(outcome.asked, state.filters, judged)
        if count == 0:
            blamed = frozenset((names.EXTENDER,)) if turned_away else frozenset()
            return self.rejection(pod, now.state, refused, blamed, within)
        extra = None
        if count > 1 and self.extenders.has_prioritize:
            before = list(self.cluster.nodes.node_at)
            scoring = self.extenders.prioritize(pod, granted)
            extra, now = yield from self._answered(pod, scoring, ignores_errors=False)
            granted = now.rows(self._same(granted, before))
            count = int(np.count_nonzero(granted))
            if count == 0:
                return self.rejection(pod, now.state, now.refused.by_trial, within=within)
        state = now.state
        if count == 1:
            return self._decision(state, int(np.argmax(granted)), 1, None)
        is_all = np.array_equal(granted, state.feasible)
        ranking = state.rank(pod, None if is_all else granted)
        if meter is not None:
            meter.ranked(*state.ranking.asked, count)
        if extra is not None:
            more = np.zeros(len(granted), dtype=np.int64)
            more[: len(extra)] = extra
            ranking = np.where(granted, ranking + more, NOT_FEASIBLE)
        row = Peaks(ranking).choose(0 if self._fixes_ties else seed)
        return self._decision(state, row, count, int(ranking[row]))

    def _answered(
        self, pod: PodInfo, asking: Generator[Effect, Answer, Any], *, ignores_errors: bool
    ) -> Generator[Effect, Answer, tuple[Any, FilterDryRun]]:
        """An extender's answer, and where the pod fits by then. The duration is not measured, as
        other attempts use the meter meanwhile.
        """
        meter = self.cache.work.meter
        so_far = meter.pause() if meter is not None else (0.0, 0.0)
        said = yield from asking
        now = self.dry_run(pod, ignores_errors=ignores_errors)
        if meter is not None:
            meter.resume(so_far)
        return said, now

    def _same(self, granted: Mask, before: Sequence[Node | None]) -> Mask:
        """The rows that still belong to the same nodes."""
        now = self.cluster.nodes.node_at
        kept = granted.copy()
        for row in np.flatnonzero(granted).tolist():
            was, node = before[row], now[row]
            if was is not node and (was is None or node is None or was.name != node.name):
                kept[row] = False
        return kept

    def dry_run(self, pod: PodInfo, *, ignores_errors: bool = False) -> FilterDryRun:
        """Run the filter half of an attempt now. `ignores_errors` as in `ClassState.update`.

        Raises PointError.
        """
        state = self.cache.state_of(pod)
        state.update(pod, ignores_errors=ignores_errors)
        return FilterDryRun(pod, state, self.cluster, self.nominated_pods)

    def still_takes(self, pod: PodInfo) -> bool:
        """Whether the node of an assumed pod would accept it now, its own usage not counted: its
        binding may be repeated then. Promises to other pods do not matter: they were made with the
        pod there.
        """
        row = pod.row
        if row < 0:  # the node was deleted
            return False
        try:
            with self.cache.unmeasured():
                dry_run = self.dry_run(pod, ignores_errors=True)
                with self.cluster.supposing().gone((pod,), row):
                    return dry_run.status_on(row, counts_nominated=False) is None
        except MISTAKES:  # undecidable: not sent
            return False

    def post_filter(
        self, pod: PodInfo, rejection: Rejection, trial: Trial
    ) -> Generator[Effect, Answer, PostFilterResult]:
        """Run the PostFilter plugins; messages of those that failed are joined, and work that any
        of them requires is collected.
        """
        said: list[str] = []
        first: tuple[Late, ...] = ()
        nomination, comes_back = Nomination(), False
        try:
            for plugin in self.profile.post_filters:
                steps = plugin.post_filter(pod, rejection, trial)
                if isinstance(steps, PostFilterResult):
                    result = steps
                else:
                    result = yield from late.checked_effects(steps, plugin.name, "postFilter")
                if result.background is not None:
                    later = late.checked_effects(result.background, plugin.name, "postFilter")
                    result = replace(result, background=later)
                code = result.status.code
                if code is Code.SUCCESS:
                    return replace(result, before_return=first)
                if result.background is not None:
                    first = (*first, result.background)
                    result = replace(result, background=None)
                if code in (Code.ERROR, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                    return replace(result, before_return=first)
                if code is not Code.UNSCHEDULABLE:
                    text = f'running PostFilter plugin "{plugin.name}": {result.status.message}'
                    return replace(result, status=failure(text), before_return=first)
                said.extend(result.status.reasons)
                comes_back |= result.comes_back
                if result.nomination.node is not None:
                    nomination = result.nomination
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "postFilter", raised)
        status = Status(Code.UNSCHEDULABLE, tuple(said))
        return PostFilterResult(status, nomination, before_return=first, comes_back=comes_back)

    def binders(self, pod: PodInfo) -> Sequence[BindPlugin]:
        """The binders of the pod, in order: the first interested extender that binds, then the
        plugins.
        """
        binder = self.extenders.binder(pod) if self.extenders is not None else None
        return self.profile.binds if binder is None else (binder, *self.profile.binds)

    def trial(self, state: ClassState, waiting: WaitingPods, seed: int, now_s: float) -> Trial:
        """What PostFilter plugins may use in this attempt."""
        return CachedTrial(
            scheduler_name=self.profile.scheduler_name,
            cluster=self.cluster,
            state=state,
            nominated_pods=self.nominated_pods,
            nominator=self._nominator,
            waiting=waiting,
            seed=seed,
            now_s=now_s,
            extenders=self.extenders,
        )

    def rejection(
        self,
        pod: PodInfo,
        state: ClassState,
        refused: Mapping[int, Status],
        blamed: frozenset[str] = frozenset(),
        within: Mask | None = None,
    ) -> Rejection:
        """Why the class fits nowhere, with the rows that have their own verdict, and the plugins
        that rejected rows without a status.
        """
        return self._rejections.of(pod, state, self.nominated_node(pod), refused, blamed, within)

    def nominated_node(self, pod: PodInfo) -> str:
        """The pod's nominated node, in memory or in its status; "" without one."""
        written = pod.pod.status.nominated_node_name
        return self._nominator.node_of(pod.pod.metadata.uid) or written

    def _on_nominated(
        self, pod: PodInfo, state: ClassState, node: str, within: Mask | None
    ) -> Generator[Effect, Answer, Decision | None]:
        """The nominated node, if the pod still fits there: then no other node is checked.

        Not so while the node is avoided because its kubelet refused such a pod (`refusals.py`).
        """
        row = self.cluster.nodes.row_of.get(node)
        if row is None or not state.fits(row) or not is_within(row, within):
            return None
        if self.nominated_pods.status_of_row(pod, state, row) is not None:
            return None
        if row in self.cluster.refusals.rows(pod.pod, self.cluster.steady_s):
            return None
        if self.extenders is not None and self.extenders.has_filter and self.consults(pod):
            only = np.zeros(len(state.feasible), dtype=np.bool_)
            only[row] = True
            asking = self.extenders.filter(pod, only)
            (granted, _), now = yield from self._answered(pod, asking, ignores_errors=True)
            if not granted.any():
                self.extenders.note_wasted(pod, node)
            if not now.rows(granted).any():
                return None
            state = now.state
        return self._decision(state, row, 1, None)

    def _feasible(self, state: ClassState, refused: RefusedRows, within: Mask | None) -> Mask:
        """The rows left after nominated pods."""
        feasible = narrowed(state.feasible, within)
        feasible[refused.rows] = False
        return feasible

    def _few(self, state: ClassState, refused: RefusedRows, within: Mask) -> Indices | None:
        """Int[K], in order: the same rows, if `within` has few and sampling leaves none out; else
        None.
        """
        feasible = state.feasible
        height = len(feasible)
        rows = self._rows_within(within, height)
        if self._sampler.is_on or len(rows) > height // FEW_SHARE:
            return None
        rows = rows[feasible[rows]]
        return rows[~np.isin(rows, refused.rows)] if len(refused.rows) else rows

    def _rows_within(self, within: Mask, height: int) -> Indices:
        """The rows of a part of the cluster, cached while pods of a group are tried in it, if the
        mask is read-only.
        """
        mask, known_height, rows = self._part
        if mask is not within or known_height != height:
            rows = within[:height].nonzero()[0]
            if not within.flags.writeable:
                self._part = within, height, rows
        return rows

    def _decision(self, state: ClassState, row: int, count: int, score: int | None) -> Decision:
        node = self.cluster.nodes.node_at[row]
        if node is None:
            raise PointError(f"row {row} was chosen but has no node")
        return Decision(node.metadata.name, row, count, self.cluster.nodes.count, score, state)


def run_alone(steps: Generator[Any, Any, Any]) -> Any:
    """Run a generator that yields nothing. Raises PointError if it yields."""
    try:
        question = next(steps)
    except StopIteration as done:
        return done.value
    raise PointError(f"{question!r} needs an answer, which is not available here")
