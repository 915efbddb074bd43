"""Tallies: how many of something are on each row and in each topology domain, moved one by one.

A tally keeps its counts per row sparsely; the dense column over all rows, and the counts per value
of a label key, are made when somebody first asks for them and are kept up to date from then on. A
domain costs nothing until it is asked for, and a decision never looks at pods.

`version` names a state of the counts: it is drawn from one clock for all tallies, so equal versions
mean equal counts. A trial draws versions that nobody will see again, and its end puts the old ones
back.
"""

from itertools import count
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.state.change_log import RowLog
from asched.core.state.nodes import AMOUNTS, NodeTable

I64 = npt.NDArray[np.int64]

#: The counts of a label that no node has.
NOWHERE: Final[I64] = np.zeros(1, dtype=np.int64)
NOWHERE.flags.writeable = False
#: Moves that a tally remembers: who has missed more looks at all of it. There are thousands of
#: tallies, and mostly one move between two looks.
LOGGED_MAX: Final = 32
#: Arrays grow by this factor, so that a stream of new nodes does not copy them each time.
GROWTH: Final = 2


class TallyLedger:
    """What all tallies of a cluster share: the nodes, the clock of versions, the label keys in
    use.
    """

    __slots__ = ("keys", "nodes", "ticks")

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.ticks = count(1)
        #: label keys by whose values some tally keeps counts
        self.keys: set[str] = set()


class Tally:
    """Counts per row, and per domain for each topology key that was asked for."""

    __slots__ = ("_by_row", "_dense", "_domains", "_ledger", "log", "total", "version")

    def __init__(self, ledger: TallyLedger) -> None:
        self._ledger = ledger
        self._by_row: dict[int, int] = {}
        self._dense: I64 | None = None
        self._domains: dict[str, I64] = {}
        self.total = 0
        self.version = next(ledger.ticks)
        #: the rows on which counts moved, in trials too
        self.log = RowLog(LOGGED_MAX)

    def move(self, row: int, amount: int) -> None:
        """Add (or with a negative amount take away) at a row."""
        left = self._by_row.get(row, 0) + amount
        if left:
            self._by_row[row] = left
        else:
            self._by_row.pop(row, None)
        self.total += amount
        self.version = next(self._ledger.ticks)
        self.log.add(row, AMOUNTS)
        if self._dense is not None:
            if row >= len(self._dense):
                self._dense = _grown(self._dense, self._ledger.nodes.columns.capacity)
            self._dense[row] += amount
        for key, counts in self._domains.items():
            value = int(self._ledger.nodes.label_column(key).ids[row])
            if value:
                if value >= len(counts):
                    counts = self._domains[key] = _grown(counts, value + 1)  # noqa: PLW2901
                counts[value] += amount

    def rows(self) -> I64:
        """int64[H] counts for all rows up to the table's height. Only to be read, and not kept."""
        nodes = self._ledger.nodes
        if self._dense is None:
            self._dense = np.zeros(nodes.columns.capacity, dtype=np.int64)
            for row, number in self._by_row.items():
                self._dense[row] = number
        elif len(self._dense) < nodes.height:
            self._dense = _grown(self._dense, nodes.columns.capacity)
        elif len(self._dense) > GROWTH * nodes.columns.capacity:
            self._dense = self._dense[: nodes.columns.capacity].copy()
        return self._dense[: nodes.height]

    def at(self, row: int) -> int:
        """The count of one row."""
        return self._by_row.get(row, 0)

    def domain(self, key: str) -> I64:
        """int64[D] counts per value id of a label key; index 0 (no such label) is always 0.

        At least as long as the column has values. Only to be read, and not kept: it moves in place.
        """
        column = self._ledger.nodes.label_column(key)
        counts = self._domains.get(key)
        if counts is None:
            if not self._ledger.nodes.is_carried(key):
                return NOWHERE
            self._ledger.keys.add(key)
            counts = np.zeros(len(column.values), dtype=np.int64)
            for row, number in self._by_row.items():
                counts[column.ids[row]] += number
            counts[0] = 0
            self._domains[key] = counts
        elif len(counts) < len(column.values):
            counts = self._domains[key] = _grown(counts, len(column.values))
        return counts[: len(column.values)]

    def relabel(self, row: int, key: str) -> None:
        """A row that may hold some has another value of a label now: the key is summed anew when
        next asked for.
        """
        if row in self._by_row and self._domains.pop(key, None) is not None:
            self.version = next(self._ledger.ticks)
            self.log.forget()

    def forget(self, key: str) -> None:
        """No node has the label any more."""
        if self._domains.pop(key, None) is not None:
            self.version = next(self._ledger.ticks)
            self.log.forget()


def _grown(counts: I64, size: int) -> I64:
    fresh = np.zeros(max(size, GROWTH * len(counts)), dtype=np.int64)
    fresh[: len(counts)] = counts
    return fresh
