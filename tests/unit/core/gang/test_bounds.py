"""Bounds: what they refute cannot be, by another way of counting."""

import random

import numpy as np
import pytest

from asched.batch.placement.bounds import refuted
from asched.batch.placement.gang_problem import GangProblem

NAMES, RESOURCES = ["web", "db", "job"], ["cpu", "pods"]


def a_problem(
    counts: tuple[int, ...],
    needs: list[int],
    free: list[int],
    rows: list[list[int]] | None = None,
    needed: int | None = None,
    pods: int = 9,
) -> GangProblem:
    """Classes of so many pods that need so much CPU each, on rows with so much of it."""
    may = (
        np.ones((len(counts), len(free)), dtype=np.bool_) if rows is None else np.array(rows, bool)
    )
    return GangProblem(
        counts=counts,
        needs=np.array([[need, 1] for need in needs], dtype=np.int64),
        free=np.array([free, [pods] * len(free)], dtype=np.int64),
        rows=may,
        caps=(99,) * len(counts),
        apart=np.zeros((len(counts), len(counts)), dtype=np.bool_),
        needed=sum(counts) if needed is None else needed,
    )


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (a_problem((3,), [1000], [2000, 1000]), ""),
        (
            a_problem((3,), [1000], [1000, 1999]),
            "the nodes have places for 2 of 3 pods like web",
        ),
        (a_problem((3,), [1000], [1000, 1999], needed=2), ""),
        (
            a_problem((2, 2), [1000, 2000], [1000, 2000], [[1, 0], [0, 1]], needed=3),
            "the nodes have places for 2 of its pods at most",
        ),
        (a_problem((2, 2), [1000, 2000], [1000, 2000], [[1, 0], [0, 1]], needed=2), ""),
        (
            a_problem((2, 1), [1000, 2000], [2000, 1500]),
            "it needs 4 of cpu, and the nodes that take it have 3500m left",
        ),
        (a_problem((2, 1), [1000, 2000], [2000, 1500], needed=2), ""),
        (
            a_problem((1, 1), [1000, 1000], [1000, 9000], [[1, 0], [1, 0]]),
            "it needs 2 of cpu, and the nodes that take it have 1 left",
        ),
        (
            a_problem((1, 1, 1), [0, 0, 0], [0, 0], [[1, 0], [1, 0], [1, 1]], pods=1),
            "it needs 3 of pods, and the nodes that take it have 2 left",
        ),
        (
            a_problem((1, 1, 1), [0, 0, 0], [0] * 3, [[1, 0, 0], [1, 0, 0], [1, 1, 1]], pods=1),
            "at most 2 of its pods have places at a time, and 3 have to",
        ),
        (
            a_problem((1, 1, 1), [600, 600, 600], [1000] * 3, [[1, 0, 0], [1, 0, 0], [1, 1, 1]]),
            "at most 2 of its pods have places at a time, and 3 have to",
        ),
        (
            a_problem((1, 1, 1), [2000, 2000, 1000], [3000, 9000], [[1, 0], [1, 0], [0, 1]]),
            "at most 2 of its pods have places at a time, and 3 have to",
        ),
        (a_problem((2, 2), [0, 1000], [2000, 0], [[1, 0], [1, 0]]), ""),
    ],
)
def test_what_is_refuted_is_told_with_the_count_that_proves_it(
    problem: GangProblem, why: str
) -> None:
    assert refuted(problem, NAMES, RESOURCES) == why


def most_placed(problem: GangProblem) -> int:
    """Of all ways to put pods on rows, the one with most; for few pods and rows."""

    def best(pods: list[int], free: list[list[int]]) -> int:
        if not pods:
            return 0
        c, *rest = pods
        found = best(rest, free)
        for row, left in enumerate(free):
            need = problem.needs[c].tolist()
            if problem.rows[c, row] and all(a >= b for a, b in zip(left, need, strict=True)):
                less = [a - b for a, b in zip(left, need, strict=True)]
                found = max(found, 1 + best(rest, [*free[:row], less, *free[row + 1 :]]))
        return found

    pods = [c for c, count in enumerate(problem.counts) for _ in range(count)]
    return best(pods, problem.free.T.tolist())


def test_nothing_is_refuted_that_can_be() -> None:
    rng = random.Random(5)
    told = 0
    for _ in range(150):
        counts = tuple(rng.randint(1, 2) for _ in range(rng.randint(1, 3)))
        rows = rng.randint(1, 3)
        problem = a_problem(
            counts,
            [rng.randint(0, 3) for _ in counts],
            [rng.randint(0, 5) for _ in range(rows)],
            [[int(rng.random() < 0.7) for _ in range(rows)] for _ in counts],
            rng.randint(1, sum(counts)),
            rng.randint(1, 3),
        )
        if refuted(problem, NAMES, RESOURCES):
            told += 1
            assert most_placed(problem) < problem.needed
    assert told > 30
