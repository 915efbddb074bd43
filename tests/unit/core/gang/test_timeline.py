"""Room over time, against a plain reading of it row by row and moment by moment."""

from math import inf
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from asched.batch.backfill.timeline import (
    SOON_S,
    Promised,
    Steps,
    Timeline,
    TimelineDemand,
    rows_for,
)

NOW_S = 1_000.0


class Ending(NamedTuple):
    at_s: float
    row: int
    amounts: np.ndarray


def timeline_of(free: np.ndarray, endings: list[Ending], promised: list[Promised]) -> Timeline:
    """Each pod is of a class of its own."""
    every = sorted(endings, key=lambda one: one.at_s)
    return Timeline(
        NOW_S,
        free,
        np.array([one.at_s for one in every], dtype=np.float64),
        np.array([one.row for one in every], dtype=np.intp),
        np.arange(len(every)),
        np.array([one.amounts for one in every], dtype=np.int64).reshape(len(every), 2).T,
        promised,
    )


def found_in(steps: Steps[np.ndarray]) -> np.ndarray:
    while True:
        try:
            assert next(steps) > 0
        except StopIteration as end:
            return end.value


def a_timeline(random: Random) -> tuple[Timeline, list[Ending], list[Promised], np.ndarray]:
    rows = random.randint(1, 5)
    free = np.array([[random.randint(-1, 3) for _ in range(rows)] for _ in range(2)])
    endings = [
        Ending(
            NOW_S + random.randint(1, 20) * 10,
            random.randrange(rows),
            np.array([random.randint(0, 2), 1]),
        )
        for _ in range(random.randint(0, 8))
    ]
    promised = []
    for _ in range(random.randint(0, 2)):
        start_s = NOW_S + random.randint(0, 15) * 10
        on = np.array(sorted(random.sample(range(rows), random.randint(1, rows))), dtype=np.intp)
        amounts = np.array([[random.randint(0, 2) for _ in on] for _ in range(2)])
        end_s = random.choice((inf, start_s + random.randint(1, 9) * 10))
        promised.append(Promised(start_s, end_s, on, amounts))
    return timeline_of(free, endings, promised), endings, promised, free


def left(
    free: np.ndarray, endings: list[Ending], promised: list[Promised], row: int, at_s: float
) -> list[int]:
    """What is left on a row at a moment, by the definition."""
    found = [int(free[axis, row]) for axis in range(2)]
    for one in endings:
        if one.row == row and one.at_s <= at_s:
            found = [a + int(b) for a, b in zip(found, one.amounts, strict=True)]
    for claim in promised:
        if claim.start_s <= at_s < claim.end_s and row in claim.rows:
            index = claim.rows.tolist().index(row)
            found = [found[axis] - int(claim.amounts[axis, index]) for axis in range(2)]
    return found


@pytest.mark.parametrize("seed", range(15))
def test_room_is_the_least_that_is_left_at_any_time(seed: int) -> None:
    random = Random(seed)
    timeline, endings, promised, free = a_timeline(random)
    start_s = NOW_S + random.randint(0, 20) * 10
    until_s = random.choice((inf, start_s + random.randint(1, 12) * 10))

    room = timeline.room(start_s, until_s)

    moments = [start_s, *(NOW_S + step * 10 for step in range(40))]
    for row in range(free.shape[1]):
        during = [left(free, endings, promised, row, t) for t in moments if start_s <= t < until_s]
        assert room[:, row].tolist() == [min(one[axis] for one in during) for axis in range(2)]


@pytest.mark.parametrize("seed", range(15))
def test_the_first_start_is_the_earliest_at_which_the_amounts_suffice(seed: int) -> None:
    random = Random(seed)
    timeline, endings, promised, free = a_timeline(random)
    rows = free.shape[1]
    need = np.array([random.randint(1, 2), 1])
    demand = TimelineDemand(need, random.randint(1, 4), np.ones(rows, dtype=np.bool_))
    lasts_s = random.choice((inf, random.randint(1, 9) * 10.0))

    starts = timeline.starts([demand], lasts_s, NOW_S + 500, 1_000)
    found = next((one for one in starts if isinstance(one, tuple)), None)

    def fits(at_s: float) -> bool:
        slots = 0
        for row in range(rows):
            moments = [at_s, *(NOW_S + step * 10 for step in range(80))]
            during = [
                left(free, endings, promised, row, t) for t in moments if at_s <= t < at_s + lasts_s
            ]
            slots += max(min(one[axis] // int(need[axis]) for one in during for axis in (0, 1)), 0)
        return slots >= demand.count

    moments = {NOW_S + SOON_S, *(one.at_s for one in endings), *(one.end_s for one in promised)}
    expected = [t for t in sorted(moments) if NOW_S < t <= NOW_S + 500 and fits(t)]
    assert (found[0] if found is not None else None) == (expected[0] if expected else None)


def test_rows_with_most_slots_come_first_and_those_without_any_do_not() -> None:
    room = np.array([[4, 1, 2, 0], [9, 9, 9, 9]])
    demand = TimelineDemand(np.array([1, 1]), 4, np.array([True, True, True, True]))

    assert found_in(rows_for([demand], room, 1.0, 9)).tolist() == [True, False, False, False]
    assert found_in(rows_for([demand], room, 1.5, 9)).tolist() == [True, False, True, False]
    assert found_in(rows_for([demand], room, inf, 9)).tolist() == [True, True, True, False]
    assert found_in(rows_for([demand], room, inf, 1)).tolist() == [True, False, False, False]
