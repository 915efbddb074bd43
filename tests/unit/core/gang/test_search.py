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


def test_a_walk_without_success_is_a_proof_and_leaves_nothing() -> None:
    shelf = Shelf([3, 3, 2], [2, 3], (2, 2), 4)

    assert isinstance(run(shelf), Infeasible)
    assert (shelf.placed, shelf.room) == ([], [3, 3, 2])


def test_what_somebody_refused_is_no_proof() -> None:
    """Only row 0 has room, and a plugin that promises resources will not have it."""
    shelf = Shelf([2, 1], [2], (1,), 1, refuses=0)

    assert isinstance(run(shelf), Unproven)
    assert shelf.placed == []


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
    for _ in range(150):
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
    assert min(told.values()) > 40


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
