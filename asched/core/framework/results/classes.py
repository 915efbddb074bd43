"""Shared work of equal pods: which nodes a class of pods fits on.

One `ClassState` per profile and class of pods. It combines the cached results of all filters into a
mask of feasible rows; its `Ranking` combines those of all scorers. After a decision only what
changed is touched: an equal pod costs the rows of the nodes that changed since, and one search for
the largest entry.

    filters    KeptVerdict.codes ─┐
    PreFilter  narrowed rows ─────┴─> feasible bool[N]      judge, codes: the first rejecting plugin

Between two pods of a class, mostly, pods were placed and nothing else happened. Then no PreFilter
runs again, except of plugins that read counts of pods, and only filters that look at what runs on a
row are asked, about those rows (`_quick`). Whatever else happened leads through the full
`_look_again`.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.points import FilterPlugin
from asched.core.framework.results.active_plugins import ActivePlugins
from asched.core.framework.results.cached import (
    NO_ROWS,
    CachedVerdict,
    Work,
    changed_rows,
    rows_with_pods,
)
from asched.core.framework.results.filter_errors import end_on_errors
from asched.core.framework.results.pre_filter import PreFilterOutcome, pre_filter
from asched.core.framework.results.ranking import Ranking
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import ALL_ASPECTS
from asched.core.state.pods import PodInfo

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


_numbers: Final = count(1)

#: With more rows than this whose feasibility turned, ranking all anew is cheaper. Measured at
#: 5,000 rows: gathering costs as much as ten to twenty times the rows in order.
TURNED_MAX: Final = 128


class ClassState:
    """The kept verdicts and ranking of one class. Valid for the pod it was updated for last."""

    def __init__(
        self,
        cluster: Cluster,
        active_plugins: ActivePlugins,
        work: Work,
        verdicts: Sequence[CachedVerdict],
        ranking: Ranking,
        *,
        asks_all: bool = False,
    ) -> None:
        """`asks_all`: every filter judges every node (alwaysCheckAllPredicates)."""
        #: never given twice
        self.number = next(_numbers)
        self._cluster = cluster
        self._asks_all = asks_all
        self.active_plugins = active_plugins
        self._work = work
        self._verdicts = {id(verdict.plugin): verdict for verdict in verdicts}
        self._counting = [v for v in verdicts if v.plugin.reads_counts]
        self._heeds_labels = any(v.heeds_labels for v in verdicts) or any(
            points.heeds_labels for points in ranking.points
        )
        self._moving: list[CachedVerdict] = []
        self._may_be_quick = False
        self._filters: tuple[str, ...] | None = None
        self.ranking = ranking
        self.outcome = PreFilterOutcome()
        self.feasible: Mask = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        #: moves whenever another set of rows is feasible
        self.feasible_version = 0
        #: rows combined since the ranking last looked; None: all
        self.changed: I32 | None = None
        self._seen_versions: tuple[tuple[int, int], ...] = ()
        self._narrowed: set[int] | None = None
        self._cursor = -1
        self._epoch = -1
        self._counts = -1

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the filters that take part, or let everybody pass."""
        if self._filters is None:
            active = tuple(verdict.plugin.name for verdict in self.active)
            self._filters = (*active, *self.active_plugins.passed)
        return self._filters

    @property
    def active(self) -> list[CachedVerdict]:
        """The filters that take part, in profile order."""
        return self.outcome.active

    def update(self, pod: PodInfo, *, spares: bool = False) -> PreFilterOutcome:
        """Bring everything but the ranking up to date. Raises PointError.

        `spares`: not for filters that failed, since one node is looked at before all others.
        """
        if not self._quick(pod):
            self._look_again(pod)
        if self.outcome.rejection is None and not spares:
            self.end_on_errors(pod)
        return self.outcome

    def end_on_errors(self, pod: PodInfo) -> None:
        """Raises PointError if a filter failed on a node that was reached."""
        live = self._cluster.nodes.columns.read("live")
        end_on_errors(pod, self.active, live, self.outcome.rows)

    # --- the quick way ---------------------------------------------------------------------------

    def _quick(self, pod: PodInfo) -> bool:
        """Follow what placed pods changed; False if more than that happened."""
        cluster = self._cluster
        if not self._may_be_quick or cluster.epoch != self._epoch:
            return False
        rows = rows_with_pods(cluster, self._cursor, heeds_labels=self._heeds_labels)
        if rows is None:
            return False
        is_full = False
        if cluster.counts != self._counts:
            for verdict in self._counting:
                was = verdict.result.status.code
                verdict.prepare(pod, cluster)
                if verdict.result.status.code is not was:
                    return False
                if verdict.cursor < 0 and verdict.result.status.is_success:
                    verdict.refresh(pod, cluster, self._work)
                    is_full = True
            self._counts = cluster.counts
        for verdict in self._moving:
            verdict.follow(pod, cluster, self._work, self._cursor, rows)
        if is_full or self._versions() != self._seen_versions:
            self._combine_all(rows)
        else:
            self._combine_rows(rows)
        self._cursor = cluster.nodes.log.end
        return True

    # --- the full way ----------------------------------------------------------------------------

    def _look_again(self, pod: PodInfo) -> None:
        cluster = self._cluster
        self._may_be_quick = False  # nor if a plugin fails on the way
        self.outcome = pre_filter(pod, cluster, self.active_plugins.pre_filters, self._verdicts)
        self._filters = None
        self._epoch, self._counts = cluster.epoch, cluster.counts
        if self.outcome.rejection is not None:
            return
        log_end = cluster.nodes.log.end
        rows = changed_rows(cluster, self._cursor, ALL_ASPECTS) if self._cursor >= 0 else None
        for verdict in self.active:
            if verdict.plugin.asks_left and not self._asks_all:
                verdict.ask_left(pod, cluster, self._work, self._left_for(verdict))
            else:
                verdict.refresh(pod, cluster, self._work)
        if (
            rows is None
            or self._versions() != self._seen_versions
            or self.outcome.rows != self._narrowed
            or len(self.feasible) != cluster.nodes.height
        ):
            self._combine_all()
        else:
            self._combine_rows(rows)
        self._cursor = log_end
        depends = [verdict.plugin.depends_on for verdict in self._verdicts.values()]
        self._moving = [verdict for verdict in self.active if verdict.follows_pods]
        self._may_be_quick = None not in depends and not any(
            type(verdict.stamp) is object for verdict in self._verdicts.values()
        )

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

    def _versions(self) -> tuple[tuple[int, int], ...]:
        return tuple([(id(verdict), verdict.full_version) for verdict in self.active])

    def _combine_all(self, rows: I32 | None = None) -> None:
        """Fold all codes. `rows`: where pods came or went, if that is all that happened."""
        nodes = self._cluster.nodes
        height = nodes.height
        feasible: Mask = nodes.columns.read("live")[:height].copy()
        if self.outcome.rows is not None:
            narrowed = np.zeros(height, dtype=np.bool_)
            narrowed[list(self.outcome.rows)] = True
            feasible &= narrowed
        for verdict in self.active:
            if not verdict.is_clear:
                feasible &= verdict.codes == 0
        if len(feasible) != len(self.feasible) or not np.array_equal(feasible, self.feasible):
            self.feasible_version += 1
            self.feasible_count = int(np.count_nonzero(feasible))
        before, self.feasible = self.feasible, feasible
        self.changed = self._with_turned(before, rows)
        self._seen_versions = self._versions()
        self._narrowed = self.outcome.rows

    def _with_turned(self, before: Mask, rows: I32 | None) -> I32 | None:
        """Rows to rank again: those of before, `rows`, and the few whose feasibility turned."""
        if rows is None or self.changed is None or len(before) != len(self.feasible):
            return None
        turned = np.flatnonzero(before != self.feasible)
        if len(turned) > TURNED_MAX:
            return None
        return np.unique(np.concatenate((self.changed, rows, turned))).astype(np.int32)

    def _combine_rows(self, rows: I32) -> None:
        if not len(rows):
            return
        if self.changed is not None:
            merge = len(self.changed) > 0
            self.changed = np.union1d(self.changed, rows).astype(np.int32) if merge else rows
        if len(rows) == 1:
            self._combine_row(int(rows[0]))
            return
        now: Mask = self._cluster.nodes.columns.read("live")[rows]
        if self.outcome.rows is not None:
            now &= np.isin(rows, list(self.outcome.rows))
        for verdict in self.active:
            if not verdict.is_clear:
                now &= verdict.codes[rows] == 0
        before = self.feasible[rows]
        if not np.array_equal(before, now):
            self.feasible[rows] = now
            self.feasible_count += int(np.count_nonzero(now)) - int(np.count_nonzero(before))
            self.feasible_version += 1

    def _combine_row(self, row: int) -> None:
        fits = bool(self._cluster.nodes.columns.read("live")[row])
        if fits and self.outcome.rows is not None:
            fits = row in self.outcome.rows
        if fits:
            for verdict in self.active:
                if not verdict.is_clear and verdict.codes[row]:
                    fits = False
                    break
        if fits != self.feasible[row]:
            self.feasible[row] = fits
            self.feasible_count += 1 if fits else -1
            self.feasible_version += 1

    # --- for readers -----------------------------------------------------------------------------

    def fits(self, row: int) -> bool:
        """Whether the filters let the pod onto a row, be it among PreFilter's node names or not."""
        if self.outcome.rows is None or row in self.outcome.rows:
            return bool(self.feasible[row])
        if not self._cluster.nodes.columns.read("live")[row]:
            return False
        return not any(verdict.plugin.asks_left or verdict.codes[row] for verdict in self.active)

    def rank(self, pod: PodInfo, feasible: Mask | None = None) -> I64:
        """int64[N]: the total of each feasible row, NOT_FEASIBLE elsewhere.

        `feasible` restricts the kept set for this attempt alone (nominated pods, extenders,
        sampling); nothing of such a ranking is kept.
        """
        if feasible is not None:
            return self.ranking.once(pod, feasible)
        ranking = self.ranking.update(pod, self.feasible, self.feasible_version, self.changed)
        self.changed = NO_ROWS  # a plugin that failed leaves them for the next attempt
        return ranking

    def data_of(self, plugin: str) -> Any:
        """What a plugin's PreFilter prepared; None if it has no such half."""
        for verdict in self._verdicts.values():
            if verdict.plugin.name == plugin:
                return verdict.result.data
        return None

    def judges(self) -> tuple[I32, I32, list[FilterPlugin]]:
        """(judge, codes, plugins): per row 1 + the first rejecting plugin, and its code."""
        height = self._cluster.nodes.height
        judge = np.zeros(height, dtype=np.int32)
        codes = np.zeros(height, dtype=np.int32)
        plugins: list[FilterPlugin] = []
        for index, verdict in enumerate(self.active):
            plugins.append(verdict.plugin)
            fresh = (judge == 0) & (verdict.codes != 0)
            judge[fresh] = index + 1
            codes[fresh] = verdict.codes[fresh]
        return judge, codes, plugins
