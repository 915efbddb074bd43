"""The feasible rows of a class: the codes of its filters folded into one mask.

    codes int32[N] of each filter ─┐
    rows that PreFilter left ──────┴─> mask bool[N]

The rows whose feasibility changed are logged for the ranking. Benchmark `decide-anti-affinity`,
5,000 nodes: 838,000 instructions a pod; if the ranking is made anew after each change 958,000.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import LIVE_ONLY, NodeTable
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.model.arrays import Mask

#: If the feasibility of more rows changed at once, ranking all is cheaper. Measured at 5,000 rows:
#: gathering costs ten to twenty times as much as reading the rows in order.
CHANGED_MAX: Final = 128
#: Folding more rows than this one by one takes longer than folding all of 5,000, ...
ROWS_MANY: Final = 16
#: ... and for more than 5,000 rows, more than this share of them.
ROWS_SHARE: Final = 256
#: Length of the log of changed rows; a reader that is further behind starts again.
CHANGED_KEPT: Final = 2 * CHANGED_MAX

_NO_ROWS: Final[Mask] = np.zeros(0, dtype=np.bool_)


class Feasible(ByRow[None]):
    """The rows that all filters accept."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes, LIVE_ONLY)
        self._filters: Sequence[CachedVerdict] = ()
        self._left: set[int] | None = None
        self._version_of = (0,)  # a new object for other filters or rows
        #: bool[N]; read-only outside
        self.mask: Mask = _NO_ROWS
        self.count = 0
        #: changes whenever the set of feasible rows changes
        self.version = 0
        #: rows whose feasibility changed
        self.changed_rows = RowLog(CHANGED_KEPT)

    def has(self, row: int) -> bool:
        """Whether a row is feasible."""
        return bool(self.mask[row])

    def fold(self, filters: Sequence[CachedVerdict], left: set[int] | None) -> None:
        """Use these filters and PreFilter's rows (None for all) from now on."""
        if left != self._left or list(filters) != list(self._filters):
            self._version_of = (self._version_of[0] + 1,)
        self._filters, self._left = filters, left

    def refresh(self) -> None:
        """Update the mask; the filters' codes are up to date."""
        versions = [verdict.full_version for verdict in self._filters]
        self.update(None, (self._version_of, versions))

    def _make_all(self, _: None) -> None:
        nodes = self._nodes
        self.logs = tuple([log for verdict in self._filters for log in verdict.logs])
        self.aspects = LIVE_ONLY
        for verdict in self._filters:
            self.aspects |= verdict.aspects
        rows: Mask = nodes.columns.read("live")[: nodes.height].copy()
        if self._left is not None:
            left = np.zeros(len(rows), dtype=np.bool_)
            left[list(self._left)] = True
            rows &= left
        for verdict in self._filters:
            if not verdict.is_uniform:
                rows &= verdict.values == 0
        before, self.mask = self.mask, rows
        if len(before) != len(rows):
            self._note_all_changed()
            return
        changed = np.flatnonzero(before != rows)
        if len(changed) > CHANGED_MAX:
            self._note_all_changed()
        elif len(changed):
            self.changed_rows.add_all(changed.tolist(), LIVE_ONLY)
            self.version += 1
            self.count = int(np.count_nonzero(rows))

    def _note_all_changed(self) -> None:
        self.changed_rows.forget()
        self.version += 1
        self.count = int(np.count_nonzero(self.mask))

    def _make_rows(self, _: None, rows: Rows) -> bool:
        """Benchmark `decide-plain`, CPU ms a pod: 0.30, 0.36; if all rows are folded 0.48, 0.39."""
        if len(rows) > max(ROWS_MANY, self._nodes.height // ROWS_SHARE):
            return False
        live = self._nodes.columns.read("live")
        for row in rows:
            fits = live.item(row) and (self._left is None or row in self._left)
            if fits:
                for verdict in self._filters:
                    if not verdict.is_uniform and verdict.values.item(row):
                        fits = False
                        break
            if fits != self.mask.item(row):
                self.mask[row] = fits
                self.count += 1 if fits else -1
                self.changed_rows.add(row, LIVE_ONLY)
                self.version += 1
        return True
