"""Room promised to nominated pods, as amounts per row.

Nominated pods are read by node and priority in every attempt. Their requests are therefore stored
in columns, one `Layer` for each priority in use: all nominated pods of at least that priority. A
nomination that is added or removed touches one row.

Bounds  BYTES_MAX for all layers, CODES_BYTES_MAX of cached results for each; the least recently
        used are dropped.

Nominated pods: a node must fit a pod both with and without the pods nominated to it.

A pod that preempted others waits for its nominated node; until it is placed, pods of the same or
lower priority are filtered as if it were there. A row with such nominations is therefore filtered
twice: with them added (pass 1), and without (pass 2, the cached results). Pass 1 comes first: if it
rejects, its message counts.

For a decision only rows that are feasible without them need pass 1; the others only for the
messages of a rejection. For a *plain* class, whose filters read nothing of pods but their amounts,
all rows are filtered at once; otherwise each row by a trial of its own. Results are cached for
equal pods until the row changes.

Rows whose kubelet recently refused a pod of the same owner, and rows on which another scheduler
binds and where the pod would leave no room (`core/cluster/refusals.py`), are excluded here, too. A
pod for which room was made on a row ignores this.

Bounds  TRIED_MAX classes of the second kind; the least recently used is dropped.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
        (RunFilterPluginsWithNominatedPods)
"""

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.changes import RowLog
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import ALL_ASPECTS, LIVE_ONLY, PODS_MOVED, Aspect, NodeTable
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView, SupposedView
from asched.core.framework.attempt import explained
from asched.core.framework.points import CachedPlugin, FilterPlugin
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.prepared import PLUGINS_MAX
from asched.core.framework.status import MISTAKES, Reason, Status, raise_plugin_error
from asched.core.model.quantity import within_int64

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

NO_CODES: Final[I32] = np.zeros(0, dtype=np.int32)

#: Clusters have a handful of priority classes; a layer is made in a millisecond.
BYTES_MAX: Final = 64 << 20
#: Cached results for distinct requests that meet nominated pods, per priority. A guess.
CODES_BYTES_MAX: Final = 2 << 20
#: Size of such a result besides its rows, including the verdict it is derived from.
CODES_OWN_BYTES: Final = 16 << 10
#: Minimum number of layers, and of results of a layer.
KEPT_MIN: Final = 4


