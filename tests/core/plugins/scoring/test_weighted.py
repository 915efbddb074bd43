"""The mean of shares: two resources take a shorter way than others, with the same result."""

import numpy as np
import pytest

from asched.core.plugins.scoring.weighted import mean_share


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
