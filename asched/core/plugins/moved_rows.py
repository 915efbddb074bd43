"""From changed counts to the rows about which a rule has a new verdict.

A rule that counts pods of a domain gives a verdict per domain. One more pod changes the counts of
one domain for each topology key, and only rows of domains whose verdict changed are logged.
"""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import ALL_ASPECTS, LabelColumn, NodeTable
from asched.core.cluster.tallies import Tally
from asched.core.framework.results.feasible import CHANGED_KEPT, CHANGED_MAX
from asched.core.model.arrays import Indices

A = TypeVar("A", bound=np.generic)

NO_ROWS: Final[tuple[int, ...]] = ()


class CountsSeen:
    """The versions of some tallies when they were last read."""

    def __init__(self) -> None:
        self._tallies: Sequence[Tally] = ()
        self._versions: list[int] = []
        self._ends: list[int] = []

    def rows(self, tallies: Sequence[Tally]) -> Iterable[int] | None:
        """Rows whose counts changed since the last call; None if unknown, or if the tallies are not
        those of the last call.
        """
        versions = [tally.version for tally in tallies]
        if versions == self._versions:
            return NO_ROWS
        before, ends = self._ends, [tally.log.end for tally in tallies]
        is_same = tallies is self._tallies or (
            len(tallies) == len(self._tallies) and all(map(is_, tallies, self._tallies))
        )
        self._tallies, self._versions, self._ends = tallies, versions, ends
        if not is_same:
            return None
        found: set[int] = set()
        for tally, cursor, end in zip(tallies, before, ends, strict=True):
            if cursor != end:
                rows = tally.log.rows(cursor, ALL_ASPECTS)
                if rows is None:
                    return None
                found.update(rows)
        return found


class MovedRows(RowLog):
    """For `PreFilterResult.moved`."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(CHANGED_KEPT)
        self._nodes = nodes

    def turn(self, column: LabelColumn, ids: Iterable[int]) -> None:
        """Record a changed verdict for these values of a label."""
        shown = column.ids[: self._nodes.height]
        for id_ in ids:
            if not id_ or column.values.held(id_) > CHANGED_MAX:
                self.forget()
                return
            self.add_all((shown == id_).nonzero()[0].tolist(), ALL_ASPECTS)

    def turn_row(self, row: int, column: LabelColumn, id_: int) -> None:
        """The same for the value of a row, usually the only row with that value."""
        if id_ and column.values.held(id_) == 1:
            self.add(row, ALL_ASPECTS)
        else:
            self.turn(column, (id_,))


def difference(before: npt.NDArray[A], after: npt.NDArray[A]) -> Indices:
    """Ids at which two arrays differ; missing entries are zero. Rows with an id newer than `before`
    had their label changed, and are known from that.
    """
    common = min(len(before), len(after))
    changed = (before[:common] != after[:common]).nonzero()[0]
    longer = before if len(before) > common else after
    return np.concatenate((changed, longer[common:].nonzero()[0] + common))
