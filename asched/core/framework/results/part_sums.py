"""Amounts of rows summed over parts of the cluster, brought up to date row by row.

A thousand groups ask one after the other how full each rack is, and each of them fills a few rows:
what those hold more is added to the sums of their racks, and the others are not looked at.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from asched.core.framework.placements import DisjointPlacements
from asched.core.framework.points import I64
from asched.core.framework.results.by_row import ROWS_FEW, ByRow, Rows
from asched.core.model.quantity import INT64_MAX
from asched.core.state.change_log import RowLog
from asched.core.state.nodes import NodeTable
from asched.core.state.view import NodeView

#: int64[R, M] of what the rows of a view come to; nothing is below nought.
Amounts = Callable[[NodeView], I64]
#: The same of one row, in plain numbers.
OfRow = Callable[[int], Sequence[int]]

#: Of sums that are kept beside each other: a row and an amount take eight bytes.
BYTES_MAX: Final = 16 << 20
#: ... and whatever there is besides.
OWN_BYTES: Final = 8 << 10


class PartSums(ByRow[tuple[Amounts, OfRow | None]]):
    """int64[R, P]: what the rows of each part come to together. Rows of no part count nowhere.
    `turned`: the parts of which a row moved since all were summed.
    """

    __slots__ = ("_by_row", "_owner", "_parts", "_safe", "_sums", "is_exact", "turned")

    def __init__(
        self, nodes: NodeTable, parts: DisjointPlacements, aspects: int, *logs: RowLog
    ) -> None:
        super().__init__(nodes, aspects, *logs)
        self._parts = parts
        self._owner: I64 = np.zeros(0, dtype=np.int64)
        self._by_row: I64 = np.zeros((0, 0), dtype=np.int64)
        self._sums = self._by_row
        #: whether no sum can have gone beyond 64 bits; up to what no amount can lead to one
        self.is_exact, self._safe = True, 0
        self.turned = RowLog()

    @property
    def parts(self) -> DisjointPlacements:
        return self._parts

    @property
    def bytes(self) -> int:
        return self._by_row.nbytes + self._owner.nbytes + self._parts.order.nbytes + OWN_BYTES

    def of(
        self, amounts: Amounts, version: object = None, of_row: OfRow | None = None
    ) -> I64 | None:
        """The sums, which are not to be written to; `version`: of whatever else `amounts` read.
        None if they do not fit into 64 bits. `of_row` is quicker for a few rows.
        """
        self.update((amounts, of_row), version)
        return self._sums if self.is_exact else None

    def _make_all(self, asked: tuple[Amounts, OfRow | None]) -> None:
        self._owner = self._parts.owner(self._nodes.height)
        self._by_row = np.array(asked[0](NodeView(self._nodes)), dtype=np.int64)
        self._safe = INT64_MAX // max(self._nodes.height, 1)
        self.is_exact = int(self._by_row.max(initial=0)) <= self._safe
        self._sums = self._parts.sums(self._by_row)
        self.turned.forget()

    def _make_rows(self, asked: tuple[Amounts, OfRow | None], rows: Rows) -> bool:
        amounts, of_row = asked
        if of_row is not None and len(rows) <= ROWS_FEW:
            turned = {self._take(row, of_row(row)) for row in rows}
        else:
            fresh = amounts(NodeView(self._nodes, np.array(rows, dtype=np.int32)))
            columns = zip(rows, fresh.T.tolist(), strict=True)
            turned = {self._take(row, column) for row, column in columns}
        for part in turned:
            if part >= 0:
                self.turned.add(part, 1)
        return True

    def _take(self, row: int, amounts: Sequence[int]) -> int:
        """The part of the row, -1 for none."""
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
    """Sums of several kinds, those unused for longest given up. For `Cluster.singleton`s and
    plugins.

    Bounds  BYTES_MAX, but the last one is kept however large it is.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, PartSums] = OrderedDict()

    def get(
        self, key: Hashable, parts: DisjointPlacements, make: Callable[[], PartSums]
    ) -> PartSums:
        """Those under a key, over these very parts."""
        known = self._kept.get(key)
        if known is None or known.parts is not parts:
            known = self._kept[key] = make()
            taken = sum(one.bytes for one in self._kept.values())
            while taken > BYTES_MAX and len(self._kept) > 1:
                taken -= self._kept.popitem(last=False)[1].bytes
        self._kept.move_to_end(key)
        return known
