"""The ranking of a class: the scorers' weighted points, summed where a pod fits.

    scorers  WeightedPoints.values ──sum──> total int64[N] ──where feasible──> ranking int64[N]

Points fall into three kinds, and after a decision only the last two are touched:
    still      nothing that placed pods change can change them; their sum is kept
    moving     they look at what runs on a row, so the changed rows are scored again
    sensitive  they read counts of pods, or are normalised over a set that may change: looked at
    each time
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.results.cached import Work
from asched.core.framework.results.draw import draw, draw_again
from asched.core.framework.results.weighted import WeightedPoints
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: The entry of a row that is not feasible.
NOT_FEASIBLE: Final = np.iinfo(np.int64).min


#: Rows whose largest entry is kept: the best row is then searched among blocks, and in one of them.
#: Measured at 5,000 and 100,000 rows: 128 to 512 are within a microsecond of each other.
BLOCK_ROWS: Final = 256


def peaks_of(ranking: I64) -> I64:
    """The largest entry of each block of rows."""
    return np.maximum.reduceat(ranking, np.arange(0, len(ranking), BLOCK_ROWS))


def choose(ranking: I64, seed: int, peaks: I64 | None = None) -> int:
    """The row with the largest entry; among equals a choice that the seed decides.

    First one of the blocks that hold such a row is drawn, then one of its rows.
    """
    if peaks is None:
        peaks = peaks_of(ranking)
    best = peaks[peaks.argmax()]
    blocks = (peaks == best).nonzero()[0]  # flatnonzero takes four times as long to get there
    start = int(blocks[draw(seed, len(blocks))]) * BLOCK_ROWS
    tied = (ranking[start : start + BLOCK_ROWS] == best).nonzero()[0]
    return start + int(tied[draw_again(seed, len(tied))])


class Ranking:
    """`points` in profile order; those that skipped themselves are not `is_active`."""

    def __init__(
        self,
        cluster: Cluster,
        work: Work,
        points: list[WeightedPoints],
        *,
        noughts: tuple[str, ...] = (),
        floor: int = 0,
    ) -> None:
        """`noughts` are scorers that give these pods nothing anywhere. `floor` is added for every
        row: 1 where no scorer is enabled, as upstream has it.
        """
        self.noughts = noughts
        self._cluster = cluster
        self._floor = floor
        self._work = work
        self.points = points
        self._moving: list[WeightedPoints] = []
        self._sensitive: list[WeightedPoints] = []
        self._still_sum: I64 = np.zeros(0, dtype=np.int64)
        self._ranking: I64 = np.zeros(0, dtype=np.int64)
        #: largest entry per block of `BLOCK_ROWS`, of the ranking that `update` returned last
        self.peaks: I64 = self._ranking
        self._epoch = -1
        self._generation = -1
        self._remembers = all(one.plugin.depends_on is not None for one in points)
        self._may_be_quick = False
        self._asked: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._told: tuple[list[WeightedPoints], tuple[tuple[str, int], ...]] | None = None
        #: for whoever keeps what was decided: the best nodes when they were looked for last, and
        #: how many decisions ago that was
        self.best: Any = None
        self.told = 0

    @property
    def totals(self) -> I64:
        """int64[N] as `update` returned it last."""
        return self._ranking

    def taking_part(self) -> list[WeightedPoints]:
        """The scorers that are not skipped."""
        return [points for points in self.points if points.is_active]

    def points_of(self, row: int) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """((plugin, weight) of those that take part, raw and weighted points of a row for each)."""
        if self._told is None:
            active = self.taking_part()
            self._told = active, tuple([(points.name, points.weight) for points in active])
        active, names = self._told
        found: list[int] = []
        for points in active:
            found += points.at(row)
        return names, tuple(found)

    @property
    def asked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(plugins whose PreScore took part, plugins whose Score did) in the last ranking."""
        if self._asked is None:
            active = [points for points in self.points if points.is_active]
            prepared = tuple(points.name for points in active if points.is_prepared)
            scorers = tuple(points.name for points in active)
            self._asked = prepared, (*scorers, *self.noughts)
        return self._asked

    def once(self, pod: PodInfo, feasible: Mask) -> I64:
        """The ranking over another set of rows, from which nothing is kept."""
        for points in self.points:
            points.refresh(pod, self._cluster, feasible, None, None, self._work)
        self._may_be_quick = False
        self._asked = self._told = None
        total = self._sum(self.points, base=self._floor)
        return np.where(feasible, total, NOT_FEASIBLE)

    def update(self, pod: PodInfo, feasible: Mask, feasible_version: int, rows: I32 | None) -> I64:
        """The ranking of the class. `rows` changed since the last call, None: all."""
        nodes = self._cluster.nodes
        is_quick = (
            self._may_be_quick
            and rows is not None
            and self._epoch == self._cluster.epoch
            and self._generation == nodes.generation
        )
        if not is_quick:
            return self._rank_again(pod, feasible, feasible_version)
        assert rows is not None
        is_rebuilt = False
        for points in self._sensitive:
            is_rebuilt |= points.refresh(
                pod, self._cluster, feasible, feasible_version, rows, self._work
            )
        for points in self._moving:
            is_rebuilt |= points.follow(pod, self._cluster, rows, self._work)
        if is_rebuilt:
            self._asked = self._told = None
            self._sum_up(feasible)
        elif len(rows) == 1:
            self._rank_row(int(rows[0]), feasible)
            self._find_peak(int(rows[0]) // BLOCK_ROWS)
        elif len(rows):
            part = self._still_sum[rows]
            for points in (*self._moving, *self._sensitive):
                if points.is_active:
                    part += points.values[rows]
            self._ranking[rows] = np.where(feasible[rows], part, NOT_FEASIBLE)
            self.peaks = peaks_of(self._ranking)
        return self._ranking

    def _find_peak(self, block: int) -> None:
        start = block * BLOCK_ROWS
        self.peaks[block] = np.maximum.reduce(self._ranking[start : start + BLOCK_ROWS])

    def _rank_row(self, row: int, feasible: Mask) -> None:
        if not feasible[row]:
            self._ranking[row] = NOT_FEASIBLE
            return
        total = self._still_sum[row]
        for points in self._moving:
            total += points.values[row]
        for points in self._sensitive:
            if points.is_active:
                total += points.values[row]
        self._ranking[row] = total

    def _rank_again(self, pod: PodInfo, feasible: Mask, feasible_version: int) -> I64:
        for points in self.points:
            points.refresh(pod, self._cluster, feasible, feasible_version, None, self._work)
        self._moving, self._sensitive, still = [], [], []
        self._asked = self._told = None
        for points in self.points:
            plugin = points.plugin
            follows = plugin.reads_feasible or points.follows_feasible or plugin.is_checked
            if plugin.reads_counts or follows:
                self._sensitive.append(points)
            elif points.is_active and points.follows_pods:
                self._moving.append(points)
            else:
                still.append(points)
        base, varied = self._floor, []
        for points in still:
            if points.is_active:
                constant = points.constant
                if constant is None:
                    varied.append(points)
                else:
                    base += constant
        self._still_sum = self._sum(varied, base=base)
        self._sum_up(feasible)
        self._epoch = self._cluster.epoch
        self._generation = self._cluster.nodes.generation
        self._may_be_quick = self._remembers
        return self._ranking

    def _sum_up(self, feasible: Mask) -> None:
        """All rows anew, from what is kept of each part."""
        total = self._still_sum.copy()
        for points in (*self._moving, *self._sensitive):
            if points.is_active:
                total += points.values
        total[~feasible] = NOT_FEASIBLE
        self._ranking = total
        self.peaks = peaks_of(total)

    def _sum(self, parts: list[WeightedPoints], base: int) -> I64:
        total = np.full(self._cluster.nodes.height, base, dtype=np.int64)
        for points in parts:
            if points.is_active:
                total += points.values
        return total
