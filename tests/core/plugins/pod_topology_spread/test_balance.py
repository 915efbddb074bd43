"""Soft constraints: the worked examples, sizes, ignored nodes, and normalisation."""

from typing import Any

import numpy as np
import pytest

from asched.core.model.kinds import SERVICE
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from asched.core.plugins.pod_topology_spread.balance import IGNORED, extremes, scaled, scaled_one
from asched.core.state.nodes import ALL_ASPECTS
from tests.topology_world import RandomWorld, World, a_node, a_pod, spread
from tests.twins import pod_topology_spread as twin


def points_of(world: World, feasible: str = "", **spec: Any) -> list[int]:
    """Normalised scores of the feasible nodes (by default all), in order; the twin agrees."""
    pod = a_pod("new", "app=web", **spec)
    plugin, info = PodTopologySpread(None, world.cluster), world.info(pod)
    names = feasible.split() or list(world.nodes)
    rows = [world.cluster.nodes.row_of[name] for name in names]
    mask = np.zeros(world.cluster.nodes.height, dtype=np.bool_)
    mask[rows] = True
    view = world.cluster.view()
    data = plugin.pre_score(info, view, mask).data
    raw = plugin.score(info, view, data)
    points = plugin.normalize(raw[rows], data).tolist()
    constraints = twin.constraints_of(pod, "ScheduleAnyway")
    placed = list(world.on_nodes())
    expected = twin.scores(pod, world.nodes, placed, names, constraints, is_strict=True)
    assert dict(zip(names, points, strict=True)) == expected
    return [int(p) for p in points]


def a_row(zones: str, pods: str) -> World:
    world = World()
    for number, zone in enumerate(zones.split()):
        world.see(a_node(f"n{number}", f"host=n{number}" + (f" zone={zone}" * (zone != "-"))))
    for number, node in enumerate(pods.split()):
        world.see(a_pod(f"p{number}", "app=web", node=f"n{node}"))
    return world


def test_hosts_with_four_to_one_pods() -> None:
    world = a_row("a a a a", "0 0 0 0 1 1 1 2 2 3")

    points = points_of(world, topologySpreadConstraints=[spread("host", 3, soft=True)])

    assert points == [44, 66, 77, 100]


def test_a_node_without_a_key_is_ignored() -> None:
    world = a_row("a b -", "0 0 1 2 2 2")

    points = points_of(world, topologySpreadConstraints=[spread("zone", soft=True)])

    assert points == [33, 100, 0]  # weights ln 4: raws 3 and 1, and nothing for the third


def test_only_feasible_nodes_make_the_weight_but_all_make_the_counts() -> None:
    world = a_row("a a b c", "0 1 1 2")
    soft = [spread("zone", soft=True)]

    few = points_of(world, "n0 n2", topologySpreadConstraints=soft)
    data = _weights(world, "n0 n2", soft), _weights(world, "n0 n1 n2 n3", soft)

    assert data == ((np.log(4),), (np.log(5),))
    assert few == [25, 100]  # zone a has 3 pods: raws 4 and 1


def _weights(world: World, feasible: str, soft: list[dict[str, Any]]) -> tuple[float, ...]:
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=soft))
    mask = np.zeros(world.cluster.nodes.height, dtype=np.bool_)
    mask[[world.cluster.nodes.row_of[name] for name in feasible.split()]] = True
    weights: tuple[float, ...] = plugin.pre_score(info, world.cluster.view(), mask).data.weights
    return weights


def test_hosts_are_counted_whatever_the_policies_say() -> None:
    world = a_row("a a", "0")
    world.see(a_node("n0", "host=n0 zone=a", "gpu=yes:NoSchedule"))
    by_host = [spread("host", soft=True, nodeTaintsPolicy="Honor")]
    by_zone = [spread("zone", soft=True, nodeTaintsPolicy="Honor")]

    assert points_of(world, topologySpreadConstraints=by_host) == [0, 100]
    assert points_of(world, topologySpreadConstraints=by_zone) == [100, 100]


def test_nothing_to_choose_between_is_worth_everything() -> None:
    world = a_row("a b", "")

    assert points_of(world, topologySpreadConstraints=[spread("zone", soft=True)]) == [100, 100]


