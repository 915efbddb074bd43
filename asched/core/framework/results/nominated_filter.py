"""Nominated pods: a node must fit both with and without the pods that wait for it.

A pod that preempted others waits for its nominated node; until it is placed, pods of the same or
lower priority see it there already. So a row with such nominations is judged a second time with
them added (pass 1; the cached results are pass 2), and pass 1 comes first: if it rejects, its words
count.

Only rows that are feasible without them need that for a decision; the others are judged again only
when a rejection must be explained. For a *plain* class, one of whose filters none looks at pods
beyond the amounts they ask for, all rows are judged in one go; otherwise each row is judged by a
trial of its own. Either way the answers are kept for equal pods while nothing touches the row.

Rows whose kubelet has just refused a pod of the same owner, and rows that others bind to as well
and where the pod would not leave them room (`core/state/refusals.py`), are left out in the same
place, for whoever asks where a pod may go. A pod that room was made for takes it.

Bounds  TRIED_MAX classes of the second kind; the one unused for longest goes.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
        (RunFilterPluginsWithNominatedPods)
"""

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.framework.points import CachedPlugin, FilterPlugin
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.nominated_amounts import Layer, NominatedAmounts
from asched.core.framework.results.prepared import PLUGINS_MAX
from asched.core.framework.status import Reason, Status
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import ALL_ASPECTS, Aspect
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

I32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


#: Classes whose trials are kept. A guess: more of them hardly meet nominated pods at a time.
TRIED_MAX: Final = 64


class RefusedRows(NamedTuple):
    """`rows` that nominated pods stand in the way of; those judged by a trial of their own are
    `told`. What the others are told is for `NominatedPods.explain`, if anybody asks.
    """

    rows: Indices
    told: dict[int, Status]


NOBODY_REFUSED: Final = RefusedRows(np.zeros(0, dtype=np.intp), {})
#: Nobody's rule: preemption cannot help, and the pod comes back by itself.
HELD_OFF: Final = Reason(
    "node(s) had refused a pod of the same owner a moment ago", resolvable=False
).status
#: The same for a node on which another scheduler binds.
CONTESTED: Final = Reason(
    "node(s) contested by another scheduler, which is left some room for a moment", resolvable=False
).status
#: What no event ends, only time.
FOR_A_MOMENT: Final = frozenset((HELD_OFF, CONTESTED))


def ignores_pods(plugin: FilterPlugin) -> bool:
    """Whether a filter's answer has nothing to do with the pods that run somewhere."""
    return _ignores_pods(type(plugin))


@lru_cache(PLUGINS_MAX)
def _ignores_pods(plugin: type[FilterPlugin]) -> bool:
    return (
        plugin.depends_on is not None
        and not plugin.depends_on & Aspect.PODS
        and plugin.stamp is CachedPlugin.stamp
    )


def is_plain(pod: PodInfo, state: ClassState) -> bool:
    """Whether pods matter to the class's filters by their amounts at most."""
    outcome = state.outcome
    if outcome.seeing is None:
        outcome.seeing = [
            verdict.plugin
            for verdict in outcome.active
            if not (verdict.plugin.reads_only_amounts or ignores_pods(verdict.plugin))
        ]
    return all(plugin.is_blind_for(pod) for plugin in outcome.seeing)


def is_blind(plugin: FilterPlugin, pod: PodInfo) -> bool:
    """Whether its cached answer for this pod holds whichever pods come or go."""
    return ignores_pods(plugin) or plugin.is_blind_for(pod)


