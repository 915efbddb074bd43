"""Use of nodes, by row: the last samples of each, and derived values.

NodeMetrics ──> samples [SAMPLES, 2, N] ──> latest, mean, deviation [2, N]

A sample older than STALE_S is ignored: such a row counts as not measured, and so does a row without
metrics. Measurements of an earlier node of the same name are dropped.
"""

from typing import Final

import numpy as np

from asched.core.model.quantity import milli
from asched.core.model.timestamp import seconds
from asched.hardware.load.node_metrics import NODE_METRICS, SAMPLES, NodeMetrics
from asched.hardware.rows import (
    F64,
    ExpiringReports,
)
from asched.plugin import (
    I64,
    Aspect,
    Cluster,
    RowLog,
    Rows,
)

STALE_S: Final = 180.0
ASPECTS: Final = Aspect.LIVE | Aspect.ALLOCATABLE
#: Places on the axis of resources.
CPU: Final = 0  # milli-CPU
MEMORY: Final = 1  # bytes


class NodeUsage(ExpiringReports):
    """One for all plugins and profiles: `cluster.singleton(NodeUsage)`. A row is made when the
    window of its last sample ended.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, ASPECTS, NODE_METRICS, STALE_S)
        self._samples: F64 = np.full((SAMPLES, 2, 0), np.nan)
        #: float64[N]: milli-CPU of the whole machine, reserved parts included.
        self.capacity: F64 = np.zeros(0)
        #: Log of changed rows, for derived values.
        self.moved = RowLog()

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

    def _counts(self) -> I64:
        found: I64 = np.count_nonzero(~np.isnan(self._samples), axis=0)
        return found

    def _reset(self, height: int) -> None:
        self._samples = np.full((SAMPLES, 2, height), np.nan)
        self.capacity = np.zeros(height)

    def _make_all(self, _: None) -> None:
        super()._make_all(None)
        self.moved.forget()

    def _make_rows(self, _: None, rows: Rows) -> bool:
        super()._make_rows(None, rows)
        for row in rows:
            self.moved.add(row, 1)
        return True

    def _read(self, row: int) -> None:
        node = self._cluster.nodes.node_at[row]
        self._samples[:, :, row] = np.nan
        self.made_s[row], self.capacity[row] = -np.inf, 0.0
        if node is None:
            return
        capacity = node.status.capacity
        self.capacity[row] = milli(capacity.cpu or 0) if capacity is not None else 0
        metrics: NodeMetrics | None = self._cluster.get(NODE_METRICS, node.name)
        made_s = seconds(node.metadata.creation_timestamp, 0.0)
        samples = [s for s in (metrics.samples if metrics is not None else ()) if s.end_s > made_s]
        for at, sample in enumerate(samples[:SAMPLES]):
            self._samples[at, :, row] = sample.cpu, sample.memory
        if samples:
            self.made_s[row] = samples[0].end_s
