"""Rules that hold at every moment: who sleeps is seen, also while others are on their way."""

from typing import Any

import pytest

from asched_lab.sim.moments import Moments
from asched_lab.sim.steps import AddNodes, AddPods
from asched_lab.sim.world import World

Json = dict[str, Any]
TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "friend"}},
}
NEAR_A_FRIEND = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


def near_a_friend(_world: World, pod: Json) -> None:
    pod["spec"]["affinity"] = NEAR_A_FRIEND


@pytest.fixture
def world() -> Any:
    """One node with room for one of two pods; the other rests, and another node is full."""
    with World(1) as made:
        AddNodes(count=1, cpu=(4,), pods=(20,)).do(made)
        made.run_for(5.0)
        AddPods(count=1, cpu=("3",)).do(made)
        made.run_for(5.0)
        AddPods(count=1, cpu=("2",), name="large").do(made)
        AddPods(count=1, cpu=("100m",), name="lonely", make=near_a_friend).do(made)
        made.run_for(5.0)
        yield made


def comes(world: World, node: str, **labels: str) -> None:
    """A pod is on its way: assumed, and not seen there yet."""
    AddPods(count=1, cpu=("100m",), name="coming", make=lambda _w, p: _gated(p, labels)).do(world)
    world.run_for(3.0)
    cluster = world.parts.cluster
    pod = next(p for p in cluster.pods_seen.values() if p.metadata.name.startswith("coming"))
    cluster.assume(cluster.classes.info_of(pod), node)


def _gated(pod: Json, labels: dict[str, str]) -> None:
    pod["metadata"]["labels"] = labels
    pod["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]


def asleep(world: World) -> set[str]:
    said = Moments(world, ())._asleep().values()
    return {line.split("/")[1].rpartition("-")[0] or line.split("/")[1].split()[0] for line in said}


def test_who_was_not_told_of_room_is_seen_while_another_is_on_its_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node,) = world.node_names()
    comes(world, node)
    assert asleep(world) == set()
    monkeypatch.setattr(world.machine.context.queue, "move", lambda *_, **__: 0)
    AddNodes(count=1, cpu=(4,), pods=(20,)).do(world)
    world.run_for(3.0)
    assert [name.partition(" ")[0] for name in asleep(world)] == ["large"]


def test_who_waits_for_company_hears_of_it_once_the_watch_has_told(world: World) -> None:
    (node,) = world.node_names()
    comes(world, node, app="friend")
    assert asleep(world) == set()


def test_who_is_promised_room_elsewhere_waits_for_what_others_leave(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.machine.context.queue, "move", lambda *_, **__: 0)
    AddNodes(count=1, cpu=(4,), pods=(20,)).do(world)
    world.run_for(3.0)
    nominator, seen = world.parts.nominator, world.parts.cluster.pods_seen
    old, new = world.node_names()
    large = next(pod for pod in seen.values() if pod.metadata.name.startswith("large"))
    lonely = next(pod for pod in seen.values() if pod.metadata.name.startswith("lonely"))
    nominator.add(large, old)
    assert [name.partition(" ")[0] for name in asleep(world)] == ["large"]
    nominator.add(lonely, new)
    assert asleep(world) == set()
