"""A scorer's weighted points for one class of pods: raw scores normalised over the feasible rows.

A normalised score depends on which rows are feasible, so it is made anew when that set changes,
unless all rows score alike (then the set does not matter).
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.points import PreFilterResult, ScorePlugin
from asched.core.framework.profile import Scorer
from asched.core.framework.results.cached import NO_SCORES, CachedScores, Work
from asched.core.framework.results.unprepared import end_without_pre_score
from asched.core.framework.status import Code, PluginError, PointError
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


MAX_NODE_SCORE: Final = 100

#: Points that follow placed pods look at no feasible set.
_NO_MASK: Final[Mask] = np.zeros(0, dtype=np.bool_)


class WeightedPoints:
    """Final points of one scorer, weighted."""

    __slots__ = ("_cached", "_mask_version", "_same", "_scorer", "_values", "_version", "is_active")

    def __init__(self, kept: CachedScores, scorer: Scorer) -> None:
        self._cached = kept
        self._scorer = scorer
        self._version: tuple[int, int] | None = None
        self._mask_version: Any = None
        self.is_active = False
        self._values: I64 = NO_SCORES
        self._same: int | None = None  # what every row gets, where nothing depends on the row

    @property
    def values(self) -> I64:
        """int64[N]; zero where a normalised score has no meaning."""
        if self._same is not None:
            return np.broadcast_to(np.int64(self._same), len(self._cached.raw))
        return self._values

    @property
    def raw(self) -> I64:
        """int64[N]: what the plugin said of each row."""
        return self._cached.raw

    @property
    def weight(self) -> int:
        return self._scorer.weight

    def at(self, row: int) -> tuple[int, int]:
        """(raw, final and weighted) points of one row."""
        same = self._same
        return self._cached.raw.item(row), self._values.item(row) if same is None else same

    @property
    def name(self) -> str:
        return self._scorer.plugin.name

    @property
    def plugin(self) -> ScorePlugin:
        return self._scorer.plugin

    @property
    def is_prepared(self) -> bool:
        """Whether a PreScore half comes first."""
        return self._scorer.pre_score is not None

    @property
    def follows_pods(self) -> bool:
        """Whether the points of a row depend on the pods there."""
        return self._cached.follows_pods

    @property
    def heeds_labels(self) -> bool:
        """Whether the points of a row depend on the labels of the pods there."""
        return self._cached.heeds_labels

    @property
    def constant(self) -> int | None:
        """What every row gets, if all get the same and no placement changes that."""
        kept = self._cached
        if not kept.is_uniform or self.plugin.reads_feasible or not len(kept.raw):
            return None
        return int(self._values[kept.first_live]) if self._same is None else self._same

    @property
    def follows_feasible(self) -> bool:
        """Whether another set of feasible rows gives other points."""
        return self.plugin.normalizes and not self._cached.is_uniform

    def follow(self, pod: PodInfo, cluster: Cluster, rows: I32, work: Work) -> bool:
        """Score the rows where pods came or went. True if every row may have changed."""
        kept = self._cached
        if len(rows) == 1 and kept.follow_one(pod, cluster, int(rows[0]), work):
            if self._values is not kept.raw:
                self._values[rows[0]] = kept.raw[rows[0]] * self._scorer.weight
            if self._version is not None:
                self._version = (kept.full_version, kept.row_version)
            return False
        return self.refresh(pod, cluster, _NO_MASK, None, rows, work)

    def refresh(
        self,
        pod: PodInfo,
        cluster: Cluster,
        feasible: Mask,
        mask_version: Any,
        rows: I32 | None,
        work: Work,
    ) -> bool:
        """Bring the points up to date. True if every row may have changed.

        If a plugin fails, all is made anew next time.
        """
        try:
            return self._refresh(pod, cluster, feasible, mask_version, rows, work)
        except Exception:
            self._version = self._mask_version = None
            raise

    def _refresh(
        self,
        pod: PodInfo,
        cluster: Cluster,
        feasible: Mask,
        mask_version: Any,
        rows: I32 | None,
        work: Work,
    ) -> bool:
        kept, scorer = self._cached, self._scorer
        plugin = scorer.plugin
        same_mask = mask_version is not None and mask_version == self._mask_version
        self._mask_version = mask_version
        if (plugin.reads_feasible and not same_mask) or kept.is_old(pod, cluster):
            self._prepare(pod, cluster, feasible, work)
        was_active, self.is_active = self.is_active, not kept.is_skipped
        if kept.is_skipped:
            self._version = None
            return was_active
        kept.refresh(pod, cluster, work)
        version = (kept.full_version, kept.row_version)
        if plugin.is_checked and not plugin.normalizes:
            self._check(kept.raw[feasible])
        if plugin.normalizes:
            settled = same_mask or (kept.is_uniform and not plugin.reads_feasible)
            if settled and version == self._version:
                return False
            self._normalize(feasible)
        elif rows is None or self._version is None or self._version[0] != version[0]:
            self._values = kept.raw if scorer.weight == 1 else kept.raw * scorer.weight
            self._same = None
        else:
            if len(rows) and self._values is not kept.raw:
                self._values[rows] = kept.raw[rows] * scorer.weight
            self._version = version
            return False
        self._version = version
        return True

    def _prepare(self, pod: PodInfo, cluster: Cluster, feasible: Mask, work: Work) -> None:
        pre_score = self._scorer.pre_score
        if pre_score is None:
            plugin = self._scorer.plugin
            end_without_pre_score(plugin)
            data = feasible if plugin.is_checked and plugin.reads_feasible else None
            self._cached.prepared(pod, PreFilterResult(data=data))
            return
        view, meter = NodeView(cluster.nodes), work.meter
        if meter is None:
            result = pre_score.pre_score(pod, view, feasible)
        else:
            run = pre_score.pre_score
            result = meter.call_aside(pre_score.name, "PreScore", run, pod, view, feasible)
        if not result.status.is_success and result.status.code is not Code.SKIP:
            raise PointError(f'running PreScore plugin "{pre_score.name}": {result.status.message}')
        self._cached.prepared(pod, result)

    def _check(self, values: I64) -> None:
        """`values` are the final scores of feasible rows. Raises PluginError."""
        if len(values) and (values.min() < 0 or values.max() > MAX_NODE_SCORE):
            wrong = next(v for v in values.tolist() if not 0 <= v <= MAX_NODE_SCORE)
            text = (
                f'plugin "{self.name}" returns an invalid score {wrong}, it should in the range of'
                f" [0, {MAX_NODE_SCORE}] after normalizing"
            )
            where = "applying score defaultWeights on Score plugins: "
            raise PluginError(where + text, self.name, "score")

    def _normalize(self, feasible: Mask) -> None:
        kept, scorer = self._cached, self._scorer
        if kept.is_uniform and not scorer.plugin.reads_feasible:
            self._same = kept.normal_of_all() * scorer.weight
            return
        self._same = None
        values = np.zeros(len(kept.raw), dtype=np.int64)
        if feasible.any():
            final = scorer.plugin.normalize(kept.raw[feasible], kept.data)
            if scorer.plugin.is_checked:
                self._check(final)
            values[feasible] = final * scorer.weight
        self._values = values
