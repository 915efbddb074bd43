"""What is kept by row, and the one way in which it is brought up to date.

An input has a version: a log of rows has its end, everything else a value that differs once the
input has moved. A result has inputs and remembers the versions it was made from. When it is asked
for, it is

    left as it is    if no input has moved
    made row by row  if logs name a few rows that changed in what it reads of them
    made wholly      if a value differs, the logs name many rows, or rows came or went

A result is itself an input of others: its `full_version` moves whenever all of its rows were made
anew. Rows that were made one by one need no telling: whoever reads the result reads its logs too.
"""

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from asched.core.state.change_log import RowLog
from asched.core.state.nodes import ALL_ASPECTS, NodeTable

A = TypeVar("A")

Rows = tuple[int, ...]

#: Beyond this share of all rows a full pass is cheaper than gathering the changed ones. Measured
#: with the resource kernels at 5,000 rows: gathering costs three times the pass over these.
FULL_PASS_SHARE: Final = 0.3
#: So few rows are never made wholly.
ROWS_FEW: Final = 8

_NO_ENDS: Final[list[int]] = []
#: The version of what was never made, or failed half-way. Equal to no other.
_NEVER: Final = object()


class ByRow(ABC, Generic[A]):
    """Something kept for every row. `A` is whom it is made for: whoever asks for it hands that in.

    It reads `aspects` of the node table's rows, and all of what `logs` tell. Which these are may
    change whenever everything is made anew.
    """

    __slots__ = (
        "_cursor",
        "_ends",
        "_height",
        "_nodes",
        "_version",
        "aspects",
        "full_version",
        "logs",
    )

    def __init__(self, nodes: NodeTable, aspects: int, *logs: RowLog) -> None:
        self._nodes = nodes
        self.aspects = aspects
        self.logs = logs
        self._cursor = self._height = -2
        self._ends: list[int] = []
        self._version: object = _NEVER
        #: moves whenever every row was made anew
        self.full_version = 0

    def update(self, asked: A, version: object = None) -> None:
        """Bring every row up to date. `version`: of all inputs that no log tells of.

        What fails half-way is made wholly next time.
        """
        nodes = self._nodes
        log, height = nodes.log, nodes.height
        end, ends = log.end, [log.end for log in self.logs] if self.logs else _NO_ENDS
        rows: Rows | None = None
        if height == self._height and version == self._version:
            if end == self._cursor and ends == self._ends:
                return
            if end == self._cursor + 1:  # mostly: the place of one pod
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
                ends = [log.end for log in self.logs]
            self._version, self._height = version, height
        self._cursor, self._ends = end, ends

    def _with_logged(self, rows: Rows | None) -> Rows | None:
        """These rows and those that the logs name."""
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
        """Make every row anew."""

    @abstractmethod
    def _make_rows(self, asked: A, rows: Rows) -> bool:
        """Make these anew, one at least; False if it has to be done wholly after all."""
