"""The state of a class: the nodes on which its pods fit, and how these rank.

There is one `ClassState` per profile and class of pods. It updates the cached results of its
filters (see `by_row.py`) and folds them into a mask; its `Ranking` does the same for all scorers.
After a decision only changes are processed: an equal pod costs the rows of the changed nodes, and
one search for the largest total.

    Prepared (PreFilter) ──> CachedVerdict.codes ──> Feasible.mask ─────┐
    Prepared (PreScore) ───> CachedScores.raw ──> WeightedPoints ──> Ranking.totals

The states of a profile are made and cached by `ClassCache`.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import FilterPlugin, PreFilterResult
from asched.core.framework.results import filter_errors
from asched.core.framework.results.active_plugins import ActivePlugins
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.moves import ALWAYS, COUNTS, PLACEMENTS, Moves
from asched.core.framework.results.pre_filter import PreFilterOutcome, pre_filter, refused
from asched.core.framework.results.prepared import Prepared
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.status import MISTAKES, raise_plugin_error
from asched.core.model.arrays import I32, I64, Mask

_numbers: Final = count(1)


class ClassState:
    """The mask and the ranking of one class. Valid for the pod of the last update."""

    def __init__(
        self,
        cluster: Cluster,
        active_plugins: ActivePlugins,
        verdicts: Sequence[CachedVerdict],
        prepared: Sequence[Prepared],
        ranking: Ranking,
        feasible: Feasible,
        *,
        asks_all: bool = False,
    ) -> None:
        """`prepared`: of PreFilter plugins without a filter. `asks_all`: every filter runs for
        every node (alwaysCheckAllPredicates).
        """
        #: unique
        self.number = next(_numbers)
        self._cluster = cluster
        self._asks_all = asks_all
        self.active_plugins = active_plugins
        self._verdicts = tuple(verdicts)
        every = [*[v.prepared for v in verdicts], *prepared]
        self._prepared = {p.plugin.name: p for p in every}
        self._moves = Moves(cluster)
        #: bits of `Moves` -> filters that depend on them. Benchmark `decide-plain`, CPU ms a
        #: pod in two runs: 0.30, 0.36; if all filters and scorers are visited 0.40, 0.43
        self._concerned: dict[int, list[CachedVerdict]] = {}
        #: kinds of changes after which PreFilter runs again, as bits (`moves.py`); 0: it never ran
        self._repeats = 0
        #: plugins that read counts of pods, with the results that were folded: results are shared,
        #: so another class may have updated them since
        self._counting: list[tuple[Prepared, PreFilterResult]] = []
        self._filters: tuple[str, ...] | None = None
        self._may_fail = [v for v in verdicts if v.plugin.errors_from is not None] != []
        self.ranking = ranking
        self.mask = feasible
        self.outcome = PreFilterOutcome()

    @property
    def feasible(self) -> Mask:
        """bool[N]"""
        return self.mask.mask

    @property
    def feasible_count(self) -> int:
        return self.mask.count

    @property
    def holds(self) -> bool:
        """Whether the filters' results apply to all equal pods until something changes: no plugin
        has inputs that must be read every time (ALWAYS).
        """
        return not self._repeats & ALWAYS

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the filters that are active, or accept every pod."""
        if self._filters is None:
            active = tuple(verdict.plugin.name for verdict in self.active)
            self._filters = (*active, *self.active_plugins.passed)
        return self._filters

    @property
    def active(self) -> list[CachedVerdict]:
        """The active filters, in profile order."""
        return self.outcome.active

    def update(self, pod: PodInfo, *, ignores_errors: bool = False) -> PreFilterOutcome:
        """Update everything but the ranking. Raises PointError.

        `ignores_errors`: of filters, since one node is checked before all others.
        """
        moved = self._moves.read()  # kinds of changes since the last time, as bits
        if moved & self._repeats or not self._repeats:
            self._fold_pre_filter(pod)
        elif moved & COUNTS:
            self._look_at_counts(pod)
        if self.outcome.rejection is None:
            self._filter(pod, moved)
            self._moves.mark_processed()  # else the filters have not processed the changes
            if self._may_fail and not ignores_errors:
                self.end_on_errors(pod)
        return self.outcome

    def end_on_errors(self, pod: PodInfo) -> None:
        """Raises PointError if a filter failed on a node that was reached."""
        live = self._cluster.nodes.columns.read("live")
        filter_errors.end_on_errors(pod, self.active, live, self.outcome.rows)

    # --- inside ----------------------------------------------------------------------------------

    def _fold_pre_filter(self, pod: PodInfo) -> None:
        """Run every PreFilter with changed inputs, and fold all results."""
        self._repeats = 0  # until all have run
        self._concerned.clear()
        self._filters = None
        plugins = self.active_plugins.pre_filters
        if pod.cls.refusal:
            self.outcome = refused(pod.cls.refusal)
        else:
            self.outcome = pre_filter(pod, self._cluster, plugins, self._prepared, self._verdicts)
        if self.outcome.rejection is None:
            # all kinds but those that placed pods cause; these only if a plugin declares them
            self._repeats, self._counting = ~PLACEMENTS, []
            for prepared in self._prepared.values():
                self._repeats |= prepared.reads & ~COUNTS
                if prepared.reads & COUNTS:
                    self._counting.append((prepared, prepared.result))
            self.mask.fold(self.active, self.outcome.rows)

    def _look_at_counts(self, pod: PodInfo) -> None:
        """Run those that read counts of pods; the others follow if a result has changed.

        A pod of the benchmark `decide-anti-affinity` costs 323 calls of functions; if all run, 340.
        """
        for prepared, folded in self._counting:
            now = prepared.update(pod)
            if now is not folded and now[:2] != folded[:2]:  # status, node names
                self._fold_pre_filter(pod)
                return

    def _filter(self, pod: PodInfo, moved: int) -> None:
        """Update codes and mask."""
        concerned = self.active if moved & ~PLACEMENTS else self._concerned.get(moved)
        if concerned is None:
            concerned = [v for v in self.active if v.reads & moved or v.plugin.checks_remaining]
            self._concerned[moved] = concerned
        try:
            for verdict in concerned:
                if verdict.plugin.checks_remaining and not self._asks_all:
                    verdict.ask_left(pod, self._left_for(verdict))
                else:
                    verdict.refresh(pod)
        except MISTAKES as raised:
            raise_plugin_error(verdict.plugin.name, "filter", raised)
        self.mask.refresh()

    def _left_for(self, asker: CachedVerdict) -> Mask:
        """The rows that no filter before this one rejected."""
        left: Mask = self._cluster.nodes.columns.read("live")[: self._cluster.nodes.height].copy()
        if self.outcome.rows is not None:
            narrowed = np.zeros(len(left), dtype=np.bool_)
            narrowed[list(self.outcome.rows)] = True
            left &= narrowed
        for verdict in self.active:
            if verdict is asker:
                break
            left &= verdict.codes == 0
        return left

    # --- for readers -----------------------------------------------------------------------------

    def fits(self, row: int) -> bool:
        """Whether the filters accept the pod on a row, regardless of PreFilter's node names."""
        if self.outcome.rows is None or row in self.outcome.rows:
            return self.mask.has(row)
        if not self._cluster.nodes.columns.read("live")[row]:
            return False
        return not any(
            verdict.plugin.checks_remaining or verdict.code_of(row) for verdict in self.active
        )

    def rank(self, pod: PodInfo, feasible: Mask | None = None) -> I64:
        """int64[N]: the total of each feasible row, NOT_FEASIBLE elsewhere.

        `feasible` restricts the set for this attempt (nominated pods, extenders, sampling); such a
        ranking is not cached.
        """
        if feasible is not None:
            return self.ranking.once(pod, feasible)
        return self.ranking.of(pod)

    def data_of(self, plugin: str) -> Any:
        """The data of a plugin's PreFilter; None without one."""
        prepared = self._prepared.get(plugin)
        return None if prepared is None else prepared.result.data

    def rejectors(self) -> tuple[I32, I32, list[FilterPlugin]]:
        """(first_rejector, codes, plugins): for each row 1 + the position of the first plugin that
        rejects it, and its code.
        """
        height = self._cluster.nodes.height
        first_rejector = np.zeros(height, dtype=np.int32)
        codes = np.zeros(height, dtype=np.int32)
        plugins: list[FilterPlugin] = []
        for index, verdict in enumerate(self.active):
            plugins.append(verdict.plugin)
            if verdict.is_uniform:  # the usual case
                continue
            fresh = (first_rejector == 0) & (verdict.codes != 0)
            first_rejector[fresh] = index + 1
            codes[fresh] = verdict.codes[fresh]
        return first_rejector, codes, plugins
