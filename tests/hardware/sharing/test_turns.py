"""Whose turn it is: what others wrote on nodes and pods holds nobody up for ever."""

from asched.core.state.facts import WallClock
from asched.hardware.sharing.plugin import HamiVGPU, VolcanoVGPU
from asched.hardware.sharing.turns import TURN_S_MAX
from asched.testing import given, node, pod
from tests.hardware.sharing.device_plugins import Gpu, HamiPlugin, Json, VolcanoPlugin

PHASE = "volcano.sh/bind-phase"


def a_node(plugin: type[HamiPlugin | VolcanoPlugin], **told: str) -> Json:
    made = plugin("n0", [Gpu("GPU-0", 10_000)])
    return node("n0", resources=made.offers(), annotations={**made.register(), **told})


def a_sharer(name: str, resource: str) -> Json:
    made = pod(name)
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {resource: "1"}
    resources["requests"][resource] = "1"
    return made


def test_a_lock_of_a_time_to_come_is_nobodys() -> None:
    lock = {"hami.io/mutex.lock": "2999-01-01T00:00:00Z,default,other"}
    world = given([a_node(HamiPlugin, **lock)], plugins=[HamiVGPU])
    world.add(pod("other", on="n0"))

    assert world.schedule(a_sharer("ours", "nvidia.com/gpu")).node == "n0"


def test_a_clock_that_is_set_back_prolongs_nobodys_patience() -> None:
    lock = {"hami.io/mutex.lock": "by hand"}
    world = given([a_node(HamiPlugin, **lock)], plugins=[HamiVGPU])
    world.add(pod("other", on="n0"))
    world.add(a_sharer("ours", "nvidia.com/gpu"))
    world._settle([WallClock(-3600)])
    world.wait(TURN_S_MAX)

    assert "n0 was not free to serve" in world.outcome("ours").message


def test_a_whole_line_is_served_as_fast_as_its_plugin_serves() -> None:
    """Who comes to the head of it waits for something else than before, and hears of that."""
    plugin = VolcanoPlugin("n0", [Gpu(f"GPU-{at}", 10_000) for at in range(4)])
    told = node("n0", resources=plugin.offers(), annotations=plugin.register())
    world = given([told], plugins=[VolcanoVGPU])
    names = ["a", "b", "c", "d"]
    world.add(*(a_sharer(name, "volcano.sh/vgpu-number") for name in names))
    for number in range(1, len(names) + 1):
        bound = [name for name in names if world.outcome(name).node]
        assert len(bound) == number
        for name in bound:
            pods = world._pods
            if pods[f"default/{name}"]["metadata"]["annotations"][PHASE] != "success":
                plugin.serve(pods[f"default/{name}"], list(pods.values()), world._nodes["n0"])
                world.add(pods[f"default/{name}"])
