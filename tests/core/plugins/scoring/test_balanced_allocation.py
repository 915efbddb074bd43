"""Balance before and after, on numbers."""

from math import sqrt

import numpy as np
import numpy.typing as npt
import pytest

from asched.core.plugins.scoring.as_floats import AMOUNT_MAX
from asched.core.plugins.scoring.balanced_allocation import (
    balance,
    balance_of_two,
    balance_one,
    balanced_allocation,
    balanced_allocation_one,
)

I64 = npt.NDArray[np.int64]


def column(*amounts: int) -> I64:
    """One node: int64[R, 1]."""
    return np.array(amounts, dtype=np.int64)[:, None]


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("cpu 0 to 75 %, memory 0 to 50 %", (0, 0), (75, 50), 68),
        ("cpu 30 to 60 %, memory 0 to 25 %", (30, 0), (60, 25), 73),
        ("cpu 25 %, memory 25 to 50 %", (25, 25), (25, 50), 68),
        ("cpu 100 %, memory 0 to 100 %", (100, 0), (100, 100), 100),
        ("cpu 0 %, memory 0 to 100 %", (0, 0), (0, 100), 50),
        ("even before and after", (10, 10), (60, 60), 75),
        ("more than all is all", (150, 100), (250, 300), 75),
    ],
)
def test_balance(name: str, before: tuple[int, int], after: tuple[int, int], expected: int) -> None:
    amounts = column(*after) - column(*before)

    assert balanced_allocation(column(*before), amounts, column(100, 100)).tolist() == [expected]


def test_balance_needs_two_resources() -> None:
    assert balanced_allocation(column(10), column(70), column(100)).tolist() == [75]
    assert balanced_allocation(column(10, 0), column(70, 9), column(100, 0)).tolist() == [75]
    none = np.zeros((0, 1), dtype=np.int64)
    assert balanced_allocation(none, none, none).tolist() == [75]


def test_the_two_that_are_offered_are_compared_whichever_they_are() -> None:
    requested, amounts = column(0, 5, 0), column(75, 5, 50)

    assert balanced_allocation(requested, amounts, column(100, 0, 100)).tolist() == [68]


def by_the_rule(requested: list[int], allocatable: list[int]) -> int:
    """A hundredfold of 1 less the deviation of the shares in use, of what a node offers."""
    shares = [min(1.0, h / o) for h, o in zip(requested, allocatable, strict=True) if o]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs(shares[0] - shares[1]) / 2) * 100)
    mean, squares = 0.0, 0.0
    for share in shares:
        mean += share
    mean /= len(shares)
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - sqrt(squares / len(shares))) * 100)


@pytest.mark.parametrize("resources", [1, 2, 3, 4])
def test_many_nodes_together_and_each_alone_are_scored_by_the_rule(resources: int) -> None:
    random = np.random.default_rng(resources)
    shape = (resources, 300)
    requested, allocatable = random.integers(0, 12, shape), random.integers(0, 10, shape)
    amounts = random.integers(1, 6, (resources, 1))
    points = balanced_allocation(requested, amounts, allocatable).tolist()
    for node, found in enumerate(points):
        held, offered = requested[:, node].tolist(), allocatable[:, node].tolist()
        more = amounts[:, 0].tolist()
        with_pod = [have + amount for have, amount in zip(held, more, strict=True)]
        gain = by_the_rule(with_pod, offered) - by_the_rule(held, offered)
        assert found == 50 + (50 + gain) // 2
        if resources == 2 and all(offered):
            assert balanced_allocation_one(held, more, offered) == found
            assert balance_one(held, offered) == by_the_rule(held, offered)


@pytest.mark.parametrize("most", [3, 9, 4000, 1 << 30, AMOUNT_MAX])
def test_two_resources_that_all_offer_take_a_shorter_way_to_the_same(most: int) -> None:
    random = np.random.default_rng(most)
    offered = random.integers(1, most, (2, 500), endpoint=True)
    held = random.integers(0, most, (2, 500), endpoint=True)
    asked = random.integers(0, most, 2)

    found = balance_of_two(held.astype(float), offered.astype(float), asked.tolist())

    assert found.tolist() == balance(held + asked[:, None], offered).tolist()
