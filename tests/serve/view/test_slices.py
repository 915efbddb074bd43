"""Long looks in slices: all is seen once and in order, and others have their turn between."""

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asched.core.state.budget import SLICES_MAX, TOO_MUCH, Budget, OutOfTurn
from asched.serve.view.slices import SLICE, as_it_is, in_slices, in_turns, linked


def turns_of(waited: Awaitable[Any]) -> tuple[int, Any]:
    """How often others had their turn meanwhile, and what came of it."""
    look, turns = waited.__await__(), 0
    while True:
        try:
            yielded = next(look)
        except StopIteration as ended:
            return turns, ended.value
        assert yielded is None, "a turn for the others, not a wait for something"
        turns += 1


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 10, 11, 23])
def test_all_is_gone_through_with_a_turn_between_two_parts(count: int) -> None:
    async def gone_through() -> list[list[int]]:
        return [list(part) async for part in in_slices(range(count), 5)]

    turns, parts = turns_of(gone_through())

    assert [one for part in parts for one in part] == list(range(count))
    assert all(len(part) == 5 for part in parts[:-1])
    assert all(0 < len(part) <= 5 for part in parts)
    assert turns == max(len(parts) - 1, 0)


def test_parts_are_slices_unless_a_size_is_given() -> None:
    async def sizes() -> list[int]:
        return [len(part) async for part in in_slices(range(SLICE + 1))]

    assert turns_of(sizes()) == (1, [SLICE, 1])


def test_whoever_wants_it_as_it_is_waits_while_pods_are_only_supposed_to_be_gone() -> None:
    left = [True, True, True, False]

    class Supposed:
        is_supposed = property(lambda _: left.pop(0))

    assert turns_of(as_it_is(cast("Any", Supposed()))) == (3, None)
    assert not left


def test_histories_are_linked_to_their_end() -> None:
    left = [True, True, False]
    histories = cast("Any", SimpleNamespace(link=lambda: left.pop(0)))

    assert turns_of(linked(histories)) == (2, histories)
    assert not left


@pytest.mark.parametrize("failed", [0, 1, 5, SLICES_MAX - 1])
def test_work_is_begun_anew_with_a_whole_slice_until_it_comes_to_its_end(failed: int) -> None:
    budget, found = Budget(), []

    def work() -> str:
        found.append(budget.left)
        budget.charge(1)
        if len(found) <= failed:
            raise OutOfTurn("later")
        return "done"

    assert turns_of(in_turns(budget, work)) == (failed, "done")
    whole = Budget()
    whole.open()
    assert found == [whole.left] * (failed + 1)
    assert budget.left == Budget().left, "nobody counts any more"


def test_work_that_never_comes_to_its_end_costs_a_bounded_number_of_slices() -> None:
    budget, begun = Budget(), []

    def work() -> None:
        begun.append(1)
        raise OutOfTurn("later")

    with pytest.raises(OutOfTurn, match=TOO_MUCH):
        turns_of(in_turns(budget, work))
    assert len(begun) == SLICES_MAX
    assert budget.left == Budget().left