def test_an_empty_value_is_a_domain_of_its_own() -> None:
    world = World(a_node("n0", "zone="), a_node("n1", "zone=a"), a_pod("p", "app=web", node="n0"))

    assert points_of(world, topologySpreadConstraints=[spread("zone", soft=True)]) == [0, 100]


@pytest.mark.parametrize(
    ("raw", "points"),
    [
        ([9, 7, 6, 4], [44, 66, 77, 100]),
        ([12, 9, 9], [75, 100, 100]),
        ([0, 0], [100, 100]),
        ([0, 5], [100, 0]),
        ([IGNORED, 5, 2], [0, 40, 100]),
        ([IGNORED, 0], [0, 100]),
        ([IGNORED, IGNORED], [0, 0]),
    ],
)
def test_normalize(raw: list[int], points: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)
    bounds = extremes(scores)
    assert scaled(scores, *bounds).tolist() == points
    alone = [scaled_one(score, *bounds) for score in raw]
    assert alone == [None if s == IGNORED else p for s, p in zip(raw, points, strict=True)]
    assert scaled_one(max(raw) + 1, *bounds) is None


def selected_by_a_service(world: World) -> None:
    """Pods with these labels have the system's default constraints: zones and hosts, softly."""
    metadata = {"name": "s", "namespace": "default"}
    world.see_other(SERVICE, metadata=metadata, spec={"selector": {"app": "web"}})


SOFT = [spread("zone", 2, soft=True), spread("host", soft=True), spread("rack", 3, soft=True)]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_rows_that_nobody_names_keep_their_points_and_each_alone_gets_its_own(
    seed: int, count: int
) -> None:
    """With constraints of the pod's own, or (0) by default, where all nodes take part."""
    world = RandomWorld(7000 + seed)
    selected_by_a_service(world)
    plugin = PodTopologySpread(None, world.cluster)
    pod = a_pod("new", "app=web", topologySpreadConstraints=SOFT[:count] or None)
    info = world.info(pod)
    kept: tuple[Any, Any, int, list[int]] | None = None
    compared = 0
    for _ in range(60):
        world.step()
        view = world.cluster.view()
        said = plugin.pre_score(info, view, view.live)
        if not world.nodes or said.moved is None:
            continue
        stamp = plugin.stamp(info, said.data)
        raw = plugin.score(info, view, said.data).tolist()
        for row, _node in world.cluster.nodes.nodes():
            assert plugin.score_one(info, row, said.data) == raw[row]
        if kept is not None and kept[0] == stamp and kept[1] == said.data.weights:
            named = said.moved.rows(kept[2], ALL_ASPECTS)
            for row, _node in world.cluster.nodes.nodes():
                if named is not None and row not in named:
                    compared += 1
                    assert raw[row] == kept[3][row]
        kept = stamp, said.data.weights, said.moved.end, raw
    assert compared > 20


@pytest.mark.parametrize("key", ["host", "zone"])
def test_a_pod_that_comes_moves_the_rows_of_its_domain_alone(key: str) -> None:
    world = a_row("a a b b", "")
    plugin = PodTopologySpread(None, world.cluster)
    pod = a_pod("new", "app=web", topologySpreadConstraints=[spread(key, soft=True)])
    info, view = world.info(pod), world.cluster.view()
    said = plugin.pre_score(info, view, view.live)
    assert said.moved is not None
    plugin.stamp(info, said.data)
    before = said.moved.end

    world.see(a_pod("p", "app=web", node="n1"))
    plugin.stamp(info, said.data)

    moved = said.moved.rows(before, ALL_ASPECTS)
    assert set(moved or ()) == ({1} if key == "host" else {0, 1})


def test_by_default_nodes_count_though_none_has_all_keys() -> None:
    world = World(*(a_node(f"n{n}", f"host=n{n}") for n in range(2)))
    world.see(a_pod("p", "app=web", node="n0"))
    selected_by_a_service(world)
    plugin, view = PodTopologySpread(None, world.cluster), world.cluster.view()
    own = [spread("zone", soft=True), spread("host", soft=True)]
    raws = []
    for constraints in (None, own):
        info = world.info(a_pod("new", "app=web", topologySpreadConstraints=constraints))
        raws.append(plugin.score(info, view, plugin.pre_score(info, view, view.live).data).tolist())

    assert raws[0][0] > raws[0][1] >= 0
    assert raws[1] == [IGNORED, IGNORED]
