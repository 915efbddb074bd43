"""How many feasible nodes are enough, and which of them have their turn."""

import numpy as np
import pytest

from asched.core.framework.results.sampling import adaptive_count, wanted_count


@pytest.mark.parametrize(
    ("percentage", "candidates", "wanted"),
    [
        (50, 99, 99),
        (50, 100, 100),
        (50, 201, 100),
        (50, 1001, 500),
        (1, 5000, 100),
        (0, 5000, 5000),
        (100, 5000, 5000),
    ],
)
def test_a_percentage_and_never_fewer_than_a_hundred(
    percentage: int, candidates: int, wanted: int
) -> None:
    assert wanted_count(percentage, candidates) == wanted


@pytest.mark.parametrize(
    ("percentage", "candidates", "wanted"),
    [
        # upstream's own: 50 % less one for every 125 nodes, down to 5 %
        (0, 99, 99),
        (0, 100, 100),
        (0, 1000, 420),
        (0, 5000, 500),
        (0, 6000, 300),
        (0, 10_000, 500),
        (30, 1000, 300),
    ],
)
def test_without_one_fewer_the_more_nodes_there_are(
    percentage: int, candidates: int, wanted: int
) -> None:
    assert adaptive_count(percentage, candidates) == wanted


def feasible(size: int, *without: int) -> np.ndarray:
    mask = np.ones(size, dtype=np.bool_)
    mask[list(without)] = False
    return mask
