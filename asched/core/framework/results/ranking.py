"""The ranking of a class: the scorers' weighted points, summed for each feasible row.

    scorers  WeightedPoints.final ──sum──> total int64[N] ──where feasible──> ranking int64[N]

A decision usually changes one row: the points that depend on the pods there are made for that row
only, and so is its sum.
"""

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.results.by_row import ROWS_FEW, ByRow, Rows
from asched.core.framework.results.cached import NO_VALUES
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.moves import FEASIBLE, PLACEMENTS, Moves
from asched.core.framework.results.peaks import NOT_FEASIBLE, Peaks, drawn
from asched.core.framework.results.weighted_points import (
    Column,
    Points,
    PointsVersion,
    WeightedPoints,
)
from asched.core.framework.status import MISTAKES, raise_plugin_error
from asched.core.model.arrays import I64, Indices, Mask

#: (name, weight) of each; the garbage collector stops tracking such tuples.
Scorers = tuple[tuple[str, int], ...]


class Ranking(ByRow[None]):
    """`points` in profile order; scorers that skipped themselves are not `is_active`."""

    def __init__(
        self,
        cluster: Cluster,
        feasible: Feasible,
        points: list[WeightedPoints],
        *,
        zero_scorers: tuple[str, ...] = (),
        floor: int = 0,
    ) -> None:
        """`zero_scorers` score these pods 0 on every node. `floor` is added for every row: 1 if no
        scorer is enabled, as upstream.
        """
        super().__init__(cluster.nodes, _aspects_of(points), feasible.changed_rows)
        self.points = points
        #: points of a row that may depend on other rows
        self._relative = [part for part in points if part.may_be_relative]
        self.zero_scorers = zero_scorers
        self._feasible = feasible
        self._floor = floor
        self._moves = Moves(cluster)
        self._mask_seen = -1
        self._versions: list[PointsVersion] = []
        #: bits of `Moves` -> the points that depend on them; figures in `class_state.py`
        self._concerned: dict[int, list[WeightedPoints]] = {}
        #: int64[N] of the last ranking
        self.totals: I64 = NO_VALUES
        #: their largest entries; made once there are any
        self.peaks: Peaks
        #: the common points of all rows, and the points that differ, each with its weight
        self._base = 0
        self._varied: list[tuple[I64, int]] = []
        #: the points of a ranking over other rows, if that was the last one
        self._once: list[tuple[WeightedPoints, Points]] | None = None
        #: whether the last ranking covered all feasible rows
        self.is_whole = True
        self._asked: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        #: names and weights of the active scorers, and two columns for each: raw and weighted
        #: points; None until they are read after a change
        self.reading: tuple[Scorers, list[Column]] | None = None
        self._scorers: Scorers = ()

    def of(self, pod: PodInfo) -> I64:
        """The ranking over the feasible rows; the mask is up to date."""
        feasible = self._feasible
        moved = self._moves.read()
        if feasible.version != self._mask_seen:
            moved |= FEASIBLE
        concerned = self._concerned.get(moved)
        if concerned is None:
            concerned = self._whom(moved)
        if concerned:
            try:
                for points in concerned:
                    if points.bring_up(pod, moved):
                        self.reading = None
            except MISTAKES as raised:
                raise_plugin_error(points.name, "score", raised)
            self._versions = [points.version for points in self.points]
        self.update(None, self._versions)
        self._moves.mark_processed()
        self._mask_seen = feasible.version
        self.is_whole = True
        if self._once is not None:
            self._once = self._asked = self.reading = None
        return self.totals

    def choose(self, pod: PodInfo, seed: int, among: Mask | None = None) -> tuple[int, int]:
        """The best of all feasible rows, or of `among`, and its total; the seed decides ties."""
        if among is None:
            totals, peaks = self.of(pod), self.peaks
        else:
            totals = self.once(pod, among)
            peaks = Peaks(totals)
        row = peaks.choose(seed)
        return row, totals.item(row)

    def choose_few(self, pod: PodInfo, seed: int, rows: Indices) -> tuple[int, int]:
        """As `choose` among these few rows, in order."""
        totals = self.of(pod) if self._is_by_row() else None
        if totals is None or not self._is_by_row():
            among = np.zeros(self._nodes.height, dtype=np.bool_)
            among[rows] = True
            totals = self.once(pod, among)
        self.is_whole = False
        some = totals[rows]
        best = some.item(some.argmax())  # `max` is implemented in Python
        return drawn(seed, rows[some == best], len(totals)), best

    def once(self, pod: PodInfo, feasible: Mask) -> I64:
        """The ranking over some of the feasible rows, not cached."""
        if self._is_by_row():
            totals = self.of(pod)
            if self._is_by_row():
                self.is_whole = False
                return np.where(feasible, totals, NOT_FEASIBLE)
        self.is_whole = False
        self._once = []
        try:
            for points in self.points:
                given = points.once(pod, feasible)
                if given is not None:
                    self._once.append((points, given))
        except MISTAKES as raised:
            raise_plugin_error(points.name, "score", raised)
        self._mask_seen = -1  # some points read the mask
        self._asked = self.reading = None
        total = np.full(len(feasible), self._floor, dtype=np.int64)
        for _, given in self._once:
            total += given.final
        return np.where(feasible, total, NOT_FEASIBLE)

    def _is_by_row(self) -> bool:
        """Whether the points of a row are independent of the other rows."""
        return not [points for points in self._relative if not points.is_by_row]

    # --- for reports -----------------------------------------------------------------------------

    def taking_part(self) -> list[WeightedPoints]:
        """The active scorers."""
        if self._once is not None:
            return [points for points, _ in self._once]
        return [points for points in self.points if points.is_active]

    def points_of(self, row: int) -> tuple[Scorers, tuple[int, ...]]:
        """The active scorers, and the raw and weighted points of a row for each."""
        scorers, columns = self.reading or self.read()
        return scorers, tuple([(c if type(c) is int else c.item(row)) * f for c, f in columns])

    def read(self) -> tuple[Scorers, list[Column]]:
        """Find out `reading`."""
        scorers = tuple([(points.name, points.weight) for points in self.taking_part()])
        if scorers != self._scorers:  # else the same object, which records share
            self._scorers = scorers
        columns: list[Column] = []
        if self._once is not None:
            for _, (raw, final) in self._once:
                columns += ((raw, 1), (final, 1))
        else:
            for points in self.points:
                columns += points.columns() if points.is_active else ()
        self.reading = self._scorers, columns
        return self.reading

    @property
    def asked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(plugins whose PreScore ran, plugins whose Score ran) in the last ranking."""
        if self._asked is None:
            active = self.taking_part()
            prepared = tuple(points.name for points in active if points.is_prepared)
            scorers = tuple(points.name for points in active)
            self._asked = prepared, (*scorers, *self.zero_scorers)
        return self._asked

    # --- inside ----------------------------------------------------------------------------------

    def _whom(self, moved: int) -> list[WeightedPoints]:
        if moved & ~PLACEMENTS:  # inputs may have changed
            self._concerned.clear()
            return self.points
        found = [points for points in self.points if points.reads & moved]
        self._concerned[moved] = found
        return found

    def _make_all(self, _: None) -> None:
        """Make all rows from the cached parts."""
        base, varied, logs = self._floor, [], [self._feasible.changed_rows]
        for points in self.points:
            if points.version.common is None:
                logs += points.scores.logs
            if points.is_active:
                final, weight = points.columns()[1]
                if isinstance(final, int):
                    base += final * weight
                else:
                    varied.append((final, weight))
        self._base, self._varied, self.logs = base, varied, tuple(logs)
        feasible = self._feasible
        total: I64 | None = None
        for values, weight in varied:
            scaled = values if weight == 1 else values * weight
            if total is None:
                total = scaled + base
            else:
                total += scaled
        if total is None:
            total = np.full(len(feasible.mask), base, dtype=np.int64)
        if feasible.count < len(total):
            total = np.where(feasible.mask, total, NOT_FEASIBLE)
        self.totals = total
        self.peaks = Peaks(total)
        self._asked = self.reading = None

    def _make_rows(self, _: None, rows: Rows) -> bool:
        mask, totals = self._feasible.mask, self.totals
        if len(rows) > ROWS_FEW:
            at = np.array(rows)
            some = np.full(len(at), self._base, dtype=np.int64)
            for values, weight in self._varied:
                some += values[at] * weight
            totals[at] = np.where(mask[at], some, NOT_FEASIBLE)
            self.peaks.renew(rows)
            return True
        # Benchmark `decide-plain`: 586,000 instructions a pod; if few rows are gathered 640,000.
        for row in rows:
            total = NOT_FEASIBLE
            if mask.item(row):
                total = self._base
                for values, weight in self._varied:
                    total += values.item(row) * weight
            totals[row] = total
        self.peaks.renew(rows)
        return True


def _aspects_of(points: list[WeightedPoints]) -> int:
    aspects = 0
    for part in points:
        aspects |= part.aspects
    return aspects
