"""The search on a board of its own: places, proofs, and what is left behind when it must stop."""

import random
from collections import Counter
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from asched.batch.placement.problem import I64, Infeasible, Mask, Unproven
from asched.batch.placement.search import SPENT, Choice, search


class Shelf:
    """Rows with room for sizes. `first`: class 0 may come only after class 1 (an order matters).
    `only`: the rows to which a class may go at all. Whatever is asked is noted in `looks`, by class
    and who stood where then, and nothing may be asked once it was said that it is enough.
    """

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
        only: dict[int, set[int]] | None = None,
    ) -> None:
        self.room, self.sizes, self.counts, self.needed = room, sizes, counts, needed
        self.first, self.steps, self.refuses = first, steps, refuses
        self.placed: list[tuple[int, int]] = []
        self.is_thorough = self.is_over = False
        self.only = only or {}
        self.kinds = self.alike()
        self.looks: Counter[Any] = Counter()

    def stands(self) -> Any:
        """How many of each class are on each row, of those that are alike in any order."""
        rows = [Counter(c for c, at in self.placed if at == row) for row in range(len(self.room))]
        return frozenset(
            Counter((self.kinds[at], frozenset(r.items())) for at, r in enumerate(rows)).items()
        )

    def feasible(self, c: int) -> Mask:
        self.looks[c, self.stands(), self.chosen()] += 1
        return self.now(c)

    def now(self, c: int) -> Mask:
        if self.first and c == 0 and not any(one == 1 for one, _ in self.placed):
            return np.zeros(len(self.room), dtype=np.bool_)
        may = [row in self.only.get(c, {row}) for row in range(len(self.room))]
        return (np.array(self.room) >= self.sizes[c]) & may

    def slots(self, c: int) -> I64:
        return np.array(self.room) // self.sizes[c]

    def is_order_free(self, c: int) -> bool:
        return not (self.first and c == 0)

    def alike(self) -> tuple[int, ...]:
        takers = [
            {c for c, rows in self.only.items() if at in rows} for at in range(len(self.room))
        ]
        looks = list(zip(self.room, takers, strict=True))
        return tuple(looks.index(look) for look in looks)

    def patiently(self, ask: Any) -> Generator[Any, Any, Any]:
        assert not self.is_over
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

    def goes_on(self) -> Generator[Any, Any, Unproven | None]:
        self.steps -= 1
        yield from ()
        self.is_over = self.steps < 0
        return SPENT if self.is_over else None


def run(shelf: Shelf) -> Any:
    steps = search(shelf)
    with pytest.raises(StopIteration) as end:
        next(steps)
    return end.value.value


def test_places_are_left_on_the_board_in_the_order_in_which_they_were_taken() -> None:
    shelf = Shelf([4, 4], [4, 2], (1, 2), 3)

    found = run(shelf)

    assert found == [(c, row, 1) for c, row in shelf.placed]
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

    assert isinstance(run(shelf), Unproven)
    assert shelf.placed == []


def test_equal_rows_are_tried_once() -> None:
    alike = Shelf([3] * 6, [2], (7,), 7)
    alike.slots = lambda c: np.array([9] * 6)  # type: ignore[method-assign]  # bounds see nothing
    run(alike)

    assert 10_000 - alike.steps < 20


def can(shelf: Shelf, left: tuple[int, ...]) -> bool:
    """Whether any order of all comes to an end: the plain reading."""
    if len(shelf.placed) >= shelf.needed:
        return True
    for c, count in enumerate(left):
        for row in np.flatnonzero(shelf.now(c)).tolist() if count else ():
            shelf.put(c, row, ())
            is_end = can(shelf, (*left[:c], count - 1, *left[c + 1 :]))
            for _ in shelf.take_back():
                pass
            if is_end:
                return True
    return False


