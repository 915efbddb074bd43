"""The best rows are found without a look at all of them; whichever are equal have their turn."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asched.core.framework.results.ranking import BLOCK_ROWS, NOT_FEASIBLE, Peaks, PeaksByDomain

#: Three levels: a block of blocks, and a few more.
LARGE = BLOCK_ROWS**2 + 3 * BLOCK_ROWS + 7
DOMAINS = 4


class Rows:
    """Totals of rows that move, and what `Feasible` knows of them, by hand."""

    def __init__(self, seed: int, size: int, *, by_domain: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = int(self.rng.integers(1, 40))
        self.totals = self.rng.integers(0, self.values, size).astype(np.int64)
        self.totals[self.rng.random(size) < self.rng.random()] = NOT_FEASIBLE
        self.totals[0] = 0
        self.domains = self.rng.integers(0, DOMAINS, size).astype(np.int32)
        self.feasible: Any = SimpleNamespace(counts=np.zeros(DOMAINS, dtype=np.int64))
        self.is_apart = by_domain
        self.open(range(DOMAINS))
        self.peaks = PeaksByDomain(self.totals, self.feasible) if by_domain else Peaks(self.totals)

    def open(self, ids: Any) -> None:
        feasible = self.feasible
        feasible.open_ids = np.array(sorted(ids), dtype=np.intp)
        feasible.is_open = np.isin(np.arange(DOMAINS + 1), feasible.open_ids)
        feasible.is_open[DOMAINS] = False
        feasible.domain_of = np.where(self.totals == NOT_FEASIBLE, np.int32(-1), self.domains)

    def move(self, count: int) -> None:
        rows = self.rng.integers(0, len(self.totals), count).tolist()
        for row in rows:
            fits = self.rng.random() < 0.8
            self.totals[row] = self.rng.integers(0, self.values) if fits else NOT_FEASIBLE
            self.domains[row] = self.rng.integers(0, DOMAINS)
        self.open(self.feasible.open_ids)
        self.peaks.renew(rows)

    def mask(self) -> np.ndarray:
        """By a look at every row."""
        if not self.is_apart:
            return self.totals
        is_open = np.isin(self.domains, self.feasible.open_ids)
        return np.where(is_open, self.totals, NOT_FEASIBLE)


@pytest.mark.parametrize("size", [1, 200, 5000, LARGE])
@pytest.mark.parametrize("by_domain", [False, True], ids=["all", "by domain"])
@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_row_is_one_of_the_best_however_rows_moved(
    seed: int, by_domain: bool, size: int
) -> None:
    rows = Rows(seed, size, by_domain=by_domain)
    for step in range(40):
        if step % 3 == 0:
            some = rows.rng.permutation(DOMAINS)[: int(rows.rng.integers(1, DOMAINS + 1))]
            rows.open(some.tolist())
        rows.move(int(rows.rng.choice((1, 2, 30))))
        totals = rows.mask()
        best = totals.max()
        if best != NOT_FEASIBLE:
            assert totals[rows.peaks.choose(step)] == best


@pytest.mark.parametrize("by_domain", [False, True], ids=["all", "by domain"])
@pytest.mark.parametrize("size", [100, 3000, LARGE])
def test_equals_have_their_turn(size: int, by_domain: bool) -> None:
    rows = Rows(0, size, by_domain=by_domain)
    rows.totals[:] = 1
    tied = [0, size // 3, size // 2, size - 1]
    rows.totals[tied] = 7
    rows.domains[tied] = [0, 1, 0, 1]
    rows.open([0, 1])
    rows.peaks.renew(range(size))
    chosen = Counter(rows.peaks.choose(seed) for seed in range(2000))
    assert sorted(chosen) == tied
    assert min(chosen.values()) > 200
