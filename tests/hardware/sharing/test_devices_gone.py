"""Devices that go while a pod is on its way to them."""

from asched.hardware.sharing.plugin import GpuShare
from asched.plugin import PodInfo, Status
from asched.testing import given, node, pod
from tests.hardware.sharing.device_plugins import Gpu, GpuSharePlugin


def test_a_pod_is_not_told_of_devices_that_went() -> None:
    """A kubelet that starts anew offers none for a while."""
    offers = GpuSharePlugin("n0", [Gpu("0", 16)]).offers()
    world = given([node("n0", resources=offers)], plugins=[GpuShare])
    runner = world._machine.context.runners["asched"]
    plugin = runner.profile.plugins["GpuShare"]
    reserve = plugin.reserve

    def reserved(info: PodInfo, to: str, data: object) -> Status:
        status = reserve(info, to, data)
        world._parts.cluster.apply(world._written(node("n0")))
        return status

    plugin.reserve = reserved
    ours = pod("ours")
    ours["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu-mem": "4"}

    outcome = world.schedule(ours)

    assert outcome.node == ""
    assert "node n0 tells no more of device 0" in outcome.message
    assert not world.raised
