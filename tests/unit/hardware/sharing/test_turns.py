"""Whose turn it is: what others wrote on nodes and pods holds nobody up for ever."""

from asched.hardware.sharing.plugin import HamiVGPU
from asched.testing import given, node, pod
from tests.unit.hardware.sharing.device_plugins import Gpu, HamiPlugin, Json, VolcanoPlugin


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
