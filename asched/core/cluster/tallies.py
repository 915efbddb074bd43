"""Tallies: counts per row and per topology domain, updated one by one.

A tally stores its counts per row sparsely; the dense column over all rows, and the counts per value
of a label key, are made on first use and updated from then on. A domain costs nothing until it is
used, and decisions never iterate over pods.

`version` identifies a state of the counts: it is drawn from one counter for all tallies, so equal
versions mean equal counts. A trial draws versions that are not used again, and its end restores the
old ones.
"""

from itertools import count
from typing import Final

import numpy as np

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.nodes import AMOUNTS, NodeTable
from asched.core.model.arrays import I64

#: The counts of a label that no node has.
NOWHERE: Final[I64] = np.zeros(1, dtype=np.int64)
NOWHERE.flags.writeable = False
#: Changes that a tally stores: a reader that is further behind reads all. There are thousands of
#: tallies, and usually one change between two reads.
LOGGED_MAX: Final = 32
#: Arrays grow by this factor, so that a stream of new nodes does not copy them each time.
GROWTH: Final = 2


class TallyLedger:
    """Shared by all tallies of a cluster: the nodes, the counter of versions, the label keys in
    use.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.ticks = count(1)
        #: label keys by whose values any tally counts
        self.keys: set[str] = set()


class Tally:
    """Counts per row, and per domain for each topology key in use."""

    __slots__ = ("_by_row", "_dense", "_domains", "_ledger", "log", "total", "version")

    def __init__(self, ledger: TallyLedger) -> None:
        self._ledger = ledger
        self._by_row: dict[int, int] = {}
        self._dense: I64 | None = None
        self._domains: dict[str, I64] = {}
        self.total = 0
        self.version = next(ledger.ticks)
        #: the rows whose counts changed, in trials too
        self.log = RowLog(LOGGED_MAX)

    def move(self, row: int, amount: int) -> None:
        """Add an amount, possibly negative, at a row."""
        remaining = self._by_row.get(row, 0) + amount
        if remaining:
            self._by_row[row] = remaining
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
            value = self._ledger.nodes.label_column(key).ids.item(row)
            if value:
                if value >= len(counts):
                    counts = self._domains[key] = _grown(counts, value + 1)  # noqa: PLW2901
                counts[value] += amount

    def rows(self) -> I64:
        """int64[H] counts of all rows up to the table's height. Read-only; must not be stored."""
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

        At least as long as the column has values. Read-only; must not be stored: it changes.
        """
        column = self._ledger.nodes.label_column(key)
        counts = self._domains.get(key)
        if counts is None:
            if not self._ledger.nodes.is_carried(key):
                return NOWHERE
            self._ledger.keys.add(key)
            counts = np.zeros(len(column.values), dtype=np.int64)
            by_row, size = self._by_row, len(self._by_row)
            numbers = np.fromiter(by_row.values(), dtype=np.int64, count=size)
            np.add.at(counts, column.ids[np.fromiter(by_row, dtype=np.int64, count=size)], numbers)
            counts[0] = 0
            self._domains[key] = counts
        elif len(counts) < len(column.values):
            counts = self._domains[key] = _grown(counts, len(column.values))
        return counts[: len(column.values)]

    def of_domain(self, key: str, id_: int) -> int:
        """The count of one domain."""
        counts = self._domains.get(key, NOWHERE)
        return counts.item(id_) if id_ < len(counts) else self.domain(key).item(id_)

    def relabel(self, row: int, key: str) -> None:
        """A label value of a row has changed: if the row has counts, the key is summed again on
        next use.
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