def test_places_are_found_if_and_only_if_some_order_comes_to_an_end() -> None:
    """No state is looked at twice; where not all are needed, those who are left differ."""
    rng = random.Random(3)
    told = Counter[bool]()
    for _ in range(400):
        counts = tuple(rng.randint(1, 2) for _ in range(rng.randint(2, 3)))
        rows = rng.randint(2, 3)
        shelf = Shelf(
            [rng.randint(1, 4) for _ in range(rows)],
            [rng.randint(1, 3) for _ in counts],
            counts,
            sum(counts) if rng.random() < 0.6 else rng.randint(1, sum(counts)),
            first=rng.random() < 0.5,
            only={c: set(rng.sample(range(rows), 2)) for c in range(len(counts))},
        )
        if rng.random() < 0.5:  # bounds see nothing
            shelf.slots = lambda c, rows=rows: np.full(rows, 9)  # type: ignore[method-assign,misc]
        before, expected = list(shelf.room), can(shelf, counts)
        told[expected] += 1
        found = run(shelf)
        assert isinstance(found, list) == expected
        assert expected or (isinstance(found, Infeasible) and shelf.room == before)
        if expected:
            taken = Counter(c for c, _ in shelf.placed)
            assert sum(taken.values()) == shelf.needed
            assert all(taken[c] <= count for c, count in enumerate(counts))
        if shelf.needed == sum(counts):
            assert max(shelf.looks.values(), default=1) == 1
    assert min(told.values()) > 100


def test_what_cannot_come_to_an_end_by_counting_is_not_begun() -> None:
    """Three on two rows; two that fit, of three that are needed; rows where they may not go."""
    for shelf in (
        Shelf([3, 3], [2], (3,), 3),
        Shelf([2, 2, 1], [2, 3], (2, 3), 3),
        Shelf([2, 2, 2], [2], (3,), 3, only={0: {0, 1}}),
        Shelf([2, 2], [2, 2, 9], (1, 1, 1), 3, first=True),
    ):
        assert isinstance(run(shelf), Infeasible)
        assert {stands for _, stands, _ in shelf.looks} == {shelf.stands()}


def test_of_whom_room_is_shortest_comes_first_and_one_class_before_the_next() -> None:
    """Both have room for four; of the second there are three. Two of 3 leave nothing for one of 2:
    nobody asks what the latter would leave.
    """
    assert run(Shelf([4, 4], [2, 2], (1, 3), 4))[0][0] == 1
    hard = Shelf([4, 4], [3, 2], (2, 1), 3)
    hard.slots = lambda c: np.array([9, 9])  # type: ignore[method-assign]
    assert isinstance(run(hard), Infeasible)
    assert len({stands for _, stands, _ in hard.looks}) == 3, "none, one and two of the first"


def test_all_ways_are_counted_with_the_one_in_which_nobody_has_a_place() -> None:
    shelf = Shelf([2], [1], (3,), 3)
    shelf.slots = lambda c: np.array([9])  # type: ignore[method-assign]  # bounds see nothing
    assert run(shelf) == Infeasible("all 3 ways to place its pods were tried")


class Keys(Shelf):
    """On row 1 lie keys. Class 0 takes any of them, class 1 the first one, and not before."""

    def __init__(self, keys: int, counts: tuple[int, ...], *, is_thorough: bool) -> None:
        self.keys = list(range(keys))
        self.taken: list[int] = []
        super().__init__([0, 9], [1, 1], counts, sum(counts))
        self.is_thorough = is_thorough

    def now(self, c: int) -> Mask:
        may = bool(self.keys) if c == 0 else bool(self.taken) and 0 in self.keys
        return np.array([False, may])

    def chooses(self, c: int) -> bool:
        return c == 0

    def is_order_free(self, c: int) -> bool:
        return False

    def choices(self, c: int, row: int) -> Any:
        assert (c, row) == (0, 1)
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
    assert max(few.looks.values()) == 1


def test_where_nothing_can_be_chosen_nothing_is_put() -> None:
    shelf = Keys(2, (2, 1), is_thorough=True)
    shelf.choices = lambda c, row: ()  # type: ignore[method-assign]
    assert isinstance(run(shelf), Infeasible)
    assert len(shelf.looks) == 2, "of each class once"


@pytest.mark.parametrize("is_thorough", [False, True])
def test_it_ends_wherever_an_answer_takes_too_many_turns(is_thorough: bool) -> None:
    """What was asked then has not been done."""

    def ended_at(last: int) -> tuple[Any, Shelf]:
        shelf: Shelf = (
            Keys(3, (2, 1), is_thorough=True)
            if is_thorough
            else Shelf([3, 3, 2], [2, 3], (2, 2), 4)
        )
        asked = 0

        def patiently(ask: Any) -> Generator[Any, Any, Any]:
            nonlocal asked
            yield from ()
            asked += 1
            return SPENT if asked == last + 1 else ask()

        shelf.patiently = patiently  # type: ignore[method-assign]
        return run(shelf), shelf

    last = 0
    while (ended := ended_at(last))[0] is SPENT:
        assert ended[1].placed == []
        last += 1
    assert last > 5
