"""Nominated pods: a node must fit a pod both with and without the pods nominated to it.

A pod that preempted others waits for its nominated node; until it is placed, pods of the same or
lower priority are filtered as if it were there. A row with such nominations is therefore filtered
twice: with them added (pass 1), and without (pass 2, the cached results). Pass 1 comes first: if it
rejects, its message counts.

For a decision only rows that are feasible without them need pass 1; the others only for the
messages of a rejection. For a *plain* class, whose filters read nothing of pods but their amounts,
all rows are filtered at once; otherwise each row by a trial of its own. Results are cached for
equal pods until the row changes.

Rows whose kubelet recently refused a pod of the same owner are excluded here, too
(`core/cluster/refusals.py`).

Bounds  TRIED_MAX classes of the second kind; the least recently used is dropped.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
        (RunFilterPluginsWithNominatedPods)
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.rejection import explained
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated_amounts import Layer, NominatedAmounts
from asched.core.framework.results.pods_read import is_blind
from asched.core.framework.status import MISTAKES, Reason, Status, raise_plugin_error
from asched.core.model.arrays import I32, Indices, Mask
from asched.core.model.lru import Lru

#: Classes with cached trials. A guess: more of them rarely meet nominated pods at the same time.
TRIED_MAX: Final = 64


class RefusedRows(NamedTuple):
    """`rows` on which nominated pods do not leave room; `by_trial`: rows with a trial of their
    own. `NominatedPods.explain` has the statuses of the other rows, on demand.
    """

    rows: Indices
    by_trial: dict[int, Status]


NONE_REFUSED: Final = RefusedRows(np.zeros(0, dtype=np.intp), {})
#: Not owned by a plugin; retried after backoff. Preemption does not apply.
HELD_OFF: Final = Reason(
    "node(s) had refused a pod of the same owner a moment ago", resolvable=False
).status


class NominatedPods:
    """Filters rows with their nominated pods added."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self.nominated_amounts = NominatedAmounts(cluster, nominator)
        self._tried: Lru[bytes, TriedRows] = Lru(TRIED_MAX)

    @property
    def are_any(self) -> bool:
        """Whether room is promised to any pod."""
        return bool(self._nominator.by_uid)

    def refused(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        """The feasible rows that are infeasible with their nominated pods, or whose kubelet has
        recently refused such a pod.
        """
        found = self._by_nominated(pod, state) if self._nominator.by_uid else NONE_REFUSED
        refusals = self._cluster.refusals
        if not refusals.avoided:
            return found
        rows = refusals.rows(pod.pod, self._cluster.steady_s)
        status_at = {row: HELD_OFF for row in rows if state.mask.has(row)}
        if not status_at:
            return found
        both = np.union1d(found.rows, np.array(list(status_at), dtype=np.intp))
        return RefusedRows(both, {**found.by_trial, **status_at})

    def _by_nominated(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        if not state.mask.count:
            return NONE_REFUSED
        layer = self.nominated_amounts.layer(pod.pod.priority)
        if not layer.total:
            return NONE_REFUSED
        height = len(state.feasible)
        marked = state.feasible & (layer.count[:height] > 0)
        if not state.outcome.is_plain(pod):
            status_at = self._try_cached(pod, state, layer, np.flatnonzero(marked).tolist())
            return RefusedRows(
                np.fromiter(status_at, dtype=np.intp, count=len(status_at)), status_at
            )
        own, status_at = self.nominated_amounts.row_of(pod), {}
        if own is not None and own < height and marked[own]:
            marked[own] = False
            status_at = self._try(pod, state, [own])
        rejected: Mask = np.zeros(height, dtype=np.bool_)
        for verdict in state.active:
            if verdict.plugin.reads_only_amounts:
                rejected |= layer.codes(verdict, pod)[:height] != 0
        rows = (marked & rejected).nonzero()[0]
        return RefusedRows(np.append(rows, list(status_at)) if status_at else rows, status_at)

    def statuses(self, pod: PodInfo, state: ClassState) -> dict[int, Status]:
        """As `refused`, with statuses: row -> status."""
        refused = self.refused(pod, state)
        statuses = dict(refused.by_trial)
        layer = self.nominated_amounts.layer(pod.pod.priority)
        for verdict in state.active:
            if verdict.plugin.reads_only_amounts and len(statuses) < len(refused.rows):
                codes = layer.codes(verdict, pod)
                texts: dict[int, Status] = {}
                for row in refused.rows.tolist():
                    if row not in statuses and codes[row]:
                        statuses[row] = _status_of(verdict, pod, int(codes[row]), texts)
        return statuses

    def status_of_row(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """The rejection of one feasible row because of its nominated pods, or None."""
        return self._try(pod, state, [row]).get(row)

    def explain(
        self,
        pod: PodInfo,
        state: ClassState,
        first_rejector: I32,
        codes: I32,
        *,
        in_place: bool = True,
    ) -> dict[int, Status]:
        """The results of pass 1 for every row with nominated pods, feasible or not.

        With `in_place` they are written to `first_rejector` and `codes` (`attempt.Rejection`) where
        possible; the result has the other rows.
        """
        layer = self.nominated_amounts.layer(pod.pod.priority)
        if not layer.total:
            return {}
        rows = layer.rows()
        if state.outcome.rows is not None:
            rows = rows[np.isin(rows, list(state.outcome.rows))]
        if not in_place or not state.outcome.is_plain(pod):
            return self._try_cached(pod, state, layer, rows.tolist())
        own = self.nominated_amounts.row_of(pod)
        if own is not None:
            rows = rows[rows != own]
        for index, verdict in enumerate(state.active):
            if verdict.plugin.reads_only_amounts:
                found = layer.codes(verdict, pod)[rows]
            elif verdict.is_uniform:
                continue
            else:
                found = verdict.codes[rows]
            rejected = found != 0
            at = rows[rejected]
            first_rejector[at] = index + 1
            codes[at] = found[rejected]
            rows = rows[~rejected]
        if own is None or (state.outcome.rows is not None and own not in state.outcome.rows):
            return {}
        return self._try(pod, state, [own])

    def status_with(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """Both passes for one row without cached results, which do not apply in a trial.

        None if it fits. Used with pods removed tentatively (preemption).
        """
        status = self._try(pod, state, [row]).get(row)
        if status is not None:
            return status
        return first_rejection(pod, state, self._cluster, row)

    def _try_cached(
        self, pod: PodInfo, state: ClassState, layer: Layer, rows: list[int]
    ) -> dict[int, Status]:
        """Pass 1 row by row; statuses of equal pods are reused for unchanged rows."""
        tried = self._tried.get(pod.cls.key)
        if tried is None or tried.layer is not layer:
            tried = TriedRows(self._cluster, layer)
            self._tried.put(pod.cls.key, tried)
        tried.refresh(state, self._cluster.counts_outside_trials)
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
        """Pass 1 row by row, each by a trial; rows without such pods are skipped."""
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
    """Cached trials of one class's nominated rows, by row: dropped where anything has changed, and
    everywhere when counts that filters read have changed.

    Pods of the benchmark `decide-preemption` with required anti-affinity make 23,050 calls each on
    300 nodes; without, 27,997.
    """

    def __init__(self, cluster: Cluster, layer: Layer) -> None:
        super().__init__(cluster.nodes, ALL_ASPECTS, layer.log)
        self.found: dict[int, Status | None] = {}
        self.layer = layer

    def refresh(self, state: ClassState, counts: int) -> None:
        """`counts` changes with every count of pods, suppositions aside."""
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
    """The first filter's rejection of a row with the columns as they are; None if all accept."""
    nodes = cluster.nodes
    view: NodeView | None = None
    is_cached = state.outcome.rejection is None  # else the filters have not run yet
    try:
        for verdict in state.active:
            plugin = verdict.plugin
            if is_cached and is_blind(plugin, pod):
                code = verdict.code_of(row)
            elif (codes := plugin.filter_few(pod, (row,), verdict.data)) is not None:
                code = codes[0]
            else:
                view = view or NodeView(nodes, np.array((row,), dtype=np.int32))
                code = int(plugin.filter(pod, view, verdict.data)[0])
            if code:
                return plugin.explain(pod, code).by(plugin.name)
    except MISTAKES as raised:
        raise_plugin_error(verdict.plugin.name, "filter", raised)
    return None


def _status_of(verdict: CachedVerdict, pod: PodInfo, code: int, texts: dict[int, Status]) -> Status:
    """The status of a code; rows with the same code share it."""
    status = texts.get(code)
    if status is None:
        status = texts[code] = explained(verdict.plugin, pod, code)
    return status
