"""Whose turn it is: what others wrote on nodes and pods holds nobody up for ever."""

from asched.hardware.sharing.plugin import HamiVGPU
from asched.testing import given, node, pod
from tests.unit.hardware.sharing.device_plugins import Gpu, HamiPlugin, Json, VolcanoPlugin


def a_node(plugin: type[HamiPlugin | VolcanoPlugin], gpus: int = 1, **told: str) -> Json:
    made = plugin("n0", [Gpu(f"GPU-{at}", 10_000) for at in range(gpus)])
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


def test_a_long_line_that_moves_is_awaited() -> None:
    """Each pod is served after 200 s, the last one after 1,000 s."""
    made = a_node(HamiPlugin, 5)
    world = given([made], plugins=[HamiVGPU])
    names = [f"p{number}" for number in range(5)]
    world.add(*(a_sharer(name, "nvidia.com/gpu") for name in names))
    for served in range(1, 6):
        assert [name for name in names if world.outcome(name).node] == names[:served]
        world.wait(200.0)
        world.add(made)  # the device plugin has removed the lock
        world.wait(1.0)
    assert not [event for event in world.events if event.startswith("Warning")]
