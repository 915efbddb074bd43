"""A list made in slices holds what it would hold if it were made at once."""

import pytest

from asched.core.state.budget import Budget, OutOfTurn
from asched.core.state.gradual import CHUNK, FEW, Gradual


def slices_of(parts: int, steps: float = 1.0) -> tuple[int, list[int]]:
    budget, made = Budget(), []

    def make(part: int) -> int:
        made.append(part)
        return 2 * part

    gradual = Gradual(budget, range(parts), make, steps)
    for slices in range(1, 1000):
        budget.open(1)
        try:
            found = gradual.all()
        except OutOfTurn:
            continue
        assert made == list(range(parts)), "each part is made once"
        return slices, found
    raise AssertionError("it never ends")


@pytest.mark.parametrize("parts", [0, 1, FEW, FEW + 1, 3 * CHUNK, 3 * CHUNK + 1])
def test_every_part_is_made_once_and_in_order(parts: int) -> None:
    slices, found = slices_of(parts)

    assert found == [2 * part for part in range(parts)]
    assert slices == (1 if parts <= FEW else -(-parts // CHUNK))


@pytest.mark.parametrize("parts", [FEW, FEW + 1])
def test_of_few_parts_the_budget_does_not_hear(parts: int) -> None:
    budget = Budget()
    Gradual(budget, range(parts), str, steps=2.0).all()
    assert budget.spent == (0.0 if parts == FEW else 2.0 * parts)


def test_a_part_that_cannot_be_made_is_tried_again_by_whoever_asks_again() -> None:
    asked = []

    def make(part: int) -> int:
        asked.append(part)
        if part == 2:
            raise ValueError(part)
        return part

    gradual = Gradual(Budget(), range(4), make)
    for _ in range(2):
        with pytest.raises(ValueError, match="2"):
            gradual.all()
    assert asked == [0, 1, 2, 2]
