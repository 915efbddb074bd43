"""Devices that pods name in their annotations are believed as far as the sum on them allows.

The owner of a pod writes its annotations. What they hide, or claim twice, is counted once,
elsewhere on the node: it neither makes room that does not exist, nor blocks the other devices.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from asched.hardware.sharing.fractions import GpuFractions
from asched.hardware.sharing.plugin import GpuShare, HamiVGPU, VolcanoVGPU
from asched.testing import World, given, node, pod
from tests.unit.hardware.sharing.device_plugins import (
    Gpu,
    GpuSharePlugin,
    HamiPlugin,
    VolcanoPlugin,
)

Json = dict[str, Any]
#: Memory of a device.
MIB = 16_000
WHOLE = "nvidia.com/gpu"
#: After so long a device plugin has served a pod, or has died.
SERVED_S = 301.0


class Sharing(NamedTuple):
    """A plugin that shares devices: its device plugin, a request, and what names a device."""

    plugin: Any
    device_plugin: Any
    request: Callable[[int], Json]
    naming: Callable[[str], Json]


def virtual(domain: str, key: str) -> Callable[[str], Json]:
    served = {f"{domain}/bind-phase": "success", f"{domain}/vgpu-node": "n1"}
    return lambda device: {**served, f"{domain}/{key}": f"{device},NVIDIA,{MIB},0:"}


SHARING = [
    Sharing(
        HamiVGPU,
        HamiPlugin,
        lambda mib: {WHOLE: 1, "nvidia.com/gpumem": mib},
        virtual("hami.io", "vgpu-devices-allocated"),
    ),
    Sharing(
        VolcanoVGPU,
        VolcanoPlugin,
        lambda mib: {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": mib},
        virtual("volcano.sh", "vgpu-ids-new"),
    ),
    Sharing(
        GpuShare,
        GpuSharePlugin,
        lambda mib: {"aliyun.com/gpu-mem": mib},
        lambda device: {"ALIYUN_COM_GPU_MEM_IDX": device, "ALIYUN_COM_GPU_MEM_POD": str(MIB)},
    ),
]
of_each = pytest.mark.parametrize("sharing", SHARING, ids=[each.plugin.name for each in SHARING])


def requesting(name: str, resources: Json, **more: Any) -> Json:
    made = pod(name, **more)
    amounts = {key: str(value) for key, value in resources.items()}
    for container in made["spec"]["containers"]:
        container["resources"]["limits"] = amounts
        container["resources"]["requests"] |= amounts
    return made


def there(sharing: Sharing, name: str, mib: int = MIB, device: str = "") -> Json:
    """A pod that another process placed, and whose annotations name this device."""
    annotations = sharing.naming(device) if device else {}
    return requesting(name, sharing.request(mib), on="n1", annotations=annotations)


def restarted(sharing: Sharing, gpus: int, *pods: Json) -> World:
    """A scheduler that has just started."""
    devices = sharing.device_plugin("n1", [Gpu(str(at), MIB) for at in range(gpus)])
    resources = {**devices.offers(), "nvidia.com/gpumem": "1000000"}
    made = node("n1", cpu=64, resources=resources, annotations=devices.register())
    return given([made], pods, plugins=[sharing.plugin])


def placed(world: World, sharing: Sharing, mib: int = MIB) -> int:
    """How many pods of this size find a device."""
    count = 0
    while world.schedule(requesting(f"new{count}", sharing.request(mib))).node:
        world.wait(SERVED_S)
        count += 1
    return count


@of_each
def test_a_pod_that_names_no_device_takes_one(sharing: Sharing) -> None:
    world = restarted(sharing, 8, there(sharing, "erased"), there(sharing, "gone", device="99"))
    assert placed(world, sharing) == 6


@of_each
def test_full_pods_that_name_one_device_take_one_each(sharing: Sharing) -> None:
    pods = [there(sharing, name, device="0") for name in ("a", "b", "c")]
    world = restarted(sharing, 4, *pods)
    assert placed(world, sharing) == 1


@of_each
def test_pods_that_share_the_device_that_they_name_leave_the_others(sharing: Sharing) -> None:
    pods = [there(sharing, name, MIB // 2, device="0") for name in ("a", "b")]
    assert placed(restarted(sharing, 4, *pods), sharing) == 3


@of_each
def test_a_pod_that_can_be_nowhere_takes_no_more_than_it_requests(sharing: Sharing) -> None:
    """Each device is in use, so that none has room for all of the pod."""
    small = [there(sharing, f"small{at}", 1, device=str(at)) for at in range(4)]
    world = restarted(sharing, 4, *small, there(sharing, "erased"))
    assert placed(world, sharing, MIB - 2) == 3


def test_rules_in_annotations_do_not_multiply_a_pod_that_names_no_device() -> None:
    hami = SHARING[0]
    hidden = there(hami, "hidden")
    hidden["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": "none"}
    assert placed(restarted(hami, 4, hidden), hami) == 3


# --- whole GPUs beside parts ---------------------------------------------------------------------

MILLI, INDEX = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-index"
MEMORY, MEMORY_INDEX = "aliyun.com/gpu-mem", "ALIYUN_COM_GPU_MEM_IDX"
CORES, ALLOCATED = "koordinator.sh/gpu-core", "scheduling.koordinator.sh/device-allocated"
FIRST = '{"gpu":[{"minor":0}]}'


def parts(count: int, annotations: Json, **more: Any) -> list[Json]:
    return [
        requesting(f"part{at}", more["resources"], on="n1", annotations=annotations)
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("pods", "free"),
    [
        pytest.param(parts(6, {INDEX: "0"}, resources={MILLI: 1000}), 2, id="six whole ones"),
        pytest.param(parts(3, {INDEX: "0"}, resources={MILLI: 333}), 7, id="three thirds"),
        pytest.param(parts(4, {INDEX: "0"}, resources={MILLI: 333}), 6, id="four thirds"),
        pytest.param(parts(4, {MEMORY_INDEX: "0"}, resources={MEMORY: 4}), 7, id="memory"),
        pytest.param(parts(5, {MEMORY_INDEX: "0"}, resources={MEMORY: 4}), 6, id="more memory"),
        pytest.param(parts(1, {ALLOCATED: FIRST}, resources={CORES: 800}), 0, id="one for eight"),
        pytest.param(
            parts(2, {INDEX: "0"}, resources={"volcano.sh/gpu-memory": 1}),
            6,
            id="memory that the node does not offer",
        ),
    ],
)
def test_parts_that_exceed_a_device_are_elsewhere(pods: list[Json], free: int) -> None:
    gpus = node("n1", cpu=64, resources={WHOLE: 8, MEMORY: 128})
    world = given([gpus], pods, plugins=[GpuFractions])
    assert world.schedule(requesting("more", {WHOLE: free + 1})).node == ""
    if free:
        assert world.schedule(requesting("just", {WHOLE: free})).node == "n1"
