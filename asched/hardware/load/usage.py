"""Use of nodes, by row: the last samples of each, and derived values.

NodeMetrics ──> samples [SAMPLES, 2, N] ──> latest, mean, deviation, percentile [2, N]

A sample older than STALE_S is ignored: such a row counts as not measured, and so does a row without
metrics. Measurements of an earlier node of the same name are dropped.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.model.node import Node
from asched.core.model.quantity import milli
from asched.core.model.timestamp import microseconds
from asched.hardware.changed_rows import ChangedRows
from asched.hardware.load.metrics import NODE_METRICS, SAMPLES, NodeMetrics
from asched.plugin import Aspect, ByRow, Cluster, RowLog

F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

STALE_S: Final = 180.0
ASPECTS: Final = Aspect.LIVE | Aspect.ALLOCATABLE
#: Places on the axis of resources.
CPU: Final = 0  # milli-CPU
MEMORY: Final = 1  # bytes


class NodeUsage(ByRow[None]):
    """One for all plugins and profiles: `cluster.singleton(Usage)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._changes = ChangedRows(cluster, NODE_METRICS)
        super().__init__(cluster.nodes, int(ASPECTS), self._changes)
        self._cluster = cluster
        self._samples: F64 = np.full((SAMPLES, 2, 0), np.nan)
        self._stale_at_s = np.inf
        #: float64[N]: when the window of the last sample ended, in seconds since 1970; 0: never.
        self.end_s: F64 = np.zeros(0)
        #: bool[N]: measured, and not stale.
        self.known: Mask = np.zeros(0, dtype=np.bool_)
        #: float64[N]: milli-CPU of the whole machine, reserved parts included.
        self.capacity: F64 = np.zeros(0)
        #: Log of changed rows, for derived values.
        self.moved = RowLog()
        #: Changes with every change of a row.
        self.version = 0

    @property
    def latest(self) -> F64:
        """float64[2, N]: milli-CPU and bytes; NaN where nothing was measured."""
        found: F64 = self._samples[0]
        return found

    def mean(self) -> F64:
        """float64[2, N] over the available samples; NaN where there is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: F64 = np.nansum(self._samples, axis=0) / self._counts()
        return found

    def deviation(self) -> F64:
        """float64[2, N]: the standard deviation of the available samples; 0 for a single one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.nansum((self._samples - self.mean()) ** 2, axis=0)
            found: F64 = np.sqrt(apart / self._counts())
        return found

    def percentile(self, percent: float) -> F64:
        """float64[2, N]: the smallest sample that is a percentile of this rank."""
        ordered = np.sort(self._samples, axis=0)  # NaN last
        at = np.maximum(np.ceil(self._counts() * percent / 100).astype(np.int64) - 1, 0)
        found: F64 = np.take_along_axis(ordered, at[np.newaxis], axis=0)[0]
        return found

    def _counts(self) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = np.count_nonzero(~np.isnan(self._samples), axis=0)
        return found

    def refresh(self) -> None:
        """Process new measurements, and drop stale ones."""
        self._changes.follow()
        self.update(None)
        if self._cluster.wall_clock_s >= self._stale_at_s:
            self._judge_age()

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        self._samples = np.full((SAMPLES, 2, height), np.nan)
        self.end_s, self.capacity = np.zeros(height), np.zeros(height)
        for row in range(height):
            self._read(row)
        self.moved.forget()
        self._judge_age()

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            self._read(row)
            self.moved.add(row, 1)
        self._judge_age()
        return True

    def _read(self, row: int) -> None:
        node = self._cluster.nodes.node_at[row]
        self._samples[:, :, row] = np.nan
        self.end_s[row] = self.capacity[row] = 0.0
        if node is None:
            return
        capacity = node.status.capacity
        self.capacity[row] = milli(capacity.cpu or 0) if capacity is not None else 0
        metrics: NodeMetrics | None = self._cluster.get(NODE_METRICS, node.name)
        made_s = _made_s(node)
        samples = [s for s in (metrics.samples if metrics is not None else ()) if s.end_s > made_s]
        for at, sample in enumerate(samples[:SAMPLES]):
            self._samples[at, :, row] = sample.cpu, sample.memory
        if samples:
            self.end_s[row] = samples[0].end_s

    def _judge_age(self) -> None:
        """Which rows count as measured now, and when that changes with time."""
        until_s = self.end_s + STALE_S
        self.known = (self.end_s > 0) & (until_s > self._cluster.wall_clock_s)
        self._stale_at_s = float(until_s[self.known].min(initial=np.inf))
        self.version += 1


def _made_s(node: Node) -> float:
    """Creation time, since 1970; 0 if unknown."""
    try:
        return microseconds(node.metadata.creation_timestamp or "") / 1e6
    except ValueError:
        return 0.0
