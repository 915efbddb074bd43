"""Room promised to nominated pods, as amounts per row.

Nominated pods are read by node and priority in every attempt. Their requests are therefore stored
in columns, one `Layer` for each priority in use: all nominated pods of at least that priority. A
nomination that is added or removed touches one row.

Bounds  BYTES_MAX for all layers, CODES_BYTES_MAX of cached results for each; the least recently
        used are dropped.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import numpy as np

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import LIVE_ONLY, PODS_MOVED, NodeTable
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import SupposedView
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.status import MISTAKES, raise_plugin_error
from asched.core.model.arrays import I32, I64, Indices
from asched.core.model.quantity import within_int64

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

    def rows(self) -> Indices:
        """The rows with such pods."""
        return self.count[: self._nodes.height].nonzero()[0]

    def codes(self, verdict: CachedVerdict, pod: PodInfo) -> I32:
        """int32[N]: the results of a filter that reads only amounts, with these pods added.

        Only the entries of `rows()` are valid. Cached: a pod of the benchmark
        `decide-preemption` makes 4.8 million instructions on 1,000 nodes; without, 5.1.
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
