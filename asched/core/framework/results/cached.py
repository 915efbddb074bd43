"""Cached results: one plugin's verdict or scores for equal pods, made anew only where something
changed.

An answer is an array over all rows. It knows how far it has read the row log, the epoch of the
other objects it depends on, and the stamp of the counts it was made from. `refresh` brings it up to
date and does as little as it can: nothing, a few rows, or everything.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.framework.meter import Meter
from asched.core.framework.points import (
    CachedPlugin,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
)
from asched.core.framework.status import Code, PluginError
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import ALL_ASPECTS, AMOUNTS, POD_LABELS, PODS_MOVED, START_TIMES
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

A = TypeVar("A", npt.NDArray[np.int32], npt.NDArray[np.int64])
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Beyond this share of all rows a full pass is cheaper than gathering the changed ones. Measured
#: with the resource kernels at 5,000 rows: gathering costs three times the pass over these.
FULL_PASS_SHARE: Final = 0.3

#: What placed pods change: their start matters to preemption alone, their labels to few plugins.
_PLACEMENTS: Final = PODS_MOVED | START_TIMES

NO_SCORES: Final[I64] = np.zeros(0, dtype=np.int64)
NO_ROWS: Final[I32] = np.zeros(0, dtype=np.int32)


class Work:
    """Operation counts since the start: what benchmarks and regression tests look at. `meter` times
    plugins, if anybody wants to know.
    """

    __slots__ = ("full_passes", "meter", "row_passes", "rows")

    def __init__(self) -> None:
        self.meter: Meter | None = None
        self.full_passes = 0
        self.row_passes = 0
        self.rows = 0


def changed_rows(cluster: Cluster, cursor: int, aspects: int) -> I32 | None:
    """Rows that changed in one of the aspects since the cursor; None if all must be looked at."""
    log = cluster.nodes.log
    if cursor == log.end:
        return NO_ROWS
    entries = log.since(cursor)
    if entries is None:
        return None
    if len(entries) == 1:
        row, touched = entries[0]
        return np.array((row,), dtype=np.int32) if touched & aspects else NO_ROWS
    rows = {row for row, touched in entries if touched & aspects}
    if len(rows) > cluster.nodes.height * FULL_PASS_SHARE:
        return None
    return np.fromiter(rows, dtype=np.int32, count=len(rows))


def rows_with_pods(cluster: Cluster, cursor: int, *, heeds_labels: bool) -> I32 | None:
    """Rows on which pods came or went since the cursor; None if more changed that matters, or too
    much. `heeds_labels`: labels of pods that stay do.
    """
    log = cluster.nodes.log
    if cursor == log.end:
        return NO_ROWS
    entries = log.since(cursor) if cursor >= 0 else None
    if entries is None:
        return None
    rows = set()
    for row, touched in entries:
        if touched & ~_PLACEMENTS:
            return None
        if touched & AMOUNTS:
            rows.add(row)
        elif heeds_labels and touched & POD_LABELS:
            return None
    if len(rows) > cluster.nodes.height * FULL_PASS_SHARE:
        return None
    return np.fromiter(rows, dtype=np.int32, count=len(rows))


class CachedResult:
    """The part that filters and scores share: when is an answer old?"""

    __slots__ = (
        "__weakref__",
        "_aspects",
        "_epoch",
        "_is_prepared",
        "_kinds_epoch",
        "_remembers",
        "cursor",
        "full_version",
        "plugin",
        "stamp",
    )

    def __init__(self, plugin: CachedPlugin) -> None:
        self.plugin = plugin
        self._remembers = plugin.depends_on is not None
        self._aspects = ALL_ASPECTS if plugin.depends_on is None else int(plugin.depends_on)
        self._is_prepared = False
        self.cursor = -1
        self.stamp: Any = None
        self._epoch = -1
        self._kinds_epoch = -1
        #: moves whenever every row was made anew
        self.full_version = 0

    @property
    def aspects(self) -> int:
        """What of a row the answer depends on; everything if the plugin does not say."""
        return self._aspects

    @property
    def follows_pods(self) -> bool:
        """Whether the answer for a row depends on what runs there."""
        return self._aspects & AMOUNTS != 0

    @property
    def heeds_labels(self) -> bool:
        """Whether the answer for a row depends on the labels of the pods there."""
        return self._aspects & POD_LABELS != 0

    def _kinds_moved(self, cluster: Cluster) -> bool:
        if self._epoch == cluster.epoch:
            return False
        self._epoch = cluster.epoch
        epoch = sum(map(cluster.epoch_of, self.plugin.kinds))
        moved = epoch != self._kinds_epoch
        self._kinds_epoch = epoch
        return moved


class CachedVerdict(CachedResult):
    """A filter's codes for one class of pods, with what its PreFilter half prepared."""

    __slots__ = ("_work", "codes", "data_stamp", "is_clear", "pre_filter", "result")

    plugin: FilterPlugin

    def __init__(
        self,
        plugin: FilterPlugin,
        pre_filter: PreFilterPlugin | None,
        work: Work | None = None,
    ) -> None:
        super().__init__(plugin)
        self._work = work or Work()
        self.pre_filter = pre_filter
        self.result = PreFilterResult()
        self.data_stamp: Any = None
        self.codes: I32 = NO_ROWS
        #: whether no row is rejected, so that nobody needs to look at the codes
        self.is_clear = False

    def prepare(self, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Run PreFilter if what it read has moved since."""
        plugin = self.plugin
        moved = self._kinds_moved(cluster) or not (self._is_prepared and self._remembers)
        if not moved and plugin.stamp(pod, self.result.data) == self.stamp:
            return self.result
        self._is_prepared = True
        if self.pre_filter is not None:
            data_stamp = plugin.data_stamp(pod)
            if moved or data_stamp is None or data_stamp != self.data_stamp:
                self.result = _pre_filter(self.pre_filter, pod, self._work.meter)
                self.data_stamp = data_stamp
        self.stamp = plugin.stamp(pod, self.result.data)
        self.cursor = -1
        return self.result

    def follow(self, pod: PodInfo, cluster: Cluster, work: Work, cursor: int, rows: I32) -> None:
        """Bring the codes up to date where only pods came and went, on `rows` since `cursor`."""
        if self.cursor != cursor or len(rows) != 1:
            self.refresh(pod, cluster, work)
            return
        row = int(rows[0])
        plugin, data, meter = self.plugin, self.result.data, work.meter
        if meter is not None and meter.is_sampled:
            code = meter.call(plugin.name, "Filter", plugin.filter_one, pod, row, data)
        else:
            code = plugin.filter_one(pod, row, data)
        if code is None:
            self.refresh(pod, cluster, work)
            return
        self.codes[row] = code
        self.is_clear = self.is_clear and not code
        self.cursor = cluster.nodes.log.end
        work.row_passes += 1
        work.rows += 1

    def refresh(self, pod: PodInfo, cluster: Cluster, work: Work) -> None:
        """Bring the codes up to date; `prepare` has run."""
        height = cluster.nodes.height
        end = cluster.nodes.log.end
        if self.cursor == end:
            return
        rows = None
        if self.cursor >= 0 and len(self.codes) >= height:
            rows = changed_rows(cluster, self.cursor, self._aspects)
        data = self.result.data
        if rows is None:
            self.codes = np.asarray(self._filter(pod, NodeView(cluster.nodes), data, work))
            if not self.codes.flags.writeable:
                self.codes = self.codes.copy()
            self.is_clear = not self.codes.any()
            self.full_version += 1
            work.full_passes += 1
            work.rows += height
        elif len(rows):
            codes = self._filter(pod, NodeView(cluster.nodes, rows), data, work)
            self.codes[rows] = codes
            self.is_clear = self.is_clear and not codes.any()
            work.row_passes += 1
            work.rows += len(rows)
        self.cursor = end

    def ask_left(self, pod: PodInfo, cluster: Cluster, work: Work, left: Mask) -> None:
        """Ask anew about these rows alone; `prepare` has run. The others count as clear."""
        rows = np.flatnonzero(left).astype(np.int32)
        codes = np.zeros(cluster.nodes.height, dtype=np.int32)
        if len(rows):
            view = NodeView(cluster.nodes, rows)
            codes[rows] = self._filter(pod, view, self.result.data, work)
        self.codes = codes
        self.is_clear = not codes.any()
        self.full_version += 1
        work.full_passes += 1
        work.rows += len(rows)
        self.cursor = cluster.nodes.log.end

    def _filter(self, pod: PodInfo, view: NodeView, data: Any, work: Work) -> I32:
        plugin, meter = self.plugin, work.meter
        if meter is None:
            codes = plugin.filter(pod, view, data)
        else:
            codes = meter.call(plugin.name, "Filter", plugin.filter, pod, view, data)
        return _of_height(codes, view, plugin.name, "filter")


def _pre_filter(plugin: PreFilterPlugin, pod: PodInfo, meter: Meter | None) -> PreFilterResult:
    if meter is None:
        return plugin.pre_filter(pod)
    return meter.call_aside(plugin.name, "PreFilter", plugin.pre_filter, pod)


class CachedScores(CachedResult):
    """A scorer's raw scores for one class of pods, where they do not depend on the feasible set."""

    __slots__ = (
        "_normal",
        "data",
        "first_live",
        "is_skipped",
        "is_uniform",
        "raw",
        "row_version",
    )

    plugin: ScorePlugin

    def __init__(self, plugin: ScorePlugin) -> None:
        super().__init__(plugin)
        self.data: Any = None
        self.is_skipped = False
        #: whether all live rows have the same raw score, and one of them
        self.is_uniform = False
        self.first_live = 0
        self.row_version = 0
        self._normal: tuple[int, int, int] = (-1, -1, 0)
        self.raw: I64 = NO_SCORES

    def is_old(self, pod: PodInfo, cluster: Cluster) -> bool:
        """Whether PreScore must run again (and with it every row)."""
        plugin = self.plugin
        moved = self._kinds_moved(cluster) or not (self._is_prepared and self._remembers)
        return moved or plugin.stamp(pod, self.data) != self.stamp

    def prepared(self, pod: PodInfo, result: PreFilterResult) -> None:
        """Take what PreScore answered."""
        self._is_prepared = True
        self.is_skipped = result.status.code is Code.SKIP
        self.data = result.data
        self.stamp = self.plugin.stamp(pod, self.data)
        self.cursor = -1

    def refresh(self, pod: PodInfo, cluster: Cluster, work: Work) -> None:
        """Bring the raw scores up to date."""
        height = cluster.nodes.height
        end = cluster.nodes.log.end
        if self.cursor == end:
            return
        rows = None
        if self.cursor >= 0 and len(self.raw) >= height:
            rows = changed_rows(cluster, self.cursor, self._aspects)
        if rows is None:
            raw = self._score(pod, NodeView(cluster.nodes), work)
            self.raw = np.array(raw, dtype=np.int64)
            self._look_for_difference(cluster)
            self.full_version += 1
            work.full_passes += 1
            work.rows += height
        elif len(rows):
            scores = self._score(pod, NodeView(cluster.nodes, rows), work)
            if self.is_uniform:
                self.is_uniform = bool((scores == self.raw[self.first_live]).all())
            self.raw[rows] = scores
            self.row_version += 1
            work.row_passes += 1
            work.rows += len(rows)
        self.cursor = end

    def normal_of_all(self) -> int:
        """The normalised score of every row, where all raw scores are the same."""
        full, row, normal = self._normal
        if (full, row) != (self.full_version, self.row_version):
            one = self.raw[self.first_live : self.first_live + 1]
            normal = int(self.plugin.normalize(one, self.data)[0])
            self._normal = (self.full_version, self.row_version, normal)
        return normal

    def _look_for_difference(self, cluster: Cluster) -> None:
        """Is the raw score the same everywhere? Not asked where every placement changes it."""
        nodes = cluster.nodes
        if not nodes.count or (self._aspects & AMOUNTS and not self.plugin.normalizes):
            self.is_uniform = False
            return
        live = nodes.columns.read("live")[: nodes.height]
        self.first_live = int(live.argmax())
        same = self.raw == self.raw[self.first_live]
        if nodes.count < nodes.height:
            same |= ~live
        self.is_uniform = bool(same.all())

    def _score(self, pod: PodInfo, view: NodeView, work: Work) -> I64:
        plugin, meter = self.plugin, work.meter
        if meter is None:
            scores = plugin.score(pod, view, self.data)
        else:
            scores = meter.call(plugin.name, "Score", plugin.score, pod, view, self.data)
        return _of_height(scores, view, plugin.name, "score")

    def follow_one(self, pod: PodInfo, cluster: Cluster, row: int, work: Work) -> bool:
        """Score one row on which pods came or went, if nothing else is to be looked at."""
        log = cluster.nodes.log
        if self.cursor == log.end:
            return True
        if self.cursor != log.end - 1:
            entries = log.since(self.cursor)
            if entries is None or any(t & self._aspects and r != row for r, t in entries):
                return False
        plugin, meter = self.plugin, work.meter
        if meter is not None and meter.is_sampled:
            score = meter.call(plugin.name, "Score", plugin.score_one, pod, row, self.data)
        else:
            score = plugin.score_one(pod, row, self.data)
        if score is None:
            return False
        self.raw[row] = score
        self.row_version += 1
        self.cursor = log.end
        work.row_passes += 1
        work.rows += 1
        return True


def _of_height(answer: A, view: NodeView, plugin: str, point: str) -> A:
    """The answer, if it is one integer for each row of the view. Raises PluginError."""
    if getattr(answer, "shape", None) == (view.size,) and answer.dtype.kind in "iu":
        return answer
    shape = getattr(answer, "shape", type(answer).__name__)
    text = f"answered {shape} where an array of {view.size} integers is expected"
    raise PluginError(f'running {point} plugin "{plugin}": {text}', plugin, point)


def narrowed_rows(cluster: Cluster, names: Sequence[str] | frozenset[str]) -> set[int]:
    """The rows of those names that belong to nodes."""
    row_of = cluster.nodes.row_of
    return {row_of[name] for name in names if name in row_of}
