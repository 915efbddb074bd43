"""What plans lack after rounding is had by rows that change what they hold."""

import random
from itertools import product

import numpy as np
import pytest

from asched.core.gang import plan as plans
from asched.core.gang.plan import patterns
from asched.core.gang.problem import Problem
from tests.core.gang.test_plan import a_problem, by_prices, ended, fits


def nearly_full(rows: int, top: int, seed: int) -> Problem:
    """Four classes, so many of each on a row at most; all rows differ, and a fiftieth of their room
    is to spare.
    """
    rng = random.Random(seed)
    needs = [[rng.randint(2, 9), rng.randint(2, 9)] for _ in range(4)]
    held = np.array([[rng.randint(0, top) for _ in needs] for _ in range(rows)])
    counts = (held.sum(axis=0) * 49 // 50).tolist()
    return a_problem(tuple(counts), needs, (held @ needs).T.tolist())


@pytest.mark.parametrize("patterns_max", [plans.PATTERNS_MAX, 300])
@pytest.mark.parametrize(("rows", "top"), [(60, 9), (150, 3)])
def test_places_are_found_that_take_nearly_all_room(
    rows: int, top: int, patterns_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By some patterns, too. Rounding alone does not find all of these."""
    monkeypatch.setattr(plans, "PATTERNS_MAX", patterns_max)
    for seed in range(8):
        problem = nearly_full(rows, top, seed)
        plan = by_prices(problem)
        assert isinstance(plan, list), seed
        assert fits(problem, plan)


#: Of 7, pods of 3 and of 2.
SEVEN = [[2, 0], [1, 2], [0, 3]]


def sevens(rows: int) -> plans.Patterns:
    found = ended(patterns(a_problem((9, 9), [[3], [2]], [[7] * rows])))
    assert found is not None
    assert sorted(found.options(0).tolist()) == sorted(SEVEN)
    return found


def test_a_row_gives_up_what_is_too_much_for_what_is_worth_more() -> None:
    """One row for two of the first and three of the second."""
    for prices, best in (([1000, 1], [2, 0]), ([1, 1000], [0, 3]), ([50, 50], [1, 2])):
        held, wanted = np.array([[2, 0]]), np.array([2, 3])
        extra = held.sum(axis=0) - wanted
        steps = plans._swept(sevens(1), held, extra, np.array(prices), np.array([0.5, 0.5]))
        assert list(steps) == [plans.ROW_STEPS]
        assert held.tolist() == [best]
        assert extra.tolist() == (held.sum(axis=0) - wanted).tolist()


def test_rows_are_left_as_they_are_where_nothing_is_missing_or_they_have_no_choice() -> None:
    prices, widths = np.array([1, 1]), np.array([0.5, 0.5])
    held = np.array([[2, 0], [0, 3], [2, 0]])
    enough, missing = np.array([0, 0]), np.array([-1, 1])
    assert list(plans._swept(sevens(3), held, enough, prices, widths)) == []
    only = ended(patterns(a_problem((9, 9), [[3], [2]], [[2, 7]])))
    assert only is not None
    held = np.array([[0, 1], [0, 3]])
    assert list(plans._swept(only, held, missing, prices, widths)) == [plans.ROW_STEPS]
    assert held.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_missing_is_had_by_exchanges_wherever_rows_can_have_it(seed: int) -> None:
    rng = random.Random(seed)
    rows = rng.randint(1, 3)
    problem = a_problem((9, 9), [[3], [2]], [[rng.choice((7, 9)) for _ in range(rows)]])
    found = ended(patterns(problem))
    assert found is not None
    options = [found.options(kind).tolist() for kind in found.kind.tolist()]
    held = np.array([rng.choice(some) for some in options])
    wanted = np.array([rng.choice(some) for some in options]).sum(axis=0)
    wanted[0] += rng.randint(0, 1)
    extra = held.sum(axis=0) - wanted
    possible = any((np.sum(some, axis=0) >= wanted).all() for some in product(*options))

    prices = np.array(rng.choice(([3, 2], [1, 1000], [1000, 1])))

    assert ended(plans._exchanged(found, held, extra, prices)) == possible

    assert extra.tolist() == (held.sum(axis=0) - wanted).tolist()
    assert not possible or (extra >= 0).all()
    assert all(row in some for row, some in zip(held.tolist(), options, strict=True))


def test_of_too_much_that_is_missing_nothing_is_exchanged() -> None:
    found, prices = sevens(9), np.array([3, 2])
    for missing, steps in ((plans.MISSING_MAX, 1), (plans.MISSING_MAX + 1, 0)):
        held = np.array([[2, 0]] * 9)
        exchanged = plans._exchanged(found, held, np.array([9, -missing]), prices)
        assert min(len(list(exchanged)), 1) == steps


def test_what_is_compared_for_exchanges_is_told_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows may each change into two others: 2, 3 and no more ways to end, none of them good."""
    monkeypatch.setattr(plans, "CHANGES_A_STEP", 1)
    held, extra = np.array([[2, 0], [2, 0]]), np.array([-1, 0])
    steps = plans._exchanged(sevens(2), held, extra, np.array([3, 2]))
    assert list(steps) == [1 + 1 * 4, 1 + 2 * 4, 1 + 3 * 4]
    assert (held.tolist(), extra.tolist()) == ([[2, 0], [2, 0]], [-1, 0])


def test_of_rows_that_look_alike_two_change_and_of_changes_those_that_lose_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prices, held = np.array([3, 2]), np.array([[2, 0]] * 3 + [[0, 3]] * 2)

    def changes() -> list[tuple[list[int], int, list[int]]]:
        found = plans._changes(sevens(5), held, prices)
        return list(zip(*(column.tolist() for column in found), strict=True))

    every = changes()
    assert [sum(row in some for _, row, _ in every) for some in ((0, 1, 2), (3, 4))] == [4, 4]
    assert len({row for _, row, _ in every}) == 4
    assert all((held[row] + change).tolist() == goal for change, row, goal in every)
    values = [int(np.array(change) @ prices) for change, _, _ in every]
    assert values == sorted(values, reverse=True)
    for name, most in (("CHANGES_MAX", 3), ("SAME_CHANGES", 1)):
        with monkeypatch.context() as patched:
            patched.setattr(plans, name, most)
            few = changes()
            assert few == (every[:3] if name == "CHANGES_MAX" else every[::2])


def test_a_plan_has_no_more_than_is_wanted_and_the_dearest_first() -> None:
    held = np.array([[2, 1], [3, 0], [1, 4]])
    assert plans._plan(held, np.array([4, 2]), np.array([1, 5])) == [
        *((1, 0, 1), (1, 2, 1)),
        *((0, 0, 2), (0, 1, 2)),
    ]
