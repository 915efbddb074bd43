"""The mask of a class: folded row by row or wholly, it is the same, and tells which rows turned."""

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from asched.core.config.defaults import default_configuration
from asched.core.framework.results.feasible import TURNED_KEPT, Feasible
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.runner import Runner
from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.plugins.pod_topology_spread import skew
from asched.core.state.nodes import ALL_ASPECTS
from asched.core.state.nominated import Nominator
from asched.host.assemble import Parts, build_runners
from tests.builders import a_node, a_pod
from tests.core.preemption.stage import Stage, a_low
from tests.topology_world import RandomWorld, spread
from tests.topology_world import a_pod as topology_pod


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


class RoomyWorld(RandomWorld):
    """Whose nodes have room for a few pods."""

    def some_node(self, name: str = "") -> Node:
        made = super().some_node(name)
        amounts = {"cpu": f"{self.rng.randint(1, 4)}", "memory": "8Gi", "pods": "6"}
        status = {"allocatable": amounts, "capacity": amounts}
        like = decode(Node, {"metadata": {"name": "like"}, "status": status})
        return msgspec.structs.replace(made, status=like.status)


#: One constraint over few domains, alone or beside others; the first of many domains, two zones.
SPREADS = [
    [spread("zone")],
    [spread("zone", nodeTaintsPolicy="Honor")],
    [spread("zone", 2), spread("host")],
    [spread("rack"), spread("zone", 2, soft=True)],
]


@pytest.mark.parametrize("constraints", SPREADS, ids=["zone", "taints", "hosts", "soft"])
@pytest.mark.parametrize("domains_max", [16, 2], ids=["by domain", "sometimes"])
@pytest.mark.parametrize("seed", range(3))
def test_domains_that_turn_leave_the_mask_and_the_choice_as_codes_have_them(
    monkeypatch: pytest.MonkeyPatch, seed: int, domains_max: int, constraints: list[Any]
) -> None:
    """Kept all along, beside made afresh after each change by filters asked row by row."""
    world = RoomyWorld(seed)
    nominator = world.cluster.singleton(Nominator.of)

    def a_runner() -> Runner:
        parts = Parts(world.cluster, nominator)
        return build_runners(default_configuration("s"), parts)["s"]

    kept, by_domain = a_runner(), 0
    pod = world.info(topology_pod("new", "app=web", topologySpreadConstraints=constraints))
    turned_at, before, last = -2, np.zeros(0, dtype=np.bool_), None
    for step in range(60):
        world.step()
        monkeypatch.setattr(skew, "DOMAINS_MAX", domains_max)
        state = kept.cache.state_of(pod)
        if state.update(pod).rejection is not None or not world.nodes:
            continue
        by_domain += state.mask.by_domain is not None
        monkeypatch.setattr(skew, "DOMAINS_MAX", -1)
        slow = a_runner().cache.state_of(pod)
        slow.update(pod)
        assert slow.mask.by_domain is None
        where = f"seed {seed}, {step}"
        assert state.mask.mask.tolist() == slow.mask.mask.tolist(), where
        assert state.mask.count == slow.mask.count, where
        height = world.cluster.nodes.height
        assert [state.mask.has(row) for row in range(height)] == slow.mask.mask.tolist(), where
        for mine, theirs in zip(state.active, slow.active, strict=True):
            assert mine.codes.tolist() == theirs.codes.tolist(), where
            assert [mine.code_of(row) for row in range(height)] == theirs.codes.tolist(), where
        now = state.mask.mask.copy()
        named = state.mask.turned.rows(turned_at, ALL_ASPECTS)
        if state is last and len(before) == len(now) and named is not None:
            assert set(np.flatnonzero(before != now).tolist()) <= set(named), where
        turned_at, before, last = state.mask.turned.end, now, state
        if state.mask.count > 1:
            assert state.ranking.choose(pod, step) == slow.ranking.choose(pod, step), where
            ranked = state.rank(pod).tolist()
            assert ranked == slow.rank(pod).tolist(), where
            assert ranked.count(NOT_FEASIBLE) == len(now) - state.mask.count
    is_single = len(constraints) == 1 or constraints[1]["whenUnsatisfiable"] == "ScheduleAnyway"
    assert not is_single or domains_max == 2 or by_domain > 10
