"""What the ledger remembers of pods, and when it looks at them again."""

from typing import Any

import pytest

from asched.hardware.sharing import ledger
from asched.hardware.sharing.plugin import HamiVGPU
from asched.testing import World, given, node, pod
from tests.hardware.sharing.device_plugins import Gpu, HamiPlugin, Json

ASKED = "nvidia.com/gpu"


def a_world(nodes: int = 1) -> World:
    gpus = [HamiPlugin(f"n{at}", [Gpu("GPU", 10_000), Gpu("GPU2", 10_000)]) for at in range(nodes)]
    told = [node(one.node, resources=one.offers(), annotations=one.register()) for one in gpus]
    return given(told, plugins=[HamiVGPU])


def the_ledger(world: World) -> Any:
    plugins = world._machine.context.runners["asched"].profile.plugins
    return plugins["HamiVGPU"]._ledger


def a_sharer(name: str, **more: Any) -> Json:
    made = pod(name, **more)
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {ASKED: "1"}
    resources["requests"][ASKED] = "1"
    return made


def test_pods_that_have_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SWEEP_FROM", 4)
    world = a_world()
    for at in range(20):
        made = a_sharer(f"p{at}")
        assert world.schedule(made).node == "n0"
        del world._nodes["n0"]["metadata"]["annotations"]["hami.io/mutex.lock"]
        world.add(world._nodes["n0"])
        world.remove(made)
    assert len(the_ledger(world)._reserved) <= ledger.SWEEP_FROM


def test_pods_that_nobody_told_of_are_looked_at_when_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of them may be there, and one attempt follows the other."""
    world = a_world(nodes=3)
    world.add(*(a_sharer(f"there{at}", on=f"n{at}") for at in range(3)))
    assert world.schedule(a_sharer("first")).node == ""
    book = the_ledger(world)
    read = list[int]()
    before = book._read
    monkeypatch.setattr(book, "_read", lambda row: (read.append(row), before(row))[1])

    assert world.schedule(a_sharer("second")).node == ""
    assert read == []
    told = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU,NVIDIA,10000,0:;"}
    world.add(a_sharer("there1", on="n1", annotations=told))
    world.wait(10)
    assert "n1" in {world.outcome("first").node, world.outcome("second").node}
    row = world._machine.context.cluster.nodes.row_of["n1"]
    assert row in read


def test_whoever_asks_for_one_row_alone_is_told_of_it_as_it_is_now() -> None:
    """Nobody has to have asked of all rows before."""
    world = a_world()
    assert world.schedule(a_sharer("first")).node == "n0"
    book, cluster = the_ledger(world), world._machine.context.cluster
    row = cluster.nodes.row_of["n0"]
    held = book.room(row).slots
    world.add(a_sharer("second", on="n0"))
    assert book.room(row).slots == [slots - 1 for slots in held]

    world.remove(a_sharer("second"))
    assert book.room(row).slots == held
    world.add(node("n1"))
    assert book.room(cluster.nodes.row_of["n1"]).slots == []
