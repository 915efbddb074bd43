"""Words for one tenant name no pods of another: devices that a node hands out one at a time."""

from typing import Any

from asched.hardware.sharing.plugin import HamiVGPU
from asched.hardware.sharing.turns import TURN_S_MAX
from asched.testing import given, node, pod
from tests.unit.hardware.sharing.device_plugins import Gpu, HamiPlugin


def a_node(plugin: type[HamiPlugin], **annotations: str) -> dict[str, Any]:
    made = plugin("n0", [Gpu("GPU-0", 10_000)])
    return node("n0", resources=made.offers(), annotations={**made.register(), **annotations})


def a_sharer(resource: str) -> dict[str, Any]:
    made = pod("ours")
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {resource: "1"}
    resources["requests"][resource] = "1"
    return made


def of_the_bank(**more: Any) -> dict[str, Any]:
    made = pod("secret-project", on="n0", **more)
    made["metadata"]["namespace"] = "bank"
    return made


def test_a_pod_that_waits_for_devices_reads_no_names_of_others() -> None:
    lock = {"hami.io/mutex.lock": "by hand,bank,secret-project"}
    world = given([a_node(HamiPlugin, **lock)], plugins=[HamiVGPU])
    world.add(of_the_bank())
    world.add(a_sharer("nvidia.com/gpu"))
    world.wait(TURN_S_MAX + 60)

    message = world.outcome("ours").message
    assert "n0 was not free to serve" in message
    assert "secret" not in message
    assert "bank" not in message
