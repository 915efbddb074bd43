"""The budget of work: what a slice grants, and when it is used up."""

import math

import pytest

from asched.core.state.budget import SLICE_STEPS, TOO_MUCH, Budget, OutOfTurn


def test_nobody_counts_outside_of_turns() -> None:
    budget = Budget()
    budget.charge(1e9)
    assert not budget.is_used_up
    assert budget.spent == 1e9


def test_a_slice_is_used_up_step_by_step() -> None:
    budget = Budget()
    budget.open(3)
    budget.charge(1)
    budget.charge(1.5)
    assert not budget.is_used_up
    assert budget.left == 0.5
    budget.charge(0.5)
    assert budget.is_used_up
    with pytest.raises(OutOfTurn):
        budget.charge(0.1)
    assert budget.spent == 3, "what was refused was not done"


def test_the_first_part_is_granted_however_large() -> None:
    budget = Budget()
    budget.open()
    assert budget.left == SLICE_STEPS
    budget.charge(10 * SLICE_STEPS)
    with pytest.raises(OutOfTurn):
        budget.charge(1)


def test_what_cannot_be_put_off_puts_off_what_follows() -> None:
    budget = Budget()
    budget.open(2)
    budget.note(5)
    assert (budget.left, budget.is_used_up) == (-3, True)
    with pytest.raises(OutOfTurn):
        budget.charge(1)


def test_the_next_slice_begins_anew_and_closing_ends_the_count() -> None:
    budget = Budget()
    budget.open(1)
    budget.note(5)
    budget.open(2)
    assert budget.left == 2
    budget.close()
    assert budget.left == math.inf
    assert budget.spent == 5


def test_who_is_out_of_turn_is_told_what_took_so_long() -> None:
    budget = Budget()
    budget.open(0)
    with pytest.raises(OutOfTurn, match="the search for devices"):
        budget.charge(1, "the search for devices")
    with pytest.raises(OutOfTurn, match=TOO_MUCH):
        budget.charge(1)
