"""Search for the node to make room on: cached prospects, the choice, or why there is none.

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

Bounds  BYTES_MAX of cached prospects; the least recently used are dropped.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/preemption (DryRunPreemption)
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, Aspect, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.framework.cached_trial import cached
from asched.core.framework.order_free import POD_PLACE, takes_of
from asched.core.framework.preemption_trial import Candidate, Trial
from asched.core.framework.rejection import Rejection, explained
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.draw import draw
from asched.core.framework.results.nominated_amounts import Layer, wanted_by
from asched.core.framework.results.pods_read import is_blind
from asched.core.framework.status import Code, Status
from asched.core.model.arrays import I32, I64, Mask
from asched.core.model.lru import Lru
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.cost import Cost, cheapest, cost_of
from asched.core.preemption.pods_by_priority import ASPECTS, PodsByPriority
from asched.core.preemption.victims import (
    NO_LOWER_PODS,
    NO_VICTIMS,
    AmountsFilter,
    DryRun,
    NominatedRequests,
    dry_run,
    suppose,
)

#: Limit for all of them, as far as they grow with the cluster ...
BYTES_MAX: Final = 64 << 20
#: ... bytes for a row (outcome, costs, codes), and for a potential victim.
ROW_BYTES, POD_BYTES = 56, 16
#: ... and, for a row and a resource, for nominated requests: each refers to the layer it last saw,
#: which may have no other user any more ...
LAYER_BYTES: Final = 8
#: ... and for everything else ...
OWN_BYTES: Final = 64 << 10
#: ... but never fewer prospects than this.
PROSPECTS_MIN: Final = 4
#: Rows tried before checking whether they are enough, if there is a limit.
BLOCK: Final = 64
#: Upstream's reason for nodes that are no candidates.
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class Limit(NamedTuple):
    """How many candidates are enough: the larger of a share of the nodes and a number."""

    percentage: int
    number: int

    def of(self, count: int) -> int:
        return min(max(count * self.percentage // 100, self.number), count)


class Findings(NamedTuple):
    """The open rows int64[M] with their prospects."""

    prospects: "Prospects"
    open: I64
    #: every row that was tried
    tried: I64


class VictimSearch:
    """One per plugin. `limit` None: upstream's own, which only bounds cost."""

    def __init__(
        self, cluster: Cluster, limit: Limit, budgets: Budgets, *, is_restricted: bool
    ) -> None:
        self._cluster = cluster
        self._limit = limit
        self._is_restricted = is_restricted
        self._pods_by_priority = cluster.singleton(PodsByPriority)
        self._budgets = budgets
        self._parts = cluster, self._pods_by_priority, budgets
        self._cached: Lru[Hashable, Prospects] = Lru(PROSPECTS_MIN)

    def find(
        self,
        pod: PodInfo,
        rejection: Rejection,
        trial: Trial,
        spared: I64,
        *,
        with_empty: bool = False,
    ) -> Findings:
        """Try the rows that were rejected for a reason that evicting pods may resolve, except
        `spared` ones. `with_empty`: rows without victims, which an extender rejected, are open as
        well.
        """
        rows = rejection.candidates
        if len(spared):
            rows = np.setdiff1d(rows, spared)
        is_fresh = rejection.pre_filter is None
        prospects = self._prospects(pod, trial, is_fresh=is_fresh)
        blocked = self._blocked(pod, prospects, rows, trial)
        if is_fresh and isinstance(prospects, TrialProspects):
            self._close_by_amounts(pod, rows, prospects, trial)
        is_costly = isinstance(prospects, TrialProspects) and len(rows) > EXHAUSTIVE_MAX
        if self._is_restricted or is_costly:
            self._try_some(pod, rows, blocked, prospects, trial)
            outcome = prospects.outcome[rows]
        else:
            outcome = prospects.tried(pod, rows, trial)
        is_open = outcome == OPEN
        if with_empty:
            is_open |= outcome == NO_NEED
        return Findings(prospects, rows[is_open & ~blocked], rows)

    def is_hopeless(self, pod: PodInfo, trial: Trial) -> bool:
        """Whether amounts alone show that evicting pods helps on no row, whatever other filters
        say. The result for a row is shared by all pods with the same requests, until the row
        changes.
        """
        if cached(trial).state.outcome.rejection is not None or self._is_restricted:
            return False
        prospects = self._of_amounts(pod, trial)
        rows = _large_enough(pod, prospects.verdicts, self._cluster.nodes).nonzero()[0]
        outcome = prospects.tried(pod, rows, trial)
        return not ((outcome == OPEN) | (outcome == NO_NEED)).any()

    def on_row(self, pod: PodInfo, fit: AmountsFilter, more: NominatedRequests) -> DryRun:
        """The victims on a placed pod's own row, by one filter of amounts. `more`: what counts
        there in addition to the placed pods.
        """
        self._budgets.catch_up()
        self._pods_by_priority.catch_up(in_one_go=True)
        pods = self._pods_by_priority.pods(pod.row)
        steps = ROW_STEPS + POD_STEPS * len(pods)
        self._budgets.find(pods)
        self._cluster.budget.note(steps + self._budgets.steps_for(pods))
        rows = np.array((pod.row,))
        found = suppose(pod, rows, (fit,), *self._parts, more)
        if not found.lower[0]:
            return NO_LOWER_PODS
        if not len(found.some):
            return DryRun((), 0, explained(fit.plugin, pod, int(found.codes[0][0])))
        slots = found.victims[:, 0].nonzero()[0].tolist()
        return DryRun(tuple([pods[slot] for slot in slots]), int(found.costs[0, 0]), None)

    def best(self, pod: PodInfo, findings: Findings, trial: Trial) -> Candidate:
        """The candidate with the lowest cost; there is one."""
        tied = cheapest(findings.prospects.costs, findings.open)
        row = int(tied[draw(trial.seed, len(tied))])
        return findings.prospects.candidate(pod, row, trial)

    def all(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, Candidate]:
        """Every candidate with its victims, by node name."""
        found = (findings.prospects.candidate(pod, row, trial) for row in findings.open.tolist())
        return {candidate.node: candidate for candidate in found}

    def some(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, Candidate]:
        """As many candidates as upstream would pass to an extender."""
        count = self._limit.of(len(findings.tried))
        start = draw(trial.seed, max(len(findings.open), 1))
        rows = np.roll(findings.open, -start)[:count]
        return self.all(pod, findings._replace(open=rows), trial)

    def errors(self, pod: PodInfo, findings: Findings, trial: Trial) -> list[str]:
        """Errors of filters."""
        rejections = findings.prospects.rejections(pod, findings.tried, trial)
        return [
            f'running "{status.plugin}" filter plugin: {status.message}'
            for status, _ in rejections
            if status.code is Code.ERROR
        ]

    def without_victims(self, pod: PodInfo, findings: Findings, trial: Trial) -> list[str]:
        """The names of nodes on which the pod fits without victims: another plugin, or an extender,
        had rejected them.
        """
        rows = findings.tried[findings.prospects.outcome[findings.tried] == NO_NEED]
        blocked = self._blocked(pod, findings.prospects, rows, trial)
        nodes = self._cluster.nodes.node_at
        return [node.name for row in rows[~blocked].tolist() if (node := nodes[row]) is not None]

    def reasons(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, int]:
        """Reason -> number of nodes, for the nodes that were tried."""
        counts: dict[str, int] = {}
        for status, number in findings.prospects.rejections(pod, findings.tried, trial):
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + number
        return counts

    # --- inside ----------------------------------------------------------------------------------

    def _prospects(self, pod: PodInfo, trial: Trial, *, is_fresh: bool) -> "Prospects":
        """Cached prospects of preemptors like this one, brought up to date."""
        state = cached(trial).state
        if is_fresh and state.outcome.is_plain(pod):
            return self._of_amounts(pod, trial)
        key = (state.number, pod.cls.key)
        prospects = self._cached.get(key) if is_fresh else None
        if prospects is None:
            prospects = self._keep(key, TrialProspects(*self._parts))
        self._bring_up(prospects, pod, trial, state.active)
        return prospects

    def _of_amounts(self, pod: PodInfo, trial: Trial) -> "PlainProspects":
        """Prospects by filters that read only amounts, shared by all pods with the same
        requests.
        """
        verdicts = [v for v in cached(trial).state.active if v.plugin.reads_only_amounts]
        key = (pod.pod.priority, *map(id, verdicts))
        prospects = self._cached.get(key)
        if not isinstance(prospects, PlainProspects):
            prospects = PlainProspects(*self._parts, verdicts)
            self._keep(key, prospects)
        self._bring_up(prospects, pod, trial, verdicts)
        return prospects

    def _bring_up(
        self,
        prospects: "Prospects",
        pod: PodInfo,
        trial: Trial,
        verdicts: Sequence[CachedVerdict],
    ) -> None:
        self._budgets.catch_up()
        self._pods_by_priority.catch_up()
        nominated = cached(trial).nominated_pods.nominated_amounts
        prospects.refresh(verdicts, nominated.layer(pod.pod.priority))
        prospects.keep_apart(nominated.row_of(pod))

    def _keep(self, key: Hashable, prospects: "Prospects") -> "Prospects":
        cluster = self._cluster
        capacity = cluster.nodes.columns.capacity
        each = capacity * ROW_BYTES + len(cluster.placed) * POD_BYTES
        each += OWN_BYTES + LAYER_BYTES * cluster.nodes.columns.size_of("R") * capacity
        self._cached.size_max = max(PROSPECTS_MIN, BYTES_MAX // each)
        self._cached.put(key, prospects)
        return prospects

    def _close_by_amounts(
        self, pod: PodInfo, rows: I64, prospects: "TrialProspects", trial: Trial
    ) -> None:
        """Skip the trial of rows that fail by amounts even without victims, provided that no
        earlier filter considers pods in another way.
        """
        active = cached(trial).state.active
        before = list(takewhile(lambda v: not v.plugin.reads_only_amounts, active))
        unknown = rows[prospects.outcome[rows] == UNKNOWN]
        if not len(unknown) or not self._cluster.priorities.are_below(pod.pod.priority):
            return
        if not all(is_blind(verdict.plugin, pod) for verdict in before):
            return
        plain = self._of_amounts(pod, trial)
        closed = unknown[plain.tried(pod, unknown, trial) == REJECTED]
        for status, members in plain.rejecting(pod, closed, active[: len(before) + 1]):
            prospects.close(members, status)

    def _blocked(self, pod: PodInfo, prospects: "Prospects", rows: I64, trial: Trial) -> Mask:
        """Rows that a filter which ignores pods rejects too, after the filter that rejected them
        first.
        """
        blocked = np.zeros(len(rows), dtype=np.bool_)
        if isinstance(prospects, PlainProspects):
            after = False
            for verdict in cached(trial).state.active:
                if after and not verdict.is_uniform and is_blind(verdict.plugin, pod):
                    blocked |= verdict.codes[rows] != 0
                after |= verdict.plugin.reads_only_amounts
        return blocked

    def _try_some(
        self,
        pod: PodInfo,
        rows: I64,
        blocked: Mask,
        prospects: "Prospects",
        trial: Trial,
    ) -> None:
        """Try rows, from one chosen by the seed on, until there are enough candidates."""
        wanted = self._limit.of(len(rows))
        start = draw(trial.seed, max(len(rows), 1))
        rotated = np.roll(rows, -start)
        free = np.roll(~blocked, -start)
        unknown = rotated[prospects.outcome[rotated] == UNKNOWN]
        if not self._cluster.priorities.are_below(pod.pod.priority):
            prospects.evaluate(pod, unknown, trial)
            return
        while True:
            is_open = (prospects.outcome[rotated] == OPEN) & free
            kind = prospects.costs[0, rotated[is_open]] == 0
            if (kind.any() and len(kind) >= wanted) or not len(unknown):
                return
            size = min(BLOCK, max(wanted - len(kind), 1))
            prospects.evaluate(pod, unknown[:size], trial)
            unknown = unknown[size:]


def _large_enough(pod: PodInfo, verdicts: Sequence[CachedVerdict], nodes: NodeTable) -> Mask:
    """bool[N]: the rows on which the pod would fit if they were empty, as far as these
    filters say.
    """
    fits: Mask = nodes.columns.read("live")[: nodes.height]
    offered = nodes.columns.read("allocatable")
    for at, amount in takes_of([verdict.plugin for verdict in verdicts], pod).items():
        if at != POD_PLACE:
            fits = fits & (offered[at, : nodes.height] >= amount)
    return fits


#: Rows that are tried one by one before upstream's limit applies. A trial takes about 0.5 ms.
EXHAUSTIVE_MAX: Final = 512
#: Slots times rows per pass: keeps the arrays of a pass within the cache.
CELLS_MAX: Final = 1 << 15
#: A pod counts as so many slots where budgets have to be checked for each pod: then a part has a
#: thousand pods, which take some 30 ms.
BUDGET_CELLS: Final = 32

#: Budgets that may cover pods of one row before the row follows all budgets.
BUDGETS_PER_ROW_MAX: Final = 64
#: Steps of the budget of work for a row, for each pod on it, and for each pod that is removed and
#: put back by trial: some 30 µs with filters of amounts and ports, more with volumes.
ROW_STEPS: Final = 1
POD_STEPS: Final = 0.1
TRIAL_STEPS: Final = 5
#: Rows per step where no pod of the whole cluster has lower priority.
ROWS_A_STEP: Final = 100

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
        #: budget -> rows with pods it covers; the rows of "" have so many budgets that each counts
        self._rows_of: dict[str, set[int]] = {}
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
            (0, self.cluster.counts_outside_trials if counts else 0),
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

    def rejections(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterator[tuple[Status, int]]:
        """(reason, number of rows) of rows on which evicting does not help."""
        has_none = self.outcome[rows] == NO_POD_BELOW
        if has_none.any():
            yield NO_VICTIMS.status, int(np.count_nonzero(has_none))
        yield from self._rejected(pod, rows[~has_none], trial)

    @abstractmethod
    def _rejected(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:
        """The same for rows with pods of lower priority."""

    @abstractmethod
    def _forget(self) -> None:
        """Invalidate all rows."""

    def _changed(self, layer: Layer) -> set[int] | None:
        """Rows that may have changed; None if unknown."""
        rows = self.cluster.nodes.log.rows(self._cursor, self.aspects)
        nominated = layer.log.rows(self._seen, ALL_ASPECTS)
        budgets = self.budgets.log.since(self._budgets_seen)
        if rows is None or nominated is None or budgets is None:
            return None
        keys = {key for _, key in budgets}
        return {*rows, *nominated}.union(
            *(self._rows_of.get(key, ()) for key in ({"", *keys} if keys else ()))
        )

    def _note_budgets(self, rows: Iterable[int], priority: int) -> None:
        """Record which budgets cover pods on which rows."""
        if not len(self.budgets):
            return
        for row in rows:
            lower = (i for i in self.pods_by_priority.pods(row) if i.pod.priority < priority)
            keys = self.budgets.keys_for(lower)
            for key in keys if len(keys) <= BUDGETS_PER_ROW_MAX else ("",):
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
        weight = BUDGET_CELLS if len(self.budgets) else 1
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

    def _rejected(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:
        for status, members in self.rejecting(pod, rows, cached(trial).state.active):
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
                yield explained(verdict.plugin, pod, code), rows[codes == code]
            rows = rows[codes == 0]

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
        parts = self.cluster, self.pods_by_priority, self.budgets
        more = self._nominated_requests(pod, rows, trial)
        found = suppose(pod, rows, self.verdicts, *parts, more)
        for kept, codes in zip(self._codes, found.codes, strict=True):
            kept[rows] = codes
        outcome = np.where(found.lower == 0, NO_POD_BELOW, REJECTED)
        if len(found.some):
            outcome[found.some] = np.where(found.victims.any(axis=0), OPEN, NO_NEED)
            self._note_victims(rows[found.some], found.victims)
            self.costs[:, rows[found.some]] = found.costs
        self.outcome[rows] = outcome

    def _note_victims(self, rows: I64, victims: Mask) -> None:
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
    _runs: dict[int, DryRun]

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
            run = self._runs[row] = dry_run(pod, row, lower, trial, self.budgets)
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

    def _rejected(self, pod: PodInfo, rows: I64, trial: Trial) -> Iterable[tuple[Status, int]]:  # noqa: ARG002
        statuses = [self._runs[row].status for row in rows.tolist()]
        return Counter(status for status in statuses if status is not None).items()

    def _forget(self) -> None:
        self._runs = {}


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
