"""Shared work of equal pods: which nodes a class of pods fits on, and how good each is.

One `ClassState` per profile and class of pods. It combines the kept answers of all filters into a
mask of feasible rows, and those of all scorers into a ranking, and after a decision touches only
what changed: an equal pod costs the rows of the nodes that changed since, and one search for the
largest entry.

    filters    KeptVerdict.codes ─┐
    PreFilter  narrowed rows ─────┴─> feasible bool[N]     judge, codes: the first rejecting plugin
    scorers    WeightedPoints.values ──sum──> total int64[N] ──where feasible──> ranking int64[N]

Rows that are not feasible rank as `NOT_FEASIBLE`.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.kept import KeptVerdict, changed_rows, narrowed_rows
from asched.core.framework.points import FilterPlugin
from asched.core.framework.status import Code, Status, unresolvable
from asched.core.framework.weighted import PointError, WeightedPoints
from asched.core.state.nodes import Aspect
from asched.core.state.pods import PodInfo

if TYPE_CHECKING:
    from asched.core.framework.class_cache import ClassCache

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NOT_FEASIBLE: Final = np.iinfo(np.int64).min


class PreFilterOutcome:
    """What PreFilter as a whole came to."""

    __slots__ = ("absent", "plugins", "ran", "rejection", "rows")

    def __init__(self) -> None:
        self.rejection: Status | None = None
        #: the only rows left, None for all
        self.rows: set[int] | None = None
        #: why the others are out
        self.absent: Status | None = None
        #: plugins whose PreFilter ran before the step ended
        self.ran: set[str] = set()
        #: plugins that narrowed or rejected
        self.plugins: frozenset[str] = frozenset()


def _no_common_name(narrowing: dict[str, frozenset[str]]) -> Status | None:
    """The rejection if the name sets of PreFilter have nothing in common."""
    if frozenset.intersection(*narrowing.values()):
        return None
    if len(narrowing) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    listed = " ".join(sorted(narrowing))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")


class ClassState:
    """The kept verdicts and scores of one class. Valid for the pod that was refreshed last."""

    def __init__(self, cache: "ClassCache", pod: PodInfo) -> None:
        self._cluster = cache.cluster
        self._profile = cache.profile
        self._work = cache.work
        self.verdicts = [cache.verdict(index, pod) for index in range(len(cache.profile.filters))]
        self._by_plugin = {id(v.plugin): v for v in self.verdicts}
        self.scores = [
            WeightedPoints(cache.scores(index, pod), scorer)
            for index, scorer in enumerate(cache.profile.scorers)
        ]
        self.outcome = PreFilterOutcome()
        self.active: list[KeptVerdict] = []
        self.feasible: Mask = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        self.ranking: I64 = np.zeros(0, dtype=np.int64)
        self.total: I64 = np.zeros(0, dtype=np.int64)
        self._seen_versions: tuple[tuple[int, int], ...] = ()
        self._narrowed: set[int] | None = None
        self._cursor = -1
        self._feasible_version = 0
        self._changed: I32 | None = None  # rows combined in the last pass; None: all
        self._ranked_version = -1

    # --- filters ---------------------------------------------------------------------------------

    def pre_filter(self, pod: PodInfo) -> PreFilterOutcome:
        """Run the PreFilter half of every plugin whose answer is old, and fold the answers."""
        outcome = PreFilterOutcome()
        kept_rejection: Status | None = None
        narrowing: dict[str, frozenset[str]] = {}
        self.active = []
        pre_filtered: set[int] = set()
        for plugin in self._profile.pre_filters:
            verdict = self._by_plugin.get(id(plugin))
            outcome.ran.add(plugin.name)
            if verdict is None:
                result = plugin.pre_filter(pod)
            else:
                result = verdict.prepare(pod, self._cluster)
                pre_filtered.add(id(verdict))
            status = result.status
            if status.is_success:
                if verdict is not None:
                    self.active.append(verdict)
                if result.node_names is not None:
                    narrowing[plugin.name] = result.node_names
                    clash = _no_common_name(narrowing)
                    if clash is not None:
                        outcome.rejection = clash
                        outcome.plugins = frozenset(narrowing)
                        self.outcome = outcome
                        return outcome
            elif status.code is Code.UNSCHEDULABLE:
                kept_rejection = status.by(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                outcome.rejection = status.by(plugin.name)
                outcome.plugins = frozenset((plugin.name,))
                self.outcome = outcome
                return outcome
            elif status.code is not Code.SKIP:
                raise PointError(f'running PreFilter plugin "{plugin.name}": {status.message}')
        if kept_rejection is not None:
            outcome.rejection = kept_rejection
            outcome.plugins = frozenset((kept_rejection.plugin,))
        self._order_active(pod, pre_filtered)
        if narrowing:
            names = frozenset.intersection(*narrowing.values())
            outcome.rows = narrowed_rows(self._cluster, names)
            listed = " ".join(sorted(narrowing))
            outcome.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")
            outcome.plugins = frozenset(narrowing)
        self.outcome = outcome
        return outcome

    def _order_active(self, pod: PodInfo, pre_filtered: set[int]) -> None:
        """Active filters in profile order: those without a PreFilter half are never skipped."""
        prepared = {id(verdict) for verdict in self.active}
        self.active = []
        for verdict in self.verdicts:
            if id(verdict) not in pre_filtered:
                verdict.prepare(pod, self._cluster)
                self.active.append(verdict)
            elif id(verdict) in prepared:
                self.active.append(verdict)

    def refresh(self, pod: PodInfo) -> None:
        """Bring `feasible` up to date; `pre_filter` has run and did not reject."""
        nodes = self._cluster.nodes
        rows = changed_rows(self._cluster, self._cursor, Aspect.ALL) if self._cursor >= 0 else None
        for verdict in self.active:
            verdict.refresh(pod, self._cluster, self._work)
        versions = tuple((id(v), v.full_version) for v in self.active)
        if (
            rows is None
            or versions != self._seen_versions
            or self.outcome.rows != self._narrowed
            or len(self.feasible) != nodes.height
        ):
            self._combine_all()
            self._seen_versions = versions
            self._narrowed = self.outcome.rows
            self._changed = None
        else:
            self._combine_rows(rows)
        self._cursor = nodes.log.end
        self._end_on_errors(pod)

    def _end_on_errors(self, pod: PodInfo) -> None:
        """A filter that failed on a row it was reached on fails the attempt. Raises PointError."""
        live = self._cluster.nodes.columns.read("live")
        for position, verdict in enumerate(self.active):
            plugin = verdict.plugin
            if plugin.errors_from is None:
                continue
            for row in np.flatnonzero(verdict.codes >= plugin.errors_from):
                narrowed_out = self.outcome.rows is not None and row not in self.outcome.rows
                earlier = any(other.codes[row] for other in self.active[:position])
                if live[row] and not narrowed_out and not earlier:
                    said = plugin.explain(pod, int(verdict.codes[row])).message
                    raise PointError(f'running "{plugin.name}" filter plugin: {said}')

    def _combine_all(self) -> None:
        nodes = self._cluster.nodes
        height = nodes.height
        feasible: Mask = nodes.columns.read("live")[:height].copy()
        if self.outcome.rows is not None:
            narrowed = np.zeros(height, dtype=np.bool_)
            narrowed[list(self.outcome.rows)] = True
            feasible &= narrowed
        for verdict in self.active:
            feasible &= verdict.codes == 0
        if len(feasible) != len(self.feasible) or not np.array_equal(feasible, self.feasible):
            self._feasible_version += 1
        self.feasible = feasible
        self.feasible_count = int(np.count_nonzero(feasible))

    def _combine_rows(self, rows: I32) -> None:
        if not len(rows):
            return
        if self._changed is not None:
            merge = len(self._changed) > 0
            self._changed = np.union1d(self._changed, rows).astype(np.int32) if merge else rows
        live = self._cluster.nodes.columns.read("live")
        if len(rows) == 1:
            row = int(rows[0])
            fits = bool(live[row]) and not any(verdict.codes[row] for verdict in self.active)
            if fits and self.outcome.rows is not None:
                fits = row in self.outcome.rows
            if fits != self.feasible[row]:
                self.feasible[row] = fits
                self.feasible_count += 1 if fits else -1
                self._feasible_version += 1
            return
        now: Mask = live[rows]
        if self.outcome.rows is not None:
            now &= np.isin(rows, list(self.outcome.rows))
        for verdict in self.active:
            now &= verdict.codes[rows] == 0
        before = self.feasible[rows]
        if not np.array_equal(before, now):
            self.feasible[rows] = now
            self.feasible_count += int(np.count_nonzero(now)) - int(np.count_nonzero(before))
            self._feasible_version += 1

    def data_of(self, plugin: str) -> Any:
        """What a plugin's PreFilter prepared; None if it has no such half."""
        for verdict in self.verdicts:
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

    # --- scores ----------------------------------------------------------------------------------

    def rank(self, pod: PodInfo, feasible: Mask | None = None) -> I64:
        """int64[N]: the total of each feasible row, NOT_FEASIBLE elsewhere.

        `feasible` restricts the kept set for this attempt alone (nominated pods, extenders,
        sampling); nothing of such a ranking is kept.
        """
        mask = self.feasible if feasible is None else feasible
        version = (self._feasible_version, id(self)) if feasible is None else None
        rows = self._changed
        rebuilt = False
        for points in self.scores:
            rebuilt |= points.refresh(pod, self._cluster, mask, version, rows, self._work)
        if feasible is not None:
            total = self._sum()
            self._ranked_version = -1
            return np.where(mask, total, NOT_FEASIBLE)
        if (
            rebuilt
            or rows is None
            or self._ranked_version < 0
            or len(self.ranking) != self._cluster.nodes.height
        ):
            self.total = self._sum()
            self.ranking = np.where(mask, self.total, NOT_FEASIBLE)
        elif len(rows):
            part = np.zeros(len(rows), dtype=np.int64)
            for points in self.scores:
                if points.is_active:
                    part += points.values[rows]
            if not self.scores:
                part += 1
            self.total[rows] = part
            self.ranking[rows] = np.where(mask[rows], part, NOT_FEASIBLE)
        self._ranked_version = self._feasible_version
        self._changed = _NOTHING
        return self.ranking

    def _sum(self) -> I64:
        height = self._cluster.nodes.height
        if not self.scores:
            return np.ones(height, dtype=np.int64)
        total = np.zeros(height, dtype=np.int64)
        for points in self.scores:
            if points.is_active:
                total += points.values
        return total


_NOTHING: Final[I32] = np.zeros(0, dtype=np.int32)