class Layer:
    """Nominated pods of at least one priority: `amounts` int64[R, N], `count` int64[N] of pods,
    and `log`, the rows where these changed.
    """

    def __init__(self, nodes: NodeTable, priority: int) -> None:
        self._nodes = nodes
        self.priority = priority
        self.log = RowLog()
        self.total = 0
        self.amounts: I64 = np.zeros((0, 0), dtype=np.int64)
        self.count: I64 = np.zeros(0, dtype=np.int64)
        self._codes: OrderedDict[int, NominatedCodes] = OrderedDict()
        self.reserve()

    def reserve(self) -> None:
        """Grow with the node table's columns."""
        columns = self._nodes.columns
        shape = (columns.size_of("R"), columns.capacity)
        if self.amounts.shape != shape:
            grown = np.zeros(shape, dtype=np.int64)
            grown[: self.amounts.shape[0], : self.amounts.shape[1]] = self.amounts
            self.amounts = grown
            self.count = np.concatenate(
                (self.count, np.zeros(shape[1] - len(self.count), dtype=np.int64))
            )

    def put(self, row: int, infos: Iterable[PodInfo]) -> None:
        """Set all pods nominated to a row."""
        seen = [info for info in infos if info.pod.priority >= self.priority]
        before = int(self.count[row])
        if not seen and not before:
            return
        self.amounts[:, row] = 0
        for index, amount in wanted_by(seen, self._nodes).items():
            self.amounts[index, row] = amount
        self.count[row] = len(seen)
        self.total += len(seen) - before
        self.log.add(row, PODS_MOVED)

    def rows(self) -> npt.NDArray[np.intp]:
        """The rows with such pods."""
        return self.count[: self._nodes.height].nonzero()[0]

    def codes(self, verdict: CachedVerdict, pod: PodInfo) -> I32:
        """int32[N]: the results of a filter that reads only amounts, with these pods added.

        Only the entries of `rows()` are valid.
        """
        key = id(verdict)
        kept = self._codes.get(key)
        if kept is None:
            kept = self._codes[key] = NominatedCodes(self._nodes, verdict, self)
            each = NO_CODES.itemsize * self._nodes.columns.capacity + CODES_OWN_BYTES
            if len(self._codes) > max(KEPT_MIN, CODES_BYTES_MAX // each):
                self._codes.popitem(last=False)
        else:
            self._codes.move_to_end(key)
        kept.refresh(pod)
        return kept.codes


def wanted_by(infos: Iterable[PodInfo], nodes: NodeTable) -> dict[int, int]:
    """The sum of the pods' requests, by place on axis R, limited to 64 bits; resources that no node
    has are left out.
    """
    wanted: dict[int, int] = {}
    for info in infos:
        for name, amount in info.cls.accounted.items():
            index = nodes.find_resource(name)
            if index is not None:
                wanted[index] = within_int64(wanted.get(index, 0) + amount)
    return wanted


class NominatedCodes(ByRow[PodInfo]):
    """A filter's cached result for the rows of a layer, with the layer's pods added."""

    def __init__(self, nodes: NodeTable, verdict: CachedVerdict, layer: "Layer") -> None:
        super().__init__(nodes, verdict.aspects, layer.log)
        self._verdict = verdict
        self._layer = layer
        self.codes: I32 = NO_CODES

    def refresh(self, pod: PodInfo) -> None:
        """Update it; the verdict and the layer are up to date."""
        self.update(pod, self._verdict.full_version)

    def _make_all(self, pod: PodInfo) -> None:
        self.codes = np.zeros(self._nodes.height, dtype=np.int32)
        self._suppose(pod, self._layer.rows().astype(np.int32))

    def _make_rows(self, pod: PodInfo, rows: Rows) -> bool:
        count = self._layer.count
        self._suppose(pod, np.array([row for row in rows if count[row]], dtype=np.int32))
        return True

    def _suppose(self, pod: PodInfo, rows: I32) -> None:
        if len(rows):
            verdict, layer = self._verdict, self._layer
            more, more_pods = layer.amounts[:, rows], layer.count[rows]
            view = SupposedView(self._nodes, rows, more, more_pods)
            try:
                self.codes[rows] = verdict.plugin.filter(pod, view, verdict.data)
            except MISTAKES as raised:
                raise_plugin_error(verdict.plugin.name, "filter", raised)


class NominatedAmounts:
    """The nominated pods by row, updated by the nominator's log."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self._infos: dict[str, tuple[PodInfo, ...]] = {}  # node -> pods nominated to it
        self._layers: OrderedDict[int, Layer] = OrderedDict()
        self._seen = -1
        self._cursor = -1
        self._resources_seen = -1
        self._generation_seen = -1

    def layer(self, priority: int) -> Layer:
        """The pods for which pods of this priority must leave room."""
        self._catch_up()
        layer = self._layers.get(priority)
        if layer is None:
            layer = self._layers[priority] = Layer(self._cluster.nodes, priority)
            self._fill(layer)
            each = layer.amounts.nbytes + layer.count.nbytes + CODES_BYTES_MAX
            if len(self._layers) > max(KEPT_MIN, BYTES_MAX // each):
                self._layers.popitem(last=False)
        else:
            self._layers.move_to_end(priority)
        return layer

    def on(self, row: int, pod: PodInfo) -> list[PodInfo]:
        """The nominated pods for which this pod must leave room on a row, without itself."""
        self._catch_up()
        node = self._cluster.nodes.node_at[row]
        if node is None:
            return []
        return [
            info
            for info in self._infos.get(node.name, ())
            if info.pod.priority >= pod.pod.priority and info.pod.uid != pod.pod.uid
        ]

    def row_of(self, pod: PodInfo) -> int | None:
        """The row to which the pod itself is nominated, if any."""
        node = self._nominator.node_of(pod.pod.uid)
        return None if node is None else self._cluster.nodes.row_of.get(node)

    def _catch_up(self) -> None:
        nodes, log = self._cluster.nodes, self._nominator.log
        is_same_axis = self._resources_seen == nodes.resources.end
        if self._seen == log.end and self._generation_seen == nodes.generation and is_same_axis:
            self._cursor = nodes.log.end  # only pods changed
            return
        touched = log.since(self._seen)
        moved = nodes.log.rows(self._cursor, LIVE_ONLY)
        self._seen, self._cursor = log.end, nodes.log.end
        self._generation_seen = nodes.generation
        self._resources_seen = nodes.resources.end
        if touched is None or moved is None or not is_same_axis:
            self._infos = {node: self._infos_of(node) for node in self._nominator.nodes()}
            self._layers.clear()
            return
        rows = list(moved)
        for node in {key for _, key in touched}:
            infos = self._infos_of(node)
            if infos:
                self._infos[node] = infos
            else:
                self._infos.pop(node, None)
            row = nodes.row_of.get(node)
            if row is not None:
                rows.append(row)
        for layer in self._layers.values():
            layer.reserve()
            for row in rows:
                layer.put(row, self._at(row))

    def _infos_of(self, node: str) -> tuple[PodInfo, ...]:
        """Their derived data; data of known pods is reused."""
        known = {info.pod.uid: info for info in self._infos.get(node, ())}
        found = []
        for uid, pod in self._nominator.on(node).items():
            if uid not in self._cluster.placed:
                info = known.get(uid)
                same = info is not None and info.pod is pod
                found.append(info if same else self._cluster.classes.info_of(pod))
        return tuple(info for info in found if info is not None)

    def _at(self, row: int) -> tuple[PodInfo, ...]:
        node = self._cluster.nodes.node_at[row]
        return () if node is None else self._infos.get(node.name, ())

    def _fill(self, layer: Layer) -> None:
        for node, infos in self._infos.items():
            row = self._cluster.nodes.row_of.get(node)
            if row is not None:
                layer.put(row, infos)


Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


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
#: The same for a node on which another scheduler binds.
CONTESTED: Final = Reason(
    "node(s) contested by another scheduler, which is left some room for a moment", resolvable=False
).status
#: Reasons that end by time, not by an event.
FOR_A_MOMENT: Final = frozenset((HELD_OFF, CONTESTED))


def ignores_pods(plugin: FilterPlugin) -> bool:
    """Whether a filter's result is independent of the pods on nodes."""
    return _ignores_pods(type(plugin))


@lru_cache(PLUGINS_MAX)
def _ignores_pods(plugin: type[FilterPlugin]) -> bool:
    return (
        plugin.depends_on is not None
        and not plugin.depends_on & Aspect.PODS
        and plugin.stamp is CachedPlugin.stamp
    )


def is_plain(pod: PodInfo, state: ClassState) -> bool:
    """Whether the class's filters read at most the amounts of pods."""
    outcome = state.outcome
    if outcome.seeing is None:
        outcome.seeing = [
            verdict.plugin
            for verdict in outcome.active
            if not (verdict.plugin.reads_only_amounts or ignores_pods(verdict.plugin))
        ]
    try:
        for plugin in outcome.seeing:
            if not plugin.is_blind_for(pod):
                return False
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
    return True


def is_blind(plugin: FilterPlugin, pod: PodInfo) -> bool:
    """Whether its cached result for this pod is valid for any pods on the nodes."""
    try:
        return ignores_pods(plugin) or plugin.is_blind_for(pod)
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)


