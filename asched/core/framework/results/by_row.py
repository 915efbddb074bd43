"""Results by row, and how they are updated.

An input has a version: the end of a log of rows, or a value that changes with the input. A result
has inputs and stores the versions it was made from. When it is read, it is

    unchanged            if no input has changed
    updated by row       if logs name a few rows whose relevant aspects changed
    made completely      if a value differs, the logs name many rows, or rows came or went

A result can be an input of another: its `full_version` changes whenever all of its rows were made.
Single rows are not reported: readers of the result read its logs, too.
"""

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import ALL_ASPECTS, NodeTable

A = TypeVar("A")

Rows = tuple[int, ...]

#: Above this share of all rows a full pass is cheaper than gathering the changed rows. Measured
#: with the resource kernels at 5,000 rows: gathering costs three times the pass over these rows.
FULL_PASS_SHARE: Final = 0.3
#: Up to this number rows are always updated one by one.
ROWS_FEW: Final = 8

_NO_ENDS: Final[list[int]] = []
#: The version of a result that was never made, or failed while being made. Equal to no other.
_NEVER: Final = object()


class ByRow(ABC, Generic[A]):
    """A value for every row. `A` is the argument for making it, passed by the reader.

    It reads `aspects` of the node table's rows, and all rows in `logs`. Both may change whenever
    all rows are made.
    """

    def __init__(self, nodes: NodeTable, aspects: int, *logs: RowLog) -> None:
        self._nodes = nodes
        self.aspects = aspects
        self.logs = logs
        self._cursor = self._height = -2
        self._ends: list[int] = []
        self._version: object = _NEVER
        #: changes whenever all rows were made
        self.full_version = 0

    def update(self, asked: A, version: object = None) -> None:
        """Update every row. `version`: of all inputs without a log.

        A result that fails while being made is made completely next time.
        """
        nodes = self._nodes
        log, height = nodes.log, nodes.height
        end, ends = log.end, [log.end for log in self.logs] if self.logs else _NO_ENDS
        rows: Rows | None = None
        if height == self._height and version == self._version:
            if end == self._cursor and ends == self._ends:
                return
            if end == self._cursor + 1:  # usually one pod was placed
                row, touched = log.last
                rows = (row,) if touched & self.aspects else ()
            else:
                rows = log.rows(self._cursor, self.aspects)
            if ends != self._ends:
                rows = self._with_logged(rows)
            if rows is not None and ROWS_FEW < len(rows) > height * FULL_PASS_SHARE:
                rows = None
        if rows is None or rows:
            self._version = _NEVER
            if rows is None or not self._make_rows(asked, rows):
                self._make_all(asked)
                self.full_version += 1
                ends = [log.end for log in self.logs] if self.logs else _NO_ENDS
            self._version, self._height = version, height
        self._cursor, self._ends = end, ends

    def _with_logged(self, rows: Rows | None) -> Rows | None:
        """These rows and those in the logs."""
        if rows is None:
            return None
        found = set(rows)
        for log, cursor in zip(self.logs, self._ends, strict=True):
            more = log.rows(cursor, ALL_ASPECTS)
            if more is None:
                return None
            found.update(more)
        return tuple(found)

    @abstractmethod
    def _make_all(self, asked: A) -> None:
        """Make all rows."""

    @abstractmethod
    def _make_rows(self, asked: A, rows: Rows) -> bool:
        """Make these rows, at least one; False if all rows must be made after all."""
