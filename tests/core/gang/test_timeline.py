"""Room over time, against a plain reading of it row by row and moment by moment."""

from math import inf
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from asched.core.gang.timeline import (
    CELLS_A_STEP,
    LOOK_STEPS,
    PROMISED_A_LOOK,
    SOON_S,
    Demand,
    Endings,
    Promised,
    Start,
    Steps,
    Timeline,
    may_ever_fit,
    rows_for,
)

NOW_S = 1_000.0


class Ending(NamedTuple):
    at_s: float
    row: int
    amounts: np.ndarray


def endings_of(every: list[Ending]) -> Endings:
    """Each pod is of a class of its own."""
    return Endings(
        np.array([one.at_s for one in every], dtype=np.float64),
        np.array([one.row for one in every], dtype=np.intp),
        np.arange(len(every)),
        np.array([one.amounts for one in every], dtype=np.int64).reshape(len(every), 2).T,
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
    return Timeline(NOW_S, free, endings_of(endings), promised), endings, promised, free


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


@pytest.mark.parametrize("seed", range(60))
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


@pytest.mark.parametrize("seed", range(60))
def test_the_first_start_is_the_earliest_at_which_the_amounts_suffice(seed: int) -> None:
    random = Random(seed)
    timeline, endings, promised, free = a_timeline(random)
    rows = free.shape[1]
    need = np.array([random.randint(1, 2), 1])
    demand = Demand(need, random.randint(1, 4), np.ones(rows, dtype=np.bool_))
    lasts_s = random.choice((inf, random.randint(1, 9) * 10.0))

    starts = timeline.starts([demand], lasts_s, NOW_S + 500, 1_000)
    found = next((one for one in starts if isinstance(one, Start)), None)

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
    assert (found.at_s if found is not None else None) == (expected[0] if expected else None)


def test_rows_with_most_slots_come_first_and_those_without_any_do_not() -> None:
    room = np.array([[4, 1, 2, 0], [9, 9, 9, 9]])
    demand = Demand(np.array([1, 1]), 4, np.array([True, True, True, True]))

    assert found_in(rows_for([demand], room, 1.0)).tolist() == [True, False, False, False]
    assert found_in(rows_for([demand], room, 1.5)).tolist() == [True, False, True, False]
    assert found_in(rows_for([demand], room, inf)).tolist() == [True, True, True, False]


def ending_at(*at_s: float) -> Timeline:
    """One row; so many pods end there that have one of each amount."""
    one = np.array([1, 1])
    endings = endings_of([Ending(NOW_S + each, 0, one) for each in at_s])
    promised = Promised(NOW_S, NOW_S + 150, np.array([0]), np.array([[0], [0]]))
    return Timeline(NOW_S, np.zeros((2, 1), dtype=np.int64), endings, [promised])


def test_moments_are_those_of_ends_and_one_soon_after_now_and_up_to_the_horizon() -> None:
    timeline = ending_at(200.0, 0.0, 100.0, 100.0, -5.0)
    every = [NOW_S + each for each in (SOON_S, 100.0, 150.0, 200.0)]
    assert timeline.times(NOW_S + 200) == every
    assert timeline.times(NOW_S + 199) == every[:-1]


def test_who_asks_for_nothing_of_an_amount_fits_where_there_is_none_of_it() -> None:
    everywhere = np.array([True, True])
    room = np.array([[0, -1], [2, 5]])
    assert Demand(np.array([0, 1]), 4, everywhere).slots(room).tolist() == [2, 4]
    assert Demand(np.array([0, 0]), 4, everywhere).slots(room).tolist() == [4, 4]
    assert Demand(np.array([1, 1]), 4, everywhere).slots(room).tolist() == [0, 0]


def test_what_would_not_fit_into_an_empty_cluster_never_fits() -> None:
    offered, everywhere = np.array([[4, 3], [9, 9]]), np.array([True, True])
    fits, too_many = (Demand(np.array([2, 1]), count, everywhere) for count in (3, 4))
    assert may_ever_fit([fits, fits], offered), "each alone"
    assert not may_ever_fit([fits, too_many], offered)
    assert not may_ever_fit([too_many, fits], offered)
    assert not may_ever_fit([Demand(np.array([2, 1]), 3, np.array([True, False]))], offered)


def test_a_look_costs_what_it_has_to_add_and_more_beside_promises() -> None:
    """Three looks find that only the last of four moments will do, which is then counted."""
    timeline = ending_at(100.0, 200.0)
    look = LOOK_STEPS + 2 * (2 + 1) / CELLS_A_STEP
    assert timeline.look_steps == pytest.approx(look)
    demands = [Demand(np.array([2, 1]), 1, np.array([True]))]
    *steps, start = timeline.starts(demands, 10.0, NOW_S + 500, 9)
    assert isinstance(start, Start)
    assert start.at_s == NOW_S + 200
    compared = 2 / CELLS_A_STEP
    spent = [step for step in steps if step != pytest.approx(compared)]
    assert spent == pytest.approx([look, look, look, look * (1 + 1 / PROMISED_A_LOOK)])
    assert steps.count(compared) == len(steps) - len(spent) > 0


def test_rows_for_each_demand_cost_three_times_their_cells() -> None:
    room, everywhere = np.array([[4, 3], [9, 9]]), np.array([True, True])
    demands = [Demand(np.array([1, 1]), 2, everywhere)] * 3
    assert list(rows_for(demands, room, 1.0)) == pytest.approx([3 * 4 / CELLS_A_STEP] * 3)
