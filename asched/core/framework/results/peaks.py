"""The largest entries of a ranking, found in a tree of blocks.

    totals int64[N] ──> peaks int64[N / 256] ──> int64[N / 65,536] ──> ... until there is one block

A changed row is propagated upwards, the best row is searched downwards: one block per level, so
that a decision among a million nodes reads three blocks. `asched_lab.measure.million`: 12 µs for
each, 720 if all rows are searched; at 100,000 nodes 12 and 52, at 5,000 nodes 7 and 4.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from asched.core.framework.results.draw import draw, draw_above, draw_again
from asched.core.model.arrays import I64, Indices

#: The entry of an infeasible row.
NOT_FEASIBLE: Final = np.iinfo(np.int64).min

#: Entries per block. Measured at 5,000 and 100,000 rows: 128 to 512 are within a microsecond of
#: each other.
BLOCK_ROWS: Final = 256


class Peaks:
    """The peaks of `totals`; call `renew` after changes."""

    def __init__(self, totals: I64) -> None:
        self._totals = totals
        self._levels: list[I64] = []
        self._make()

    def renew(self, rows: Iterable[int]) -> None:
        """Update after changes of these rows."""
        below, entries = self._totals, rows
        for level in self._levels:
            blocks = {entry // BLOCK_ROWS for entry in entries}
            for block in blocks:
                start = block * BLOCK_ROWS
                level[block] = np.maximum.reduce(below[start : start + BLOCK_ROWS])
            entries, below = blocks, level

    def choose(self, seed: int) -> int:
        """The row with the largest entry; the seed decides ties.

        First one of the blocks with such a row is drawn, from the top down, then a row.
        """
        start, level = 0, len(self._levels) - 1
        tops = self._tops(level, 0)
        best = tops[tops.argmax()]
        while level >= 0:
            tied = (tops == best).nonzero()[0]
            place = draw_above(seed, level, len(tied)) if level else draw(seed, len(tied))
            start = (start + tied.item(place)) * BLOCK_ROWS
            level -= 1
            tops = self._tops(level, start)
        tied = (tops == best).nonzero()[0]
        within: int = tied.item(draw_again(seed, len(tied)))
        return start + within

    def first(self, count: int) -> list[tuple[int, int]]:
        """(row, total) of the best rows, best first; fewer if fewer are feasible.

        They are in as many blocks, those with the largest peaks: few rows are scanned, once per
        result, since partial sorts are slow if many rows are equal.
        """
        blocks = np.sort(np.argsort(self._tops(0), kind="stable")[-count:])
        starts = (blocks * BLOCK_ROWS).tolist()
        rest = np.concatenate([self._tops(-1, start) for start in starts])
        found: list[tuple[int, int]] = []
        while len(found) < min(count, len(rest)):
            at = int(rest.argmax())
            total = rest.item(at)
            if total == NOT_FEASIBLE:
                break
            rest[at] = NOT_FEASIBLE
            found.append((starts[at // BLOCK_ROWS] + at % BLOCK_ROWS, total))
        return found

    def _make(self) -> None:
        below = self._totals
        while not self._levels or len(below) > BLOCK_ROWS:
            below = np.maximum.reduceat(below, np.arange(0, len(below), BLOCK_ROWS))
            self._levels.append(below)

    def _tops(self, level: int, start: int | None = None) -> I64:
        """A block of a level, or the whole level; level -1 has the rows."""
        entries = self._levels[level] if level >= 0 else self._totals
        return entries if start is None else entries[start : start + BLOCK_ROWS]


def drawn(seed: int, tied: Indices, height: int) -> int:
    """Of rows with the largest entry, in order, the one that `Peaks.choose` would return."""
    if len(tied) == 1:
        return tied.item()
    level, span = 0, BLOCK_ROWS
    while -(-height // span) > BLOCK_ROWS:
        level, span = level + 1, span * BLOCK_ROWS
    while level >= 0:
        blocks = tied // span
        begins = [0, *((blocks[1:] != blocks[:-1]).nonzero()[0] + 1).tolist(), len(tied)]
        count = len(begins) - 1
        place = draw_above(seed, level, count) if level else draw(seed, count)
        tied = tied[begins[place] : begins[place + 1]]
        level, span = level - 1, span // BLOCK_ROWS
    return tied.item(draw_again(seed, len(tied)))
