"""A gang in numbers: how many pods a row takes, and which are the cheapest."""

import numpy as np
import pytest

from asched.batch.placement.problem import GangProblem


def a_problem(
    counts: tuple[int, ...] = (3, 2),
    needed: int = 5,
    caps: tuple[int, ...] | None = None,
    rows: list[list[bool]] | None = None,
) -> GangProblem:
    """Pods of 1 and of 2 CPUs, rows with 4, 1 and 5 of them; each pod takes one of 3 places."""
    return GangProblem(
        counts=counts,
        needs=np.array([[1, 1], [2, 1]]),
        free=np.array([[4, 1, 5], [3, 3, 3]]),
        rows=np.array(rows or [[True] * 3] * 2),
        caps=caps or counts,
        apart=np.zeros((2, 2), dtype=np.bool_),
        needed=needed,
    )


def test_how_many_pods_of_a_class_a_row_takes() -> None:
    assert a_problem().slots.tolist() == [[3, 1, 3], [2, 0, 2]]
    assert a_problem((9, 9)).slots.tolist() == [[3, 1, 3], [2, 0, 2]]
    assert a_problem(caps=(1, 1)).slots.tolist() == [[1, 1, 1], [1, 0, 1]]
    rows = [[True, False, True], [False, True, True]]
    assert a_problem(rows=rows).slots.tolist() == [[3, 0, 3], [0, 0, 2]]


@pytest.mark.parametrize(
    ("needed", "prices", "total", "taken"),
    [
        (5, [1, 10], 23, (3, 2)),
        (4, [1, 10], 13, (3, 1)),
        (2, [1, 10], 2, (2, 0)),
        (4, [10, 1], 22, (2, 2)),
        (3, [5, 5], 15, (3, 0)),
    ],
)
def test_the_cheapest_pods_come_first(
    needed: int, prices: list[int], total: int, taken: tuple[int, ...]
) -> None:
    assert a_problem(needed=needed).cheapest(np.array(prices)) == (total, taken)


def test_a_part_of_it_is_needed_as_a_whole() -> None:
    assert a_problem().takes_all
    assert not a_problem(needed=4).takes_all
    part = a_problem(needed=4).of((1, 2))
    assert (part.counts, part.needed, part.takes_all) == ((1, 2), 3, True)
