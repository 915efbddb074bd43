"""The mean of shares: two resources take a shorter way than others, with the same result."""

import numpy as np
import pytest

from asched.core.plugins.scoring.as_floats import AMOUNT_MAX
from asched.core.plugins.scoring.least_allocated import least_allocated
from asched.core.plugins.scoring.most_allocated import most_allocated
from asched.core.plugins.scoring.weighted import mean_of_two, mean_share


@pytest.mark.parametrize("resources", range(1, 5))
def test_the_mean_is_that_of_each_row_alone(resources: int) -> None:
    random = np.random.default_rng(resources)
    allocatable = random.integers(0, 9, (resources, 200))
    parts = np.minimum(random.integers(0, 9, (resources, 200)), allocatable)
    weights = random.integers(1, 4, resources)

    means = mean_share(parts.copy(), allocatable, weights).tolist()

    for part, offered, mean in zip(parts.T.tolist(), allocatable.T.tolist(), means, strict=True):
        kept = [(w, p * 100 // a) for w, p, a in zip(weights, part, offered, strict=True) if a]
        total = sum(weight for weight, _ in kept)
        assert mean == (sum(w * points for w, points in kept) // total if total else 0)


def test_no_resource_gives_nothing() -> None:
    nothing = np.zeros((0, 2), dtype=np.int64)

    assert mean_share(nothing, nothing, np.zeros(0, dtype=np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_two_resources_that_all_offer_take_a_shorter_way_to_the_same(seed: int) -> None:
    """Small amounts, so that many shares are whole; large ones up to what floats hold."""
    random = np.random.default_rng(seed)
    most = (9, 4000, 1 << 30, AMOUNT_MAX)[seed]
    offered = random.integers(1, most, (2, 500), endpoint=True)
    held = random.integers(0, most, (2, 500), endpoint=True)
    asked = random.integers(0, most, 2)
    some = random.integers(1, 100, 2, endpoint=True)

    for weights in (some, np.array((1, 1)), np.array((2, 1)), np.array((1, 2)), np.array((2, 2))):
        for parts, step, kernel in (
            ((offered - held) * 100.0, -100.0, least_allocated),
            (held * 100.0, 100.0, most_allocated),
        ):
            more = (step * asked).tolist()
            found = mean_of_two(parts, offered.astype(float), more, weights.tolist())
            assert found.tolist() == kernel(held + asked[:, None], offered, weights).tolist()
