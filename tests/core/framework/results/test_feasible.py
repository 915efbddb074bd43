"""The mask of a class: folded row by row or wholly, it is the same, and tells which rows turned."""

import random
from typing import Any

import numpy as np
import pytest

from asched.core.framework.results.feasible import TURNED_KEPT, Feasible
from asched.core.state.nodes import ALL_ASPECTS
from tests.builders import a_node, a_pod
from tests.core.preemption.stage import Stage, a_low


def folded(stage: Stage, feasible: Feasible, state: object) -> np.ndarray:
    """As `_make_all` would have it, from scratch."""
    fresh = Feasible(stage.cluster.nodes)
    fresh.fold(state.active, state.outcome.rows)  # type: ignore[attr-defined]
    fresh.refresh()
    return fresh.mask


@pytest.mark.parametrize("seed", range(6))
def test_the_mask_and_the_rows_that_turned_follow_from_the_codes(seed: int) -> None:
    rng = random.Random(seed)
    stage = Stage()
    stage.nodes(*(a_node(f"n{i}").allocatable(cpu="4") for i in range(30)))
    pod = stage.pod(a_pod("wants").requests(cpu="2"))
    info, placed = stage.info(pod), []
    state = stage.runner.cache.state_of(info)
    state.update(info)
    feasible = state.mask
    before, cursor, version = feasible.mask.copy(), feasible.turned.end, feasible.version
    for step in range(40):
        for number in range(rng.choice((1, 1, 2, 20))):
            if placed and rng.random() < 0.4:
                stage.gone(placed.pop(rng.randrange(len(placed))))
            else:
                low = a_low(f"p{step}-{number}", f"n{rng.randrange(30)}", cpu="1500m")
                placed.append(stage.pod(low))
        if rng.random() < 0.2:
            stage.nodes(a_node(f"n{rng.randrange(30)}").allocatable(cpu=rng.choice(("1", "9"))))
        state.update(info)
        assert np.array_equal(feasible.mask, folded(stage, feasible, state)), f"seed {seed}, {step}"
        assert feasible.count == np.count_nonzero(feasible.mask)
        turned = set(np.flatnonzero(before != feasible.mask).tolist())
        named = feasible.turned.rows(cursor, ALL_ASPECTS)
        assert named is None or turned <= set(named)
        assert (version != feasible.version) == bool(turned)
        before, cursor, version = feasible.mask.copy(), feasible.turned.end, feasible.version


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_prefilter_left_out_stay_out_and_the_others_follow(seed: int) -> None:
    """Row by row, and when it names others or other filters take part."""
    rng = random.Random(seed)
    stage = Stage()
    stage.nodes(*(a_node(f"n{i}").allocatable(cpu="4") for i in range(30)))
    info = stage.info(stage.pod(a_pod("wants").requests(cpu="2")))
    state = stage.runner.cache.state_of(info)
    state.update(info)
    feasible, filters, left = Feasible(stage.cluster.nodes), state.active, set(range(0, 30, 3))
    placed: list[Any] = []
    for step in range(60):
        if step % 20 == 10:
            left = {row for row in range(30) if rng.random() < 0.5}
        if step % 20 == 15:
            filters = list(state.active) if len(filters) < len(state.active) else []
        row = rng.randrange(30)
        if placed and rng.random() < 0.4:
            stage.gone(placed.pop(rng.randrange(len(placed))))
        else:
            placed.append(stage.pod(a_low(f"p{step}", f"n{row}", cpu="1500m")))
        state.update(info)
        feasible.fold(filters, left)
        feasible.refresh()
        fits = state.feasible if filters else np.ones(30, dtype=np.bool_)
        expected = [bool(fits[row]) and row in left for row in range(30)]
        assert feasible.mask.tolist() == expected, f"seed {seed}, {step}"


def test_many_rows_that_turn_at_once_are_not_named_one_by_one() -> None:
    stage = Stage()
    stage.nodes(*(a_node(f"n{i}") for i in range(TURNED_KEPT)))
    pod = stage.pod(a_pod("wants"))
    info = stage.info(pod)
    state = stage.runner.cache.state_of(info)
    state.update(info)
    cursor = state.mask.turned.end
    stage.nodes(*(a_node(f"n{i}").cordoned() for i in range(TURNED_KEPT)))
    state.update(info)
    assert state.mask.count == 0
    assert state.mask.turned.rows(cursor, ALL_ASPECTS) is None
