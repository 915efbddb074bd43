"""Sums of row amounts over parts of the cluster, updated by row.

A thousand groups read one after the other how full each rack is, and each of them fills a few rows:
only the difference of those rows is added to the sums of their racks.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.view import NodeView
from asched.core.framework.placements import DisjointPlacements
from asched.core.framework.points import I64
from asched.core.framework.results.by_row import ROWS_FEW, ByRow, Rows
from asched.core.model.quantity import INT64_MAX

#: int64[R, M] of the amounts of a view's rows; none is negative.
Amounts = Callable[[NodeView], I64]
#: The same for one row, as plain numbers.
OfRow = Callable[[int], Sequence[int]]

#: Limit of cached sums: a row and an amount take eight bytes, ...
BYTES_MAX: Final = 16 << 20
#: ... and this is the rest.
OWN_BYTES: Final = 8 << 10


class PartSums(ByRow[tuple[Amounts, OfRow | None]]):
    """int64[R, P]: the sums over each part. Rows of no part do not count. `changed_parts` logs
    the parts with a changed row since all were summed.
    """

    def __init__(
        self, nodes: NodeTable, parts: DisjointPlacements, aspects: int, *logs: RowLog
    ) -> None:
        super().__init__(nodes, aspects, *logs)
        self._parts = parts
        self._owner: I64 = np.zeros(0, dtype=np.int64)
        self._by_row: I64 = np.zeros((0, 0), dtype=np.int64)
        self._sums = self._by_row
        #: whether no sum can exceed 64 bits; the limit of amounts that cannot lead to that
        self.is_exact, self._safe = True, 0
        self.changed_parts = RowLog()

    @property
    def parts(self) -> DisjointPlacements:
        return self._parts

    @property
    def bytes(self) -> int:
        return self._by_row.nbytes + self._owner.nbytes + self._parts.order.nbytes + OWN_BYTES

    def of(
        self, amounts: Amounts, version: object = None, of_row: OfRow | None = None
    ) -> I64 | None:
        """The sums, read-only; `version`: of all other inputs of `amounts`. None if they exceed 64
        bits. `of_row` is faster for a few rows.
        """
        self.update((amounts, of_row), version)
        return self._sums if self.is_exact else None

    def _make_all(self, asked: tuple[Amounts, OfRow | None]) -> None:
        self._owner = self._parts.owner(self._nodes.height)
        self._by_row = np.array(asked[0](NodeView(self._nodes)), dtype=np.int64)
        self._safe = INT64_MAX // max(self._nodes.height, 1)
        self.is_exact = int(self._by_row.max(initial=0)) <= self._safe
        self._sums = self._parts.sums(self._by_row)
        self.changed_parts.forget()

    def _make_rows(self, asked: tuple[Amounts, OfRow | None], rows: Rows) -> bool:
        amounts, of_row = asked
        if of_row is not None and len(rows) <= ROWS_FEW:
            changed = {self._take(row, of_row(row)) for row in rows}
        else:
            fresh = amounts(NodeView(self._nodes, np.array(rows, dtype=np.int32)))
            columns = zip(rows, fresh.T.tolist(), strict=True)
            changed = {self._take(row, column) for row, column in columns}
        for part in changed:
            if part >= 0:
                self.changed_parts.add(part, 1)
        return True

    def _take(self, row: int, amounts: Sequence[int]) -> int:
        """Add the difference of a row; returns its part, -1 for none."""
        by_row, sums, part = self._by_row, self._sums, self._owner.item(row)
        for at, amount in enumerate(amounts):
            if amount > self._safe:
                self.is_exact = False
            more = amount - by_row.item(at, row)
            if more:
                by_row[at, row] = amount
                if part >= 0:
                    sums[at, part] += more
        return part


class KeptSums:
    """Cached sums of several kinds, the least recently used dropped. For `Cluster.singleton`s and
    plugins.
    Bounds  BYTES_MAX, but the last one is cached whatever its size.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, PartSums] = OrderedDict()

    def get(
        self, key: Hashable, parts: DisjointPlacements, make: Callable[[], PartSums]
    ) -> PartSums:
        """The sums of a key, over exactly these parts."""
        known = self._kept.get(key)
        if known is None or known.parts is not parts:
            known = self._kept[key] = make()
            taken = sum(sums.bytes for sums in self._kept.values())
            while taken > BYTES_MAX and len(self._kept) > 1:
                taken -= self._kept.popitem(last=False)[1].bytes
        self._kept.move_to_end(key)
        return known
