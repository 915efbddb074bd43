"""Balance before and after, on numbers."""

import numpy as np
import numpy.typing as npt
import pytest

from asched.core.plugins.scoring.as_floats import AMOUNT_MAX
from asched.core.plugins.scoring.balanced_allocation import (
    balance,
    balance_of_two,
    balanced_allocation,
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


@pytest.mark.parametrize("most", [3, 9, 4000, 1 << 30, AMOUNT_MAX])
def test_two_resources_that_all_offer_take_a_shorter_way_to_the_same(most: int) -> None:
    random = np.random.default_rng(most)
    offered = random.integers(1, most, (2, 500), endpoint=True)
    held = random.integers(0, most, (2, 500), endpoint=True)
    asked = random.integers(0, most, 2)

    found = balance_of_two(held.astype(float), offered.astype(float), asked.tolist())

    assert found.tolist() == balance(held + asked[:, None], offered).tolist()
