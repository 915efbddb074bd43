"""How many feasible nodes are enough, and which of them have their turn."""

import numpy as np
import pytest

from asched.core.framework.results.sampling import Sampler, adaptive_count, wanted_count


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


def rows(sample: np.ndarray | None) -> list[int]:
    assert sample is not None
    return np.flatnonzero(sample).tolist()


def test_samples_go_round() -> None:
    sampler = Sampler(50)
    mask = feasible(300)
    assert rows(sampler.sample(mask, 300, 300)) == list(range(150))
    assert rows(sampler.sample(mask, 300, 300)) == list(range(150, 300))
    assert rows(sampler.sample(mask, 300, 300)) == list(range(150))


def test_rows_that_do_not_fit_are_passed_over_and_the_end_is_no_end() -> None:
    sampler = Sampler(50)
    mask = feasible(300, 0, 1)
    assert rows(sampler.sample(mask, 298, 300)) == list(range(2, 152))
    found = rows(sampler.sample(mask, 298, 300))
    assert found == [2, 3, *range(152, 300)]


@pytest.mark.parametrize("percentage", [0, 100])
def test_all_of_them_are_no_sample(percentage: int) -> None:
    assert Sampler(percentage).sample(feasible(300), 300, 300) is None


def test_where_no_more_fit_than_are_wanted_all_are_taken() -> None:
    sampler = Sampler(50)
    mask = feasible(300, *range(150))
    assert sampler.sample(mask, 150, 300) is None
    mask[0] = True
    assert len(rows(sampler.sample(mask, 151, 300))) == 150
