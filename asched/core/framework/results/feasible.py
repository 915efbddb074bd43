"""Where a class of pods fits: the codes of its filters folded into one mask.

codes int32[N] of each filter ─┐
rows that PreFilter left ──────┴─> bool[N]
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.framework.results.cached import CachedVerdict
from asched.core.state.change_log import RowLog
from asched.core.state.nodes import LIVE_ONLY, NodeTable

Mask = npt.NDArray[np.bool_]

#: With more rows than this whose feasibility turned at once, ranking all anew is cheaper. Measured
#: at 5,000 rows: gathering costs as much as ten to twenty times the rows in order.
TURNED_MAX: Final = 128
#: Folding more rows than this one by one takes longer than folding all of 5,000.
ROWS_MANY: Final = 16
#: What the log of turned rows keeps: whoever has missed more starts afresh.
TURNED_KEPT: Final = 2 * TURNED_MAX


class Feasible(ByRow[None]):
    """The rows on which all filters agree."""

    __slots__ = ("_filters", "_left", "_version_of", "count", "mask", "turned", "version")

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes, LIVE_ONLY)
        self._filters: Sequence[CachedVerdict] = ()
        self._left: set[int] | None = None
        self._version_of = (0,)  # another object whenever other filters or rows take part
        self.mask: Mask = np.zeros(0, dtype=np.bool_)
        self.count = 0
        #: moves whenever another set of rows is feasible
        self.version = 0
        #: rows whose feasibility turned
        self.turned = RowLog(TURNED_KEPT)

    def fold(self, filters: Sequence[CachedVerdict], left: set[int] | None) -> None:
        """From now on: these filters, and PreFilter's rows, None for all."""
        if left != self._left or list(filters) != list(self._filters):
            self._version_of = (self._version_of[0] + 1,)
        self._filters, self._left = filters, left

    def refresh(self) -> None:
        """Bring it up to date; the filters' codes are."""
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
            self._turn_all()
            return
        turned = np.flatnonzero(before != rows)
        if len(turned) > TURNED_MAX:
            self._turn_all()
        elif len(turned):
            for row in turned.tolist():
                self.turned.add(row, LIVE_ONLY)
            self.version += 1
            self.count = int(np.count_nonzero(rows))

    def _turn_all(self) -> None:
        self.turned.forget()
        self.version += 1
        self.count = int(np.count_nonzero(self.mask))

    def _make_rows(self, _: None, rows: Rows) -> bool:
        if len(rows) > ROWS_MANY:
            return False
        live = self._nodes.columns.read("live")
        for row in rows:
            fits = bool(live[row]) and (self._left is None or row in self._left)
            if fits:
                for verdict in self._filters:
                    if not verdict.is_uniform and verdict.values[row]:
                        fits = False
                        break
            if fits != self.mask[row]:
                self.mask[row] = fits
                self.count += 1 if fits else -1
                self.version += 1
                self.turned.add(row, LIVE_ONLY)
        return True
