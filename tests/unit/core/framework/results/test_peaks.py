"""The best rows are found without a look at all of them; whichever are equal have their turn."""

from collections import Counter

import numpy as np
import pytest

from asched.core.framework.results.peaks import BLOCK_ROWS, NOT_FEASIBLE, Peaks

#: Three levels: a block of blocks, and a few more.
LARGE = BLOCK_ROWS**2 + 3 * BLOCK_ROWS + 7


class Rows:
    """Totals of rows that move."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = int(self.rng.integers(1, 40))
        self.totals = self.rng.integers(0, self.values, size).astype(np.int64)
        self.totals[self.rng.random(size) < self.rng.random()] = NOT_FEASIBLE
        self.totals[0] = 0
        self.peaks = Peaks(self.totals)

    def move(self, count: int) -> None:
        rows = self.rng.integers(0, len(self.totals), count).tolist()
        for row in rows:
            fits = self.rng.random() < 0.8
            self.totals[row] = self.rng.integers(0, self.values) if fits else NOT_FEASIBLE
        self.peaks.renew(rows)


@pytest.mark.parametrize("size", [1, 200, 5000, LARGE])
@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_row_is_one_of_the_best_however_rows_moved(seed: int, size: int) -> None:
    rows = Rows(seed, size)
    for step in range(40):
        rows.move(int(rows.rng.choice((1, 2, 30))))
        best = rows.totals.max()
        if best != NOT_FEASIBLE:
            assert rows.totals[rows.peaks.choose(step)] == best


@pytest.mark.parametrize("size", [100, 3000, LARGE])
def test_equals_have_their_turn(size: int) -> None:
    rows = Rows(0, size)
    rows.totals[:] = 1
    tied = [0, size // 3, size // 2, size - 1]
    rows.totals[tied] = 7
    rows.peaks.renew(range(size))
    chosen = Counter(rows.peaks.choose(seed) for seed in range(2000))
    assert sorted(chosen) == tied
    assert min(chosen.values()) > 200
