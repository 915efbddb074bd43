"""The search on a board of its own: places, proofs, and what is left behind when it must stop."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from asched.core.gang.problem import I64, Infeasible, Mask, Unknown
from asched.core.gang.search import SPENT, Choice, search


class Shelf:
    """Rows with room for sizes. `first`: class 0 may come only after class 1 (an order matters)."""

    def __init__(
        self,
        room: list[int],
        sizes: list[int],
        counts: tuple[int, ...],
        needed: int,
        *,
        first: bool = False,
        steps: int = 10_000,
        refuses: int = -1,
    ) -> None:
        self.room, self.sizes, self.counts, self.needed = room, sizes, counts, needed
        self.first, self.steps, self.refuses = first, steps, refuses
        self.placed: list[tuple[int, int]] = []
        self.is_thorough = False

    def feasible(self, c: int) -> Mask:
        if self.first and c == 0 and not any(one == 1 for one, _ in self.placed):
            return np.zeros(len(self.room), dtype=np.bool_)
        return np.array(self.room) >= self.sizes[c]

    def slots(self, c: int) -> I64:
        return np.array(self.room) // self.sizes[c]

    def is_order_free(self, c: int) -> bool:
        return not (self.first and c == 0)

    def alike(self) -> tuple[int, ...]:
        return tuple(self.room.index(r) for r in self.room)

    def patiently(self, ask: Any) -> Generator[Any, Any, Any]:
        yield from ()
        return ask()

    def chooses(self, c: int) -> bool:
        return False

    def chosen(self) -> Any:
        return ()

    def choices(self, c: int, row: int) -> Any:
        raise AssertionError(f"nothing is chosen for {c} on {row}")

    def put(self, c: int, row: int, choice: Choice) -> bool:
        self.placed.append((c, row))
        self.room[row] -= self.sizes[c]
        return row != self.refuses

    def take_back(self) -> Generator[Any, Any, None]:
        c, row = self.placed.pop()
        self.room[row] += self.sizes[c]
        yield from ()

    def goes_on(self) -> Generator[Any, Any, Unknown | None]:
        self.steps -= 1
        yield from ()
        return SPENT if self.steps < 0 else None


def run(shelf: Shelf) -> Any:
    steps = search(shelf)
    with pytest.raises(StopIteration) as end:
        next(steps)
    return end.value.value


def test_places_are_left_on_the_board_in_the_order_in_which_they_were_taken() -> None:
    shelf = Shelf([4, 4], [4, 2], (1, 2), 3)

    found = run(shelf)

    assert [(c, row) for c, row, _ in found] == shelf.placed
    assert sorted(c for c, _ in shelf.placed) == [0, 1, 1]
    assert shelf.room == [0, 0]


def test_what_must_come_second_comes_second() -> None:
    shelf = Shelf([2, 2], [2, 2], (1, 1), 2, first=True)

    assert [c for c, *_ in run(shelf)] == [1, 0]


def test_a_walk_without_success_is_a_proof_and_leaves_nothing() -> None:
    shelf = Shelf([3, 3, 2], [2, 3], (2, 2), 4)

    assert isinstance(run(shelf), Infeasible)
    assert (shelf.placed, shelf.room) == ([], [3, 3, 2])


def test_part_of_the_pods_is_enough_where_not_all_are_needed() -> None:
    """The large one has the least room, so it is looked at first, and left out."""
    shelf = Shelf([4], [4, 2], (1, 2), 2)

    assert [c for c, *_ in run(shelf)] == [1, 1]


def test_a_spent_budget_is_no_proof_and_leaves_nothing() -> None:
    shelf = Shelf([5] * 4, [3, 2], (4, 5), 9, steps=3)

    assert run(shelf) is SPENT
    assert (shelf.placed, shelf.room) == ([], [5] * 4)


def test_what_somebody_refused_is_no_proof() -> None:
    """Only row 0 has room, and a plugin that promises resources will not have it."""
    shelf = Shelf([2, 1], [2], (1,), 1, refuses=0)

    assert isinstance(run(shelf), Unknown)
    assert shelf.placed == []


def test_equal_rows_are_tried_once() -> None:
    alike = Shelf([3] * 6, [2], (7,), 7)
    alike.slots = lambda c: np.array([9] * 6)  # type: ignore[method-assign]  # bounds see nothing
    run(alike)

    assert 10_000 - alike.steps < 20


class Keys(Shelf):
    """On one row lie keys. Class 0 takes any of them, class 1 the first one, and not before."""

    def __init__(self, keys: int, counts: tuple[int, ...], *, is_thorough: bool) -> None:
        super().__init__([9], [1, 1], counts, sum(counts))
        self.keys = list(range(keys))
        self.taken: list[int] = []
        self.is_thorough = is_thorough

    def feasible(self, c: int) -> Mask:
        return np.array([bool(self.keys) if c == 0 else bool(self.taken) and 0 in self.keys])

    def chooses(self, c: int) -> bool:
        return c == 0

    def is_order_free(self, c: int) -> bool:
        return False

    def choices(self, c: int, row: int) -> Any:
        assert (c, row) == (0, 0)
        return [(at,) for at in range(len(self.keys))]

    def chosen(self) -> Any:
        return tuple(sorted(k for (c, _), k in zip(self.placed, self.taken, strict=True) if c == 0))

    def put(self, c: int, row: int, choice: Choice) -> bool:
        super().put(c, row, choice)
        self.taken.append(self.keys.pop(choice[0] if choice else 0))
        return True

    def take_back(self) -> Generator[Any, Any, None]:
        self.keys = sorted((*self.keys, self.taken.pop()))
        yield from super().take_back()


def test_whatever_may_be_chosen_is_tried_where_the_first_choice_is_in_the_way() -> None:
    assert isinstance(run(Keys(3, (2, 1), is_thorough=False)), Infeasible)
    thorough = Keys(3, (2, 1), is_thorough=True)
    assert [c for c, *_ in run(thorough)] == [0, 0, 1]
    assert thorough.taken == [1, 2, 0]


def test_what_no_choice_makes_room_for_is_refuted_and_leaves_nothing() -> None:
    few = Keys(2, (2, 1), is_thorough=True)
    assert isinstance(run(few), Infeasible)
    assert (few.keys, few.taken, few.placed) == ([0, 1], [], [])
