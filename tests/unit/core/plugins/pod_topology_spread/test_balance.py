"""Soft constraints: the worked examples, sizes, ignored nodes, and normalisation."""

from typing import Any

import numpy as np

from asched.core.model.kinds import SERVICE
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from asched.core.plugins.pod_topology_spread.sides import IGNORED
from tests.conformance.twins import pod_topology_spread as twin
from tests.topology_builders import World, a_node, a_pod, spread


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


def test_nothing_to_choose_between_is_worth_everything() -> None:
    world = a_row("a b", "")

    assert points_of(world, topologySpreadConstraints=[spread("zone", soft=True)]) == [100, 100]


def selected_by_a_service(world: World) -> None:
    """Pods with these labels have the system's default constraints: zones and hosts, softly."""
    metadata = {"name": "s", "namespace": "default"}
    world.see_other(SERVICE, metadata=metadata, spec={"selector": {"app": "web"}})


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
