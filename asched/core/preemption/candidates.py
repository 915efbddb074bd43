"""Candidate nodes: where evicting pods would make room, cached for equal preemptors.

The prospects of a row (its outcome, and the cost of evicting there) are valid as long as nothing
there changes: pods, nominations, budgets that cover its pods, the node itself. The next pod of the
same priority with the same requirements tries only the changed rows, so that thousands of equal
preemptors cost one pass over the cluster and a few rows each.

PlainProspects   the class's filters consider pods only by their amounts: many rows at a time,
                 shared by all classes with the same requests and priority
TrialProspects   any class: one row at a time, by trial

Upstream stops at a tenth of the nodes (at least 100), starting at a random one, to save time. Here
all are tried, unless the arguments were set to something else or each row needs a trial and there
are more than EXHAUSTIVE_MAX of them.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption (DryRunPreemption)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.framework.fitting import cached
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.nominated import Layer, wanted_by
from asched.core.framework.status import Status
from asched.core.framework.trial import Candidate, Trial
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.pods_by_priority import ASPECTS, PodsByPriority
from asched.core.preemption.victims import (
    NO_VICTIMS,
    Cost,
    DryRun,
    NominatedRequests,
    VictimTrial,
    cost_of,
    dry_run,
    suppose,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Rows that are tried one by one before upstream's limit applies. A trial takes about 0.5 ms.
EXHAUSTIVE_MAX: Final = 512
#: Slots times rows per pass: keeps the arrays of a pass within the cache.
CELLS_MAX: Final = 1 << 15
#: A pod counts as so many slots where budgets have to be checked for each pod: then a part has a
#: thousand pods, which take some 30 ms.
SPOKEN_FOR_CELLS: Final = 32

#: Budgets that may cover pods of one row before the row follows all budgets.
BUDGETS_PER_ROW_MAX: Final = 64
#: Steps of the budget of work for a row, for each pod on it, and for each pod that is removed and
#: put back by trial: some 30 µs with filters of amounts and ports, more with volumes.
ROW_STEPS: Final = 1
POD_STEPS: Final = 0.1
TRIAL_STEPS: Final = 5
#: Rows per step where no pod of the whole cluster has lower priority.
ROWS_A_STEP: Final = 100

#: The dry run of a row without pods of lower priority.
NO_LOWER_PODS: Final = DryRun((), 0, NO_VICTIMS.status)

#: Outcomes of the dry run of a row.
UNKNOWN, OPEN, NO_POD_BELOW, REJECTED, NO_NEED = range(5)


class Prospects(ABC):
    """`outcome` int8[N] and `costs` int64[5, N] (`Cost`), by row."""

    aspects = ASPECTS

    def __init__(
        self, cluster: Cluster, pods_by_priority: PodsByPriority, budgets: Budgets
    ) -> None:
        self.cluster = cluster
        self.pods_by_priority = pods_by_priority
        self.budgets = budgets
        self.outcome: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self.costs: I64 = np.zeros((len(Cost._fields), 0), dtype=np.int64)
        self._rows_of: dict[str, set[int]] = {}  # budget -> rows with pods it covers
        #: rows with so many budgets that each budget counts as theirs
        self._crowded: set[int] = set()
        self._apart: int | None = None
        self._layer: Layer | None = None
        self._versions: tuple[tuple[int, int], ...] = ()
        self._generation = -1
        self._cursor = self._seen = self._budgets_seen = -1

    def refresh(self, verdicts: Sequence[CachedVerdict], layer: Layer) -> None:
        """Invalidate the rows that changed."""
        counts = any(verdict.plugin.reads_counts for verdict in verdicts)
        versions = (
            *((id(verdict), verdict.full_version) for verdict in verdicts),
            (0, self.cluster.counts_settled if counts else 0),
        )
        same = (
            versions == self._versions
            and layer is self._layer
            and self._generation == self.budgets.generation
            and len(self.outcome) == self.cluster.nodes.columns.capacity
        )
        rows = self._changed(layer) if same else None
        if rows is None:
            capacity = self.cluster.nodes.columns.capacity
            self.outcome = np.zeros(capacity, dtype=np.int8)
            self.costs = np.zeros((len(Cost._fields), capacity), dtype=np.int64)
            self._rows_of.clear()
            self._crowded.clear()
            self._forget()
            self._layer, self._versions = layer, versions
            self._generation = self.budgets.generation
        elif rows:
            self.outcome[list(rows)] = UNKNOWN
        self._cursor, self._seen = self.cluster.nodes.log.end, layer.log.end
        self._budgets_seen = self.budgets.log.end

    def keep_apart(self, row: int | None) -> None:
        """Exclude a row from sharing: this pod is nominated there, and the result is valid for it
        alone.
        """
        for private_row in (self._apart, row):
            if private_row is not None:
                self.outcome[private_row] = UNKNOWN
        self._apart = row

    def tried(self, pod: PodInfo, rows: I64, trial: Trial) -> npt.NDArray[np.int8]:
        """int8[M]: outcomes of these rows; unknown ones are tried."""
        found = self.outcome[rows]
        unknown = rows[found == UNKNOWN]
        if len(unknown):
            self.evaluate(pod, unknown, trial)
            found = self.outcome[rows]
        return found

    @abstractmethod
    def evaluate(self, pod: PodInfo, rows: I64, trial: Trial) -> None:
        """Try rows and record the outcomes. Raises OutOfTurn; outcomes recorded until then are
        kept.
        """

    @abstractmethod
    def candidate(self, pod: PodInfo, row: int, trial: Trial) -> Candidate:
        """The victims on an open row."""

    @abstractmethod
    def rejections(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:
        """(reason, number of rows) of rows on which evicting does not help."""

    @abstractmethod
    def _forget(self) -> None:
        """Invalidate all rows."""

    def _changed(self, layer: Layer) -> set[int] | None:
        """Rows that may have changed; None if unknown."""
        entries = self.cluster.nodes.log.since(self._cursor)
        nominated = layer.log.since(self._seen)
        budgets = self.budgets.log.since(self._budgets_seen)
        if entries is None or nominated is None or budgets is None:
            return None
        rows = {row for row, aspects in entries if aspects & self.aspects}
        rows.update(row for row, _ in nominated)
        if len(budgets):
            rows |= self._crowded
        for _, key in budgets:
            rows |= self._rows_of.get(key, set())
        return rows

    def _note_budgets(self, rows: Iterable[int], priority: int) -> None:
        """Record which budgets cover pods on which rows."""
        if not len(self.budgets):
            return
        for row in rows:
            lower = (i for i in self.pods_by_priority.pods(row) if i.pod.priority < priority)
            keys = self.budgets.keys_for(lower)
            if len(keys) > BUDGETS_PER_ROW_MAX:
                self._crowded.add(row)
                continue
            for key in keys:
                self._rows_of.setdefault(key, set()).add(row)


class PlainProspects(Prospects):
    """For filters that read only amounts: `verdicts` are those of the class.

    `_victims` has the slots of the victims of each open row.
    """

    aspects = ASPECTS | int(Aspect.ALLOCATABLE)

    def __init__(
        self,
        cluster: Cluster,
        pods_by_priority: PodsByPriority,
        budgets: Budgets,
        verdicts: Sequence[CachedVerdict],
    ) -> None:
        super().__init__(cluster, pods_by_priority, budgets)
        self.verdicts = tuple(verdicts)
        self._victims: dict[int, tuple[int, ...]] = {}
        self._codes: list[I32] = []
        for verdict in verdicts:
            self.aspects |= verdict.aspects

    def evaluate(self, pod: PodInfo, rows: I64, trial: Trial) -> None:
        depth = self.budgets.depth
        weight = SPOKEN_FOR_CELLS if len(self.budgets) else 1
        if depth > BUDGETS_PER_ROW_MAX:  # then the parts are small
            weight = max(weight, 2 * depth)
        for part in _parts(rows, self.pods_by_priority.sizes(rows) * weight):
            steps = len(part) * ROW_STEPS + int(self.pods_by_priority.sizes(part).sum()) * POD_STEPS
            for row in part.tolist() if len(self.budgets) else ():
                self.budgets.find(self.pods_by_priority.pods(row))
                steps += self.budgets.steps_for(self.pods_by_priority.pods(row))
            self.cluster.budget.charge(steps)
            self._evaluate(pod, part, trial)
            self._note_budgets(part.tolist(), pod.pod.priority)

    def candidate(self, pod: PodInfo, row: int, trial: Trial) -> Candidate:  # noqa: ARG002
        pods = self.pods_by_priority.pods(row)
        violations = int(self.costs[0, row])
        victims = tuple(pods[slot] for slot in self._victims.get(row, ()))
        return Candidate(_name(trial, row), row, victims, violations)

    def rejections(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:
        has_none = self.outcome[rows] == NO_POD_BELOW
        if has_none.any():
            yield NO_VICTIMS.status, int(np.count_nonzero(has_none))
        for status, members in self.rejecting(pod, rows[~has_none], cached(trial).state.active):
            yield status, len(members)

    def rejecting(
        self, pod: PodInfo, rows: I64, active: Iterable[CachedVerdict]
    ) -> Iterator[tuple[Status, I64]]:
        """(reason, rows) of tried rows, by the first of these filters that rejects each, without
        the less important pods where the filter considers amounts.
        """
        own = {id(v): codes for v, codes in zip(self.verdicts, self._codes, strict=True)}
        for verdict in active:
            if not len(rows):
                return
            codes = own.get(id(verdict), verdict.codes)[rows]
            for code in np.unique(codes[codes != 0]).tolist():
                yield verdict.plugin.explain(pod, code).by(verdict.plugin.name), rows[codes == code]
            rows = rows[codes == 0]

    def _suppose(self, pod: PodInfo, rows: I64, trial: Trial) -> VictimTrial:
        return suppose(
            pod,
            rows,
            self.verdicts,
            self.cluster,
            self.pods_by_priority,
            self.budgets,
            self._nominated_requests(pod, rows, trial),
        )

    def _nominated_requests(
        self, pod: PodInfo, rows: I64, trial: Trial
    ) -> NominatedRequests | None:
        """Requests of nominated pods on the rows, except those of the pod itself."""
        layer = self._layer
        if layer is None or not layer.total or not layer.count[rows].any():
            return None
        amounts, pods = layer.amounts[:, rows], layer.count[rows]
        own = cached(trial).nominated_pods.nominated_amounts.row_of(pod)
        if own is not None and own in rows:
            position = int(np.flatnonzero(rows == own)[0])
            nominated = cached(trial).nominated_pods.nominated_amounts.on(own, pod)
            amounts[:, position] = 0
            pods[position] = len(nominated)
            for index, amount in wanted_by(nominated, self.cluster.nodes).items():
                amounts[index, position] = amount
        return NominatedRequests(amounts, pods)

    def _evaluate(self, pod: PodInfo, rows: I64, trial: Trial) -> None:
        found = self._suppose(pod, rows, trial)
        for kept, codes in zip(self._codes, found.codes, strict=True):
            kept[rows] = codes
        outcome = np.where(found.lower == 0, NO_POD_BELOW, REJECTED)
        if len(found.some):
            outcome[found.some] = np.where(found.victims.any(axis=0), OPEN, NO_NEED)
            self._note_victims(rows[found.some], found.victims)
            self.costs[:, rows[found.some]] = found.costs
        self.outcome[rows] = outcome

    def _note_victims(self, rows: I64, victims: npt.NDArray[np.bool_]) -> None:
        """`victims` bool[K, M] by slot and row."""
        slots = victims.T.nonzero()[1].tolist()
        ends = np.cumsum(victims.sum(axis=0)).tolist()
        start = 0
        for row, end in zip(rows.tolist(), ends, strict=True):
            if end > start:
                self._victims[row] = tuple(slots[start:end])
            start = end

    def _forget(self) -> None:
        self._victims.clear()
        self._codes = [np.zeros(len(self.outcome), dtype=np.int32) for _ in self.verdicts]


class TrialProspects(Prospects):
    """For any class: every filter runs, row by row."""

    aspects = ASPECTS | ALL_ASPECTS

    def __init__(
        self, cluster: Cluster, pods_by_priority: PodsByPriority, budgets: Budgets
    ) -> None:
        super().__init__(cluster, pods_by_priority, budgets)
        self._runs: dict[int, DryRun] = {}

    def evaluate(self, pod: PodInfo, rows: I64, trial: Trial) -> None:
        if not self.cluster.priorities.are_below(pod.pod.priority):
            self.cluster.budget.charge(len(rows) / ROWS_A_STEP)
            self.outcome[rows] = NO_POD_BELOW
            return
        for row in rows.tolist():
            lower = self.pods_by_priority.below(row, pod.pod.priority)
            self.budgets.find(lower)
            steps = ROW_STEPS + TRIAL_STEPS * len(lower) + self.budgets.steps_for(lower)
            self.cluster.budget.charge(steps)
            run = self._runs[row] = (
                dry_run(pod, row, trial, self.budgets) if lower else NO_LOWER_PODS
            )
            if run.status is not None:
                self.outcome[row] = REJECTED
            elif run.victims:
                self.outcome[row] = OPEN
                self.costs[:, row] = cost_of(run.victims, run.violations)
            else:
                self.outcome[row] = NO_NEED
            self._note_budgets((row,), pod.pod.priority)

    def close(self, rows: I64, status: Status) -> None:
        """Record why these rows are no candidates."""
        self.outcome[rows] = REJECTED
        self._runs.update(dict.fromkeys(rows.tolist(), DryRun((), 0, status)))

    def candidate(self, pod: PodInfo, row: int, trial: Trial) -> Candidate:  # noqa: ARG002
        run = self._runs[row]
        return Candidate(_name(trial, row), row, run.victims, run.violations)

    def rejections(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:  # noqa: ARG002
        has_none = self.outcome[rows] == NO_POD_BELOW
        counts: dict[Status, int] = {}
        if has_none.any():
            counts[NO_VICTIMS.status] = int(np.count_nonzero(has_none))
        for row in rows[~has_none].tolist():
            status = self._runs[row].status
            if status is not None:
                counts[status] = counts.get(status, 0) + 1
        yield from counts.items()

    def _forget(self) -> None:
        self._runs.clear()


def _parts(rows: I64, sizes: I64) -> Iterator[I64]:
    """The rows in parts of at most CELLS_MAX slots times rows (or one row), rows of similar size
    together.
    """
    if len(rows) * int(sizes.max(initial=0)) <= CELLS_MAX:
        yield rows
        return
    order = np.argsort(sizes, kind="stable")[::-1]
    rows, sizes = rows[order], sizes[order]
    at = 0
    while at < len(rows):
        step = max(CELLS_MAX // max(int(sizes[at]), 1), 1)
        yield rows[at : at + step]
        at += step


def _name(trial: Trial, row: int) -> str:
    node = trial.cluster.nodes.node_at[row]
    assert node is not None, f"row {row} is a candidate but holds no node"
    return node.name