class NominatedPods:
    """Filters rows with their nominated pods added."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._nominator = nominator
        self.nominated_amounts = NominatedAmounts(cluster, nominator)
        self._tried: OrderedDict[bytes, TriedRows] = OrderedDict()

    @property
    def are_any(self) -> bool:
        """Whether room is promised to any pod."""
        return bool(self._nominator.by_uid)

    def refused(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        """The feasible rows that are infeasible with their nominated pods, or whose kubelet has
        recently refused such a pod.
        """
        found = self._by_nominated(pod, state) if self._nominator.by_uid else NONE_REFUSED
        refusals, now_s = self._cluster.refusals, self._cluster.steady_s
        if not (refusals.avoided or refusals.contested_nodes):
            return found
        has = state.mask.has
        status_at = dict.fromkeys(refusals.crowded(pod, has, now_s), CONTESTED)
        if status_at and self._nominator.by_uid:
            own = self.nominated_amounts.row_of(pod)
            status_at.pop(-1 if own is None else own, None)
        status_at.update((row, HELD_OFF) for row in refusals.rows(pod.pod, now_s) if has(row))
        if not status_at:
            return found
        rows = np.union1d(found.rows, np.array(list(status_at), dtype=np.intp))
        return RefusedRows(rows, {**found.by_trial, **status_at})

    def _by_nominated(self, pod: PodInfo, state: ClassState) -> RefusedRows:
        if not state.mask.count:
            return NONE_REFUSED
        layer = self.nominated_amounts.layer(pod.pod.priority)
        if not layer.total:
            return NONE_REFUSED
        height = len(state.feasible)
        marked = state.feasible & (layer.count[:height] > 0)
        if not is_plain(pod, state):
            status_at = self._try_cached(pod, state, layer, np.flatnonzero(marked).tolist())
            return RefusedRows(
                np.fromiter(status_at, dtype=np.intp, count=len(status_at)), status_at
            )
        own, status_at = self.nominated_amounts.row_of(pod), {}
        if own is not None and own < height and marked[own]:
            marked[own] = False
            status_at = self._try(pod, state, [own])
        fits: Mask = np.ones(height, dtype=np.bool_)
        for verdict in state.active:
            if verdict.plugin.reads_only_amounts:
                fits &= layer.codes(verdict, pod)[:height] == 0
        rows = (marked & ~fits).nonzero()[0]
        return RefusedRows(np.append(rows, list(status_at)) if status_at else rows, status_at)

    def judge(self, pod: PodInfo, state: ClassState) -> dict[int, Status]:
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

    def judge_row(self, pod: PodInfo, state: ClassState, row: int) -> Status | None:
        """The rejection of one feasible row because of its nominated pods, or None."""
        return self._try(pod, state, [row]).get(row)

    def explain(
        self, pod: PodInfo, state: ClassState, judge: I32, codes: I32, *, in_place: bool = True
    ) -> dict[int, Status]:
        """The results of pass 1 for every row with nominated pods, feasible or not.

        With `in_place` they are written to `judge` and `codes` (`attempt.Rejection`) where
        possible; the result has the other rows.
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
            elif verdict.is_uniform:
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
