"""Views of nodes for rules: all rows, or some of them, through the same read-only columns.

A rule written for a view works in three cases: a full pass over the cluster, the few rows that
changed, and one row with pods removed or added tentatively.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import LabelColumn, NodeTable
from asched.core.model.arrays import I32, I64, Mask
from asched.core.model.node import Node
from asched.core.model.quantity import INT64_MAX


class NodeView:
    """M rows of the node table. `rows` is int32[M] of row numbers, or None for all rows in order.

    Columns are arrays [M] (amounts: [R, M]), new at every call: a view must not be used after the
    attempt.
    """

    __slots__ = ("_index", "_table", "rows", "size")

    def __init__(self, table: NodeTable, rows: I32 | None = None) -> None:
        self._table = table
        self.rows = rows
        self._index: Any = slice(0, table.height) if rows is None else rows
        self.size = table.height if rows is None else len(rows)

    @property
    def table(self) -> NodeTable:
        """Vocabularies and the table's other public parts."""
        return self._table

    @property
    def total(self) -> int:
        """The number of live nodes of the whole cluster, whatever rows this view has."""
        return self._table.count

    @property
    def live(self) -> Mask:
        found: Mask = self._table.columns.read("live")[self._index]
        return found

    @property
    def unschedulable(self) -> Mask:
        found: Mask = self._table.columns.read("unschedulable")[self._index]
        return found

    @property
    def pod_count(self) -> I64:
        found: I64 = self._table.columns.read("pod_count")[self._index]
        return found

    @property
    def allowed_pods(self) -> I64:
        found: I64 = self._table.columns.read("allowed_pods")[self._index]
        return found

    @property
    def taint_set(self) -> I32:
        """Ids into `table.taint_sets`."""
        found: I32 = self._table.columns.read("taint_set")[self._index]
        return found

    @property
    def feature_set(self) -> I32:
        """Ids into `table.feature_sets`."""
        found: I32 = self._table.columns.read("feature_set")[self._index]
        return found

    def allocatable(self, resource: int | slice) -> I64:
        """int64[M] of one resource (a row of axis R); int64[R, M] for a slice of that axis."""
        return self._table.columns.read("allocatable")[resource, self._index]

    def requested(self, resource: int | slice) -> I64:
        """int64[M]: the exact sums of the requests of the pods."""
        return self._table.columns.read("requested")[resource, self._index]

    def nonzero(self, resource: int | slice) -> I64:
        """int64[M] for cpu (0) or memory (1): the requests, with the defaults for scoring."""
        return self._table.columns.read("nonzero")[resource, self._index]

    def label(self, key: str) -> tuple[I32, LabelColumn]:
        """Ids of the label's values [M] (0: absent), and the column with the values."""
        column = self._table.label_column(key)
        return column.ids[self._index], column

    def gather(self, by_row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The entries of an array over all rows (at least `height` long) for the rows of this
        view.
        """
        found: npt.NDArray[Any] = by_row[self._index]
        return found

    def row_numbers(self) -> I32:
        """int32[M] of row numbers, also for the view of all rows."""
        return np.arange(self.size, dtype=np.int32) if self.rows is None else self.rows

    def positions(self, rows: set[int]) -> Mask:
        """bool[M]: which of this view's rows are in a set."""
        marks = np.zeros(self._table.height, dtype=np.bool_)
        if rows:
            marks[list(rows)] = True
        found: Mask = marks[self._index]
        return found

    def position_of(self, name: str) -> int | None:
        """The position of a node in this view."""
        row = self._table.row_of.get(name)
        if row is None or self.rows is None:
            return row
        positions = np.flatnonzero(self.rows == row)
        return int(positions[0]) if len(positions) else None

    def nodes(self) -> Iterator[tuple[int, Node | None]]:
        """(row, node) of each row of the view; None for a dead row.

        A loop: only for per-node plugins.
        """
        for row in self.row_numbers():
            yield int(row), self._table.node_at[row]


class SupposedView(NodeView):
    """Rows with some more pods, or fewer.

    Only requests and the number of pods differ (`requested`, `pod_count`), by `more` int64[R, M]
    (or integers of any size, as objects) and `more_pods` int64[M]; both may be negative.
    """

    __slots__ = ("_more", "_more_pods")

    def __init__(self, table: NodeTable, rows: I32, more: I64, more_pods: I64) -> None:
        super().__init__(table, rows)
        self._more = more
        self._more_pods = more_pods

    @property
    def pod_count(self) -> I64:
        return super().pod_count + self._more_pods

    def requested(self, resource: int | slice) -> I64:
        found: I64 = with_more(super().requested(resource), self._more[resource])
        return found


def with_more(held: I64, more: I64 | np.int64) -> I64:
    """`held + more`, limited to the largest amount instead of overflowing; `held` is not negative.
    Integers of any size, as objects, are limited to 64 bits.
    """
    total: I64
    if more.dtype != np.object_ and held.size:
        largest = int(more.max())
        if largest <= 0 or int(held.max()) <= INT64_MAX - largest:
            return held + more  # the usual case, three times as fast
    if more.dtype == np.object_:
        total = np.clip(held + more, -INT64_MAX, INT64_MAX).astype(np.int64)
    else:
        total = np.minimum(held, INT64_MAX - np.maximum(more, 0)) + more
    return total