class NominatedPods:
    """Judges rows with their nominated pods added."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self.nominated_amounts = NominatedAmounts(cluster, nominator)
        self._tried: OrderedDict[bytes, TriedRows] = OrderedDict()

    @property
    def are_any(self) -> bool:
        """Whether room is promised to anybody at all."""
        return bool(self._nominator)

    def refused(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        """The feasible rows that are not feasible with their nominated pods, or whose kubelet has
        just refused such a pod.
        """
        found = self._by_nominated(pod, state) if self._nominator else NOBODY_REFUSED
        refusals, now_s = self._cluster.refusals, self._cluster.wall_clock_s
        if refusals.are_none:
            return found
        has = state.mask.has
        told = dict.fromkeys(refusals.crowded(pod, has, now_s), CONTESTED)
        if told and self._nominator:
            own = self.nominated_amounts.row_of(pod)
            told.pop(-1 if own is None else own, None)
        told.update((row, HELD_OFF) for row in refusals.rows(pod.pod, now_s) if has(row))
        if not told:
            return found
        rows = np.union1d(found.rows, np.array(list(told), dtype=np.intp))
        return RefusedRows(rows, {**found.told, **told})

    def _by_nominated(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        if not state.mask.count:
            return NOBODY_REFUSED
        layer = self.nominated_amounts.layer(pod.pod.priority)
        if not layer.total:
            return NOBODY_REFUSED
        height = len(state.feasible)
        marked = state.feasible & (layer.count[:height] > 0)
        if not is_plain(pod, state):
            told = self._try_cached(pod, state, layer, np.flatnonzero(marked).tolist())
            return RefusedRows(np.fromiter(told, dtype=np.intp, count=len(told)), told)
        own, told = self.nominated_amounts.row_of(pod), {}
        if own is not None and own < height and marked[own]:
            marked[own] = False
            told = self._try(pod, state, [own])
        fits: Mask = np.ones(height, dtype=np.bool_)
        for verdict in state.active:
            if verdict.plugin.reads_only_amounts:
                fits &= layer.codes(verdict, pod)[:height] == 0
        rows = (marked & ~fits).nonzero()[0]
        return RefusedRows(np.append(rows, list(told)) if told else rows, told)

    def judge(self, pod: PodInfo, state: ClassState) -> dict[int, Status]:
        """The same in words: row to status."""
        refused = self.refused(pod, state)
        statuses = dict(refused.told)
        layer = self.nominated_amounts.layer(pod.pod.priority)
        for verdict in state.active:
            if verdict.plugin.reads_only_amounts and len(statuses) < len(refused.rows):
                codes = layer.codes(verdict, pod)
                told: dict[int, Status] = {}
                for row in refused.rows.tolist():
                    if row not in statuses and codes[row]:
                        statuses[row] = _told(verdict, pod, int(codes[row]), told)
        return statuses

    def judge_row(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """The rejection of one feasible row by its nominated pods, if they stand in the way."""
        return self._try(pod, state, [row]).get(row)

    def blamed_at(self, pod: PodInfo, state: ClassState, row: int) -> frozenset[str] | None:
        """Who rejects one row of a plain class, with or without its nominated pods; None if nobody
        does.
        """
        for verdict in state.active:
            if verdict.code_of(row):
                return frozenset((verdict.plugin.name,))
        status = self.judge_row(pod, state, row)
        return None if status is None else frozenset((status.plugin,))

    def explain(
        self, pod: PodInfo, state: ClassState, judge: I32, codes: I32, *, in_place: bool = True
    ) -> dict[int, Status]:
        """What pass 1 says of every row with nominated pods, feasible or not.

        With `in_place` it is written over `judge` and `codes` (`attempt.Rejection`) wherever they
        can hold it; the result has the other rows.
        """
        layer = self.nominated_amounts.layer(pod.pod.priority)
        if not layer.total:
            return {}
        rows = layer.rows()
        if state.outcome.rows is not None:
            rows = rows[np.isin(rows, list(state.outcome.rows))]
        if not in_place or not is_plain(pod, state):
            return self._try_cached(pod, state, layer, rows.tolist())
        own = self.nominated_amounts.row_of(pod)
        if own is not None:
            rows = rows[rows != own]
        is_open = np.ones(len(rows), dtype=np.bool_)
        for index, verdict in enumerate(state.active):
            if verdict.plugin.reads_only_amounts:
                found = layer.codes(verdict, pod)[rows]
            elif verdict.is_clear:
                continue
            else:
                found = verdict.codes[rows]
            fresh = is_open & (found != 0)
            judge[rows[fresh]] = index + 1
            codes[rows[fresh]] = found[fresh]
            is_open &= ~fresh
        if own is None or (state.outcome.rows is not None and own not in state.outcome.rows):
            return {}
        return self._try(pod, state, [own])

    def status_with(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """Both passes for one row, from scratch: under a trial, cached results say nothing.

        None if it fits. Used where pods were taken away on trial (preemption).
        """
        status = self._try(pod, state, [row]).get(row)
        if status is not None:
            return status
        return first_rejection(pod, state, self._cluster, row)

    def _try_cached(
        self, pod: PodInfo, state: ClassState, layer: Layer, rows: list[int]
    ) -> dict[int, Status]:
        """Pass 1 row by row; what an equal pod was told before and nothing has touched since
        holds.
        """
        tried = self._tried.get(pod.cls.key)
        if tried is None or tried.layer is not layer:
            tried = self._tried[pod.cls.key] = TriedRows(self._cluster, layer)
            if len(self._tried) > TRIED_MAX:
                self._tried.popitem(last=False)
        self._tried.move_to_end(pod.cls.key)
        tried.refresh(state, self._cluster.counts_settled)
        own = self.nominated_amounts.row_of(pod)
        refused: dict[int, Status] = {}
        for row in rows:
            if row in tried.found and row != own:
                status = tried.found[row]
            else:
                status = self._try(pod, state, [row]).get(row)
                if row != own:
                    tried.found[row] = status
            if status is not None:
                refused[row] = status
        return refused

    def _try(self, pod: PodInfo, state: ClassState, rows: Iterable[int]) -> dict[int, Status]:
        """Pass 1 row by row, each by a trial; rows without such pods are left alone."""
        refused: dict[int, Status] = {}
        for row in rows:
            infos = self.nominated_amounts.on(row, pod)
            if not infos:
                continue
            with self._cluster.supposing().there(infos, row):
                status = first_rejection(pod, state, self._cluster, row)
            if status is not None:
                refused[row] = status
        return refused


class TriedRows(ByRow[None]):
    """What trials of one class's nominated rows came to, row by row: forgotten where anything has
    changed, and everywhere when counts moved that filters read.
    """

    __slots__ = ("found", "layer")

    def __init__(self, cluster: Cluster, layer: Layer) -> None:
        super().__init__(cluster.nodes, ALL_ASPECTS, layer.log)
        self.found: dict[int, Status | None] = {}
        self.layer = layer

    def refresh(self, state: ClassState, counts: int) -> None:
        """`counts` moves with every count of pods that is no supposition."""
        if state.outcome.rejection is not None:
            self.update(None, object())
            return
        if not any(verdict.plugin.reads_counts for verdict in state.active):
            counts = 0
        versions = [(verdict, verdict.full_version) for verdict in state.active]
        self.update(None, (versions, counts))

    def _make_all(self, _: None) -> None:
        self.found.clear()

    def _make_rows(self, _: None, rows: Rows) -> bool:
        for row in rows:
            self.found.pop(row, None)
        return True


def first_rejection(pod: PodInfo, state: ClassState, cluster: Cluster, row: int) -> Status | None:
    """The first filter's rejection of a row as the columns stand now; None if all agree."""
    nodes = cluster.nodes
    view: NodeView | None = None
    is_cached = state.outcome.rejection is None  # else the filters have not looked at anything yet
    for verdict in state.active:
        plugin = verdict.plugin
        if is_cached and is_blind(plugin, pod):
            code: int | None = verdict.code_of(row)
        else:
            code = plugin.filter_one(pod, row, verdict.data)
        if code is None:
            view = view or NodeView(nodes, np.array((row,), dtype=np.int32))
            code = int(plugin.filter(pod, view, verdict.data)[0])
        if code:
            return plugin.explain(pod, code).by(plugin.name)
    return None


def _told(verdict: CachedVerdict, pod: PodInfo, code: int, told: dict[int, Status]) -> Status:
    """A code in words; rows with the same code share them."""
    status = told.get(code)
    if status is None:
        status = told[code] = verdict.plugin.explain(pod, code).by(verdict.plugin.name)
    return status
