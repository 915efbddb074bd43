"""The ranking of a class: the scorers' weighted points, summed for each feasible row.

    scorers  WeightedPoints.final ──sum──> total int64[N] ──where feasible──> ranking int64[N]

A scorer's weighted points are its raw scores, normalized over the feasible rows if it does so,
times its weight. Without normalization nothing more than the raw scores is stored. Normalized
points depend on which rows are feasible, unless all rows have equal scores. Most scorers declare
what of the feasible rows' scores matters (`bounds`): while that is unchanged, the points of a row
depend on its own raw score only. So a decision usually changes one row: the points that depend on
the pods there are made for that row only, and so is its sum.

The largest entries of a ranking are found in a tree of blocks (`Peaks`).

    totals int64[N] ──> peaks int64[N / 256] ──> int64[N / 65,536] ──> ... until there is one block

A changed row is propagated upwards, the best row is searched downwards: one block per level, so
that a decision among a million nodes reads three blocks.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.framework.profile import Scorer
from asched.core.framework.results.by_row import FEASIBLE, PLACEMENTS, ROWS_FEW, ByRow, Moves, Rows
from asched.core.framework.results.cached import NO_VALUES, CachedScores
from asched.core.framework.results.draw import draw, draw_above, draw_again
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.prepared import Masked
from asched.core.framework.status import MISTAKES, Code, PluginError, raise_plugin_error

I64 = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

MAX_NODE_SCORE: Final = 100


#: Points by row (int64[N]), or the common value of all rows, and a factor.
Column = tuple[Any, int]


class Points(NamedTuple):
    """int64[N] raw scores, and the weighted points: int64[N], or one number for all rows."""

    raw: I64
    final: I64 | int


class PointsVersion(msgspec.Struct, frozen=True, gc=False):
    """What the points of all rows were made from; equal to another if all rows kept their points.

    `full`, `scores`: the full versions of the points and of the raw scores. `common` alone is set
    if all rows have these normalized points: raw scores do not matter then.
    """

    full: int = 0
    scores: int = 0
    is_uniform: bool = False
    common: int | None = None


class WeightedPoints(ByRow[None]):
    """Final points of one scorer, weighted, over the feasible rows of a class."""

    def __init__(
        self, nodes: NodeTable, scores: CachedScores, scorer: Scorer, feasible: Feasible
    ) -> None:
        super().__init__(nodes, scores.aspects, feasible.turned)
        self.scores = scores
        self.plugin = plugin = scorer.plugin
        self.name, self.weight = plugin.name, scorer.weight
        self.is_prepared = scorer.pre_score is not None  # whether PreScore is enabled
        self._is_normalized = plugin.normalizes
        #: whether the points of a row may depend on which other rows are feasible
        self.may_be_relative = plugin.reads_feasible or plugin.is_checked or plugin.normalizes
        self._feasible = feasible
        self.is_active = False
        self.version = PointsVersion()
        #: the full version of the raw scores, and whether they are uniform
        self._raw_version = (-1, False)
        #: normalized points: by row, or the common value
        self._final: I64 | int = NO_VALUES
        #: the plugin's `bounds` of the feasible rows' raw scores; None: all of them matter
        self._bounds: Any = None
        #: rows that have these bounds, if they were searched for
        self._shown: frozenset[int] | None = None

    @property
    def is_by_row(self) -> bool:
        """Whether the points of a row are independent of the other feasible rows, for the current
        scores.
        """
        plugin = self.plugin
        if plugin.reads_feasible or plugin.is_checked:
            return False
        return not self._is_normalized or self.scores.is_uniform

    @property
    def reads(self) -> int:
        """The bits of `Moves` after which they may change."""
        return self.scores.reads | (FEASIBLE if self.may_be_relative else 0)

    def columns(self) -> tuple[Column, Column]:
        """The raw and the weighted points, until the version changes."""
        scores, final = self.scores, self._final
        raw = scores.alike if scores.is_uniform else scores.values
        return (raw, 1), (final, 1) if self._is_normalized else (raw, self.weight)

    def bring_up(self, pod: PodInfo, moved: int) -> bool:
        """Update everything; the mask is up to date. `moved` are bits of `Moves`. Returns whether
        points must be read again, even if they are equal.
        """
        scores = self.scores
        prepared = scores.prepared
        if moved & (prepared.reads | FEASIBLE):
            self._prepare(pod)
        if self.is_active:
            scores.update(pod, prepared.version)
            if self._is_normalized:
                self.update(None, scores.full_version)
            elif self.plugin.is_checked:
                self._check(scores.values[self._feasible.mask])
        raw_version, final = (scores.full_version, scores.is_uniform), self._final
        if self.is_active and self._is_normalized and isinstance(final, int):
            self.version = PointsVersion(common=final)
        else:
            self.version = PointsVersion(self.full_version, *raw_version)
        was, self._raw_version = self._raw_version, raw_version
        return was != raw_version

    def _prepare(self, pod: PodInfo) -> None:
        """Run PreScore; bump the version when the plugin starts or stops being skipped."""
        feasible, prepared = self._feasible, self.scores.prepared
        plugin = self.plugin
        heeds = plugin.reads_feasible and plugin.heeds_feasible(pod)
        prepared.update(pod, feasible, feasible.version if heeds else None)
        is_skipped = prepared.result.status.code is Code.SKIP
        if self.is_active is is_skipped:
            self.is_active = not is_skipped
            self.full_version += 1

    def once(self, pod: PodInfo, feasible: Mask) -> Points | None:
        """Points over another set of rows, not cached; None if it is skipped."""
        scores = self.scores
        prepared = scores.prepared
        heeds = self.plugin.heeds_feasible(pod)
        prepared.update(pod, Masked(feasible), object() if heeds else None)
        if prepared.is_skipped:
            return None
        scores.update(pod, prepared.version)
        raw = scores.values
        if self._is_normalized:
            return Points(raw, self._normalize(feasible, int(np.count_nonzero(feasible)))[0])
        if self.plugin.is_checked:
            self._check(raw[feasible])
        return Points(raw, raw * self.weight)

    def _make_all(self, _: None) -> None:
        scores, feasible = self.scores, self._feasible
        if scores.is_uniform and not self.plugin.reads_feasible:
            self.logs = scores.logs  # independent of feasibility
            self._final, self._bounds = scores.normal_of_all() * self.weight, None
            return
        self._shown = None
        self.logs = (feasible.turned, *scores.logs)
        self._final, self._bounds = self._normalize(feasible.mask, feasible.count)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        scores, feasible, final = self.scores, self._feasible, self._final
        bounds = self._bounds
        if isinstance(final, int) and bounds is None:
            return scores.is_uniform
        if bounds is None or not feasible.count or scores.is_uniform:
            return False
        if self._make_few(rows, final):
            return True
        if isinstance(final, int):
            return False
        raw, plugin = scores.values, self.plugin
        if plugin.bounds(self._chosen(feasible.mask, feasible.count), scores.data) != bounds:
            return False
        self._shown = self._showing(bounds)
        at = list(rows)
        final[at] = plugin.scaled(raw[at], bounds, scores.data) * self.weight
        return True

    def _make_few(self, rows: Rows, final: I64 | int) -> bool:
        """Update a few rows if other rows have the bounds and these lie between them. False if that
        is not so.
        """
        if self._shown is None or len(rows) > ROWS_FEW or not self._shown.isdisjoint(rows):
            return False
        scores, plugin, (least, largest) = self.scores, self.plugin, self._bounds
        raw = scores.values[list(rows)]
        for row, score in zip(rows, raw.tolist(), strict=True):
            if not least <= score <= largest and self._feasible.has(row):
                return False
        points = plugin.scaled(raw, self._bounds, scores.data) * self.weight
        if isinstance(final, int):
            return bool((points == final).all())
        final[list(rows)] = points
        return True

    def _showing(self, bounds: Any) -> frozenset[int] | None:
        """For each bound a feasible row with this score; None if they are not scores."""
        raw, feasible = self.scores.values, self._feasible
        if not isinstance(bounds, tuple):
            return None
        rows = [int(((raw == bound) & feasible.mask).argmax()) for bound in bounds]
        shown = all(
            feasible.has(row) and raw.item(row) == bound
            for row, bound in zip(rows, bounds, strict=True)
        )
        return frozenset(rows) if shown else None

    def _normalize(self, feasible: Mask, count: int) -> tuple[I64 | int, Any]:
        """(final points, their bounds)."""
        scores, plugin = self.scores, self.plugin
        if scores.is_uniform and not plugin.reads_feasible:
            return scores.normal_of_all() * self.weight, None
        raw = scores.values
        if not count:
            return np.zeros(len(raw), dtype=np.int64), None
        chosen = self._chosen(feasible, count)
        bounds = plugin.bounds(chosen, scores.data)
        if bounds is not None and not plugin.is_checked:
            if isinstance(bounds, tuple) and bounds[0] == bounds[1] == chosen.min():
                return int(plugin.scaled(chosen[:1], bounds, scores.data)[0]) * self.weight, bounds
            return plugin.scaled(raw, bounds, scores.data) * self.weight, bounds
        normal = plugin.normalize(chosen, scores.data)
        if plugin.is_checked:
            self._check(normal)
        final = np.zeros(len(raw), dtype=np.int64)
        final[feasible] = normal * self.weight
        return final, None

    def _chosen(self, feasible: Mask, count: int) -> I64:
        """Raw scores of the feasible rows."""
        raw = self.scores.values
        return raw if count == len(raw) else raw[feasible]

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


#: The entry of an infeasible row.
NOT_FEASIBLE: Final = np.iinfo(np.int64).min

#: Entries per block. Measured at 5,000 and 100,000 rows: 128 to 512 are within a microsecond of
#: each other.
BLOCK_ROWS: Final = 256


@lru_cache(maxsize=8)
def _starts(entries: int) -> I64:
    """The first entry of each block."""
    return np.arange(0, entries, BLOCK_ROWS)


class Peaks:
    """The peaks of `totals`; call `renew` after changes."""

    def __init__(self, totals: I64) -> None:
        self._totals = totals
        self._levels: list[I64] = []
        self._make()

    def renew(self, rows: Iterable[int]) -> None:
        """Update after changes of these rows."""
        below, entries = self._totals, rows
        for level in self._levels:
            blocks = {entry // BLOCK_ROWS for entry in entries}
            for block in blocks:
                start = block * BLOCK_ROWS
                level[block] = np.maximum.reduce(below[start : start + BLOCK_ROWS])
            entries, below = blocks, level

    def choose(self, seed: int) -> int:
        """The row with the largest entry; the seed decides ties.

        First one of the blocks with such a row is drawn, from the top down, then a row.
        """
        start, level = 0, len(self._levels) - 1
        tops = self._tops(level, 0)
        best = tops[tops.argmax()]
        while level >= 0:
            tied = (tops == best).nonzero()[0]  # flatnonzero takes four times as long
            place = draw_above(seed, level, len(tied)) if level else draw(seed, len(tied))
            start = (start + tied.item(place)) * BLOCK_ROWS
            level -= 1
            tops = self._tops(level, start)
        tied = (tops == best).nonzero()[0]
        within: int = tied.item(draw_again(seed, len(tied)))
        return start + within

    def first(self, count: int) -> list[tuple[int, int]]:
        """(row, total) of the best rows, best first; fewer if fewer are feasible.

        They are in as many blocks, those with the largest peaks: few rows are scanned, once per
        result, since partial sorts are slow if many rows are equal.
        """
        blocks = np.sort(np.argsort(self._tops(0), kind="stable")[-count:])
        starts = (blocks * BLOCK_ROWS).tolist()
        rest = np.concatenate([self._tops(-1, start) for start in starts])
        found = list[tuple[int, int]]()
        while len(found) < min(count, len(rest)):
            at = int(rest.argmax())
            total = rest.item(at)
            if total == NOT_FEASIBLE:
                break
            rest[at] = NOT_FEASIBLE
            found.append((starts[at // BLOCK_ROWS] + at % BLOCK_ROWS, total))
        return found

    def _make(self) -> None:
        below = self._totals
        while not self._levels or len(below) > BLOCK_ROWS:
            below = np.maximum.reduceat(below, _starts(len(below)))
            self._levels.append(below)

    def _tops(self, level: int, start: int | None = None) -> I64:
        """A block of a level, or the whole level; level -1 has the rows."""
        entries = self._levels[level] if level >= 0 else self._totals
        return entries if start is None else entries[start : start + BLOCK_ROWS]


def drawn(seed: int, tied: Indices, height: int) -> int:
    """Of rows with the largest entry, in order, the one that `Peaks.choose` would return."""
    if len(tied) == 1:
        return tied.item()
    level, span = 0, BLOCK_ROWS
    while -(-height // span) > BLOCK_ROWS:
        level, span = level + 1, span * BLOCK_ROWS
    while level >= 0:
        blocks = tied // span
        begins = [0, *((blocks[1:] != blocks[:-1]).nonzero()[0] + 1).tolist(), len(tied)]
        count = len(begins) - 1
        place = draw_above(seed, level, count) if level else draw(seed, count)
        tied = tied[begins[place] : begins[place + 1]]
        level, span = level - 1, span // BLOCK_ROWS
    return tied.item(draw_again(seed, len(tied)))


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
        noughts: tuple[str, ...] = (),
        floor: int = 0,
    ) -> None:
        """`noughts` are scorers that score these pods 0 on every node. `floor` is added for every
        row: 1 if no scorer is enabled, as upstream.
        """
        super().__init__(cluster.nodes, _aspects_of(points), feasible.turned)
        self.points = points
        #: points of a row that may depend on other rows
        self._relative = [part for part in points if part.may_be_relative]
        self.noughts = noughts
        self._feasible = feasible
        self._floor = floor
        self._moves = Moves(cluster)
        self._mask_seen = -1
        self._versions: list[PointsVersion] = []
        #: bits of `Moves` -> the points that depend on them
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
        #: for the history of decisions: the best nodes of the last search, and the number of
        #: decisions since
        self.best: Any = None
        self.records = 0

    def of(self, pod: PodInfo) -> I64:
        """The ranking over the feasible rows; the mask is up to date."""
        feasible = self._feasible
        moved = self._moves.look()
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
        self._moves.settle()
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
            self._asked = prepared, (*scorers, *self.noughts)
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
        base, varied, logs = self._floor, [], [self._feasible.turned]
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
