"""Amounts of rows summed over parts of the cluster, brought up to date row by row.

A thousand groups ask one after the other how full each rack is, and each of them fills a few rows:
what those hold more is added to the sums of their racks, and the others are not looked at.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from asched.core.framework.placements import Parts
from asched.core.framework.points import I64
from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.model.quantity import INT64_MAX
from asched.core.state.change_log import RowLog
from asched.core.state.nodes import NodeTable
from asched.core.state.view import NodeView

#: int64[R, M] of what the rows of a view come to; nothing is below nought.
Amounts = Callable[[NodeView], I64]

#: Of sums that are kept beside each other: a row and an amount take eight bytes.
BYTES_MAX: Final = 16 << 20
#: ... and whatever there is besides.
OWN_BYTES: Final = 8 << 10


class PartSums(ByRow[Amounts]):
    """int64[R, P]: what the rows of each part come to together. Rows of no part count nowhere."""

    __slots__ = ("_by_row", "_owner", "_parts", "_sums", "is_exact")

    def __init__(self, nodes: NodeTable, parts: Parts, aspects: int, *logs: RowLog) -> None:
        super().__init__(nodes, aspects, *logs)
        self._parts = parts
        self._owner: I64 = np.zeros(0, dtype=np.int64)
        self._by_row: I64 = np.zeros((0, 0), dtype=np.int64)
        self._sums = self._by_row
        #: whether no sum can have gone beyond 64 bits
        self.is_exact = True

    @property
    def parts(self) -> Parts:
        return self._parts

    @property
    def bytes(self) -> int:
        return self._by_row.nbytes + self._owner.nbytes + self._parts.order.nbytes + OWN_BYTES

    def of(self, amounts: Amounts, version: object = None) -> I64 | None:
        """The sums, which are not to be written to; `version`: of whatever else `amounts` read.
        None if they do not fit into 64 bits.
        """
        self.update(amounts, version)
        return self._sums if self.is_exact else None

    def _make_all(self, amounts: Amounts) -> None:
        self._owner = self._parts.owner(self._nodes.height)
        self._by_row = np.array(amounts(NodeView(self._nodes)), dtype=np.int64)
        self.is_exact = True
        self._look_at(self._by_row)
        self._sums = self._parts.sums(self._by_row)

    def _make_rows(self, amounts: Amounts, rows: Rows) -> bool:
        at = np.array(rows, dtype=np.int32)
        fresh = amounts(NodeView(self._nodes, at))
        self._look_at(fresh)
        more = fresh - self._by_row[:, at]
        self._by_row[:, at] = fresh
        owner = self._owner[at]
        for position, part in enumerate(owner.tolist()):
            if part >= 0:
                self._sums[:, part] += more[:, position]
        return True

    def _look_at(self, amounts: I64) -> None:
        if int(amounts.max(initial=0)) > INT64_MAX // max(self._nodes.height, 1):
            self.is_exact = False


class KeptSums:
    """Sums of several kinds, those unused for longest given up. For `Cluster.singleton`s and
    plugins.

    Bounds  BYTES_MAX, but the last one is kept however large it is.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, PartSums] = OrderedDict()

    def get(self, key: Hashable, parts: Parts, make: Callable[[], PartSums]) -> PartSums:
        """Those under a key, over these very parts."""
        known = self._kept.get(key)
        if known is None or known.parts is not parts:
            known = self._kept[key] = make()
            taken = sum(one.bytes for one in self._kept.values())
            while taken > BYTES_MAX and len(self._kept) > 1:
                taken -= self._kept.popitem(last=False)[1].bytes
        self._kept.move_to_end(key)
        return known
