"""What the owner of a pod writes into its annotations and labels takes no devices from others."""

from typing import Any

import pytest

from asched.hardware.sharing.fractions import GpuFractions
from asched.hardware.sharing.plugin import GpuShare, HamiVGPU, VolcanoVGPU
from asched.testing import World, given, node, pod
from tests.unit.hardware.sharing.device_plugins import (
    DevicePlugin,
    Gpu,
    GpuSharePlugin,
    HamiPlugin,
    VolcanoPlugin,
)

Json = dict[str, Any]
WHOLE = "nvidia.com/gpu"
PHASE, SINCE = "volcano.sh/bind-phase", "volcano.sh/bind-time"


def asking(name: str, *, requests: Json | None = None, **more: Any) -> Json:
    made = pod(name, **more)
    for container in made["spec"]["containers"]:
        asked = {key: str(value) for key, value in (requests or {}).items()}
        container["resources"]["limits"] = asked
        container["resources"].setdefault("requests", {}).update(asked)
    return made


def a_node_of(plugin: type[Any], name: str, *gpus: int, **more: Any) -> Json:
    made: DevicePlugin = plugin(name, [Gpu(f"{name}-g{at}", mib) for at, mib in enumerate(gpus)])
    told = made.register() if hasattr(made, "register") else {}
    resources = {**made.offers(), "nvidia.com/gpumem": "1000000"}
    return node(name, resources=resources, annotations=told, **more)


KINDS: list[Any] = [
    pytest.param(
        HamiVGPU,
        HamiPlugin,
        lambda mib: {WHOLE: 1, "nvidia.com/gpumem": mib},
        {"hami.io/vgpu-node": "n1"},
        "hami.io/vgpu-devices-allocated",
        id="HamiVGPU",
    ),
    pytest.param(
        VolcanoVGPU,
        VolcanoPlugin,
        lambda mib: {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": mib},
        {"volcano.sh/vgpu-node": "n1", PHASE: "success"},
        "volcano.sh/vgpu-ids-new",
        id="VolcanoVGPU",
    ),
]


def a_world(plugin: Any, device_plugin: Any, *gpus: int, there: list[Json] | None = None) -> World:
    return given([a_node_of(device_plugin, "n1", *gpus)], there or [], plugins=[plugin])


def rewrite(world: World, name: str, annotations: Json) -> None:
    """The owner of a pod patches its annotations; the device plugin has served it before."""
    made = world._pods[f"default/{name}"]
    made["metadata"]["annotations"] = {**made["metadata"].get("annotations", {}), **annotations}
    world.add(made)
    known = world._nodes["n1"]
    known["metadata"]["annotations"].pop("hami.io/mutex.lock", None)
    world.add(known)


@pytest.mark.parametrize(("plugin", "device_plugin", "asks", "told", "key"), KINDS)
@pytest.mark.parametrize("text", ["", ";", "gone,NVIDIA,16000,0:", "n1-g0,NVIDIA,1,0:", "nonsense"])
def test_a_device_that_a_pod_has_got_stays_taken_whatever_it_says(
    plugin: Any, device_plugin: Any, asks: Any, told: Json, key: str, text: str
) -> None:
    world = a_world(plugin, device_plugin, 16_000)
    assert world.schedule(asking("first", requests=asks(16_000))).node == "n1"
    rewrite(world, "first", {**told, key: text})
    assert world.schedule(asking("second", requests=asks(16_000))).node == ""


@pytest.mark.parametrize(("plugin", "device_plugin", "asks", "told", "key"), KINDS)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_pod_takes_no_more_than_it_asks_for_whatever_it_says(
    plugin: Any, device_plugin: Any, asks: Any, told: Json, key: str, *, is_restarted: bool
) -> None:
    world = a_world(plugin, device_plugin, 16_000, 16_000)
    small = asking("small", requests=asks(1))
    assert world.schedule(small).node == "n1"
    greedy = "n1-g0,NVIDIA,999999,100:n1-g1,NVIDIA,999999,100:"
    rewrite(world, "small", {**told, key: greedy})
    if is_restarted:
        world = a_world(plugin, device_plugin, 16_000, 16_000, there=[world._pods["default/small"]])
    for name in ("a", "b"):
        assert world.schedule(asking(name, requests=asks(15_999))).node == "n1", name
        rewrite(world, name, {PHASE: "success"})


@pytest.mark.parametrize(("plugin", "device_plugin", "asks", "told", "key"), KINDS)
@pytest.mark.parametrize("text", ["", "gone,NVIDIA,16000,0:", "n1-g0,NVIDIA,1,0:"])
def test_after_a_restart_a_pod_still_takes_what_it_asks_for(
    plugin: Any, device_plugin: Any, asks: Any, told: Json, key: str, text: str
) -> None:
    annotations = {**told, key: text}
    there = asking("first", requests=asks(16_000), on="n1", annotations=annotations)
    world = a_world(plugin, device_plugin, 16_000, there=[there])
    assert world.schedule(asking("second", requests=asks(16_000))).node == ""


def test_gpushare_counts_a_pods_own_request_on_the_device_it_was_given() -> None:
    world = a_world(GpuShare, GpuSharePlugin, 16, 16)
    assert world.schedule(asking("first", requests={"aliyun.com/gpu-mem": 16})).node == "n1"
    forged = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "1"}
    rewrite(world, "first", forged)
    assert world.schedule(asking("second", requests={"aliyun.com/gpu-mem": 16})).node == "n1"
    assert world.schedule(asking("third", requests={"aliyun.com/gpu-mem": 1})).node == ""
    patched = {
        e.name: e.body["metadata"]["annotations"] for e in world.effects if hasattr(e, "body")
    }
    index = "ALIYUN_COM_GPU_MEM_IDX"
    assert patched["second"][index] != patched["first"][index], "each has a device of its own"


# --- turns ---------------------------------------------------------------------------------------

VGPU = {"volcano.sh/vgpu-number": 1}
ON_G0 = {"volcano.sh/vgpu-node": "n1", "volcano.sh/vgpu-ids-new": "n1-g0,NVIDIA,16000,0:"}


def being_served(world: World, name: str, **asked: int) -> Json:
    told = {PHASE: "allocating", SINCE: str(int(world.now_s))} | ON_G0
    return asking(name, requests=asked, on="n1", annotations=told)


def test_a_pod_without_a_device_keeps_no_pod_from_its_turn() -> None:
    world = a_world(VolcanoVGPU, VolcanoPlugin, 16_000)
    world.add(being_served(world, "evil"))
    assert world.schedule(asking("ours", requests=VGPU)).node == "n1"


def test_a_pod_is_waited_for_once_and_cannot_renew_that() -> None:
    world = a_world(VolcanoVGPU, VolcanoPlugin, 16_000, 16_000, 16_000)
    world.add(being_served(world, "evil", **VGPU))
    world.add(asking("ours", requests=VGPU))
    assert world.outcome("ours").node == ""
    for _ in range(12):
        world.wait(30)
        world.add(being_served(world, "evil", **VGPU))
    assert world.outcome("ours").node == "n1"
    rewrite(world, "ours", {PHASE: "success"})
    rewrite(world, "evil", {PHASE: "success"})
    world.add(being_served(world, "evil", **VGPU))
    assert world.schedule(asking("next", requests=VGPU)).node == "n1"


@pytest.mark.parametrize("since", [-300.0, 1e9])
def test_a_turn_that_began_long_ago_or_in_time_to_come_is_none(since: float) -> None:
    world = a_world(VolcanoVGPU, VolcanoPlugin, 16_000, 16_000)
    at = min(int(world.now_s + since), 2**31 - 1)
    told = {PHASE: "allocating", SINCE: str(at)} | ON_G0
    world.add(asking("other", requests=VGPU, on="n1", annotations=told))
    assert world.schedule(asking("ours", requests=VGPU)).node == "n1"


# --- whole GPUs beside parts of them -------------------------------------------------------------

GROUP = "runai-gpu-group"
KOORDINATOR = '{"gpu":[{"minor":0,"resources":{}},{"minor":1}]}'
ALLOCATED = "scheduling.koordinator.sh/device-allocated"
INDEX = "alibabacloud.com/gpu-index"


def a_part(name: str, annotations: Json | None = None, **requests: int) -> Json:
    return asking(name, requests=requests, on="n1", annotations=annotations)


MEMORY = {"aliyun.com/gpu-mem": 4}
TWO_DEVICES = {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 100}
FOUR_GPUS = {WHOLE: 4, "aliyun.com/gpu-mem": 64}
ONE_HALF = {"koordinator.sh/gpu-core": 50}


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ([], 4),
        ([a_part("a", {"ALIYUN_COM_GPU_MEM_IDX": "1"}, **MEMORY)], 3),
        ([a_part(n, {"ALIYUN_COM_GPU_MEM_IDX": "1"}, **MEMORY) for n in "ab"], 3),
        ([a_part("a", {INDEX: "2-3"}, **{"alibabacloud.com/gpu-count": 2})], 2),
        (
            [
                a_part("a", {INDEX: "1"}, **MEMORY),
                a_part("b", {ALLOCATED: KOORDINATOR}, **TWO_DEVICES),
            ],
            2,
        ),
        ([a_part("a", {"volcano.sh/vgpu-ids-new": "x,NVIDIA,1,1:"}, **VGPU)], 3),
        pytest.param([a_part("a", {}, **MEMORY)], 3, id="no device named: one of its own"),
        pytest.param([a_part("a", {ALLOCATED: "nonsense"}, **ONE_HALF)], 3, id="nonsense"),
        pytest.param([a_part("a", {INDEX: "0-1-2-3"}, **MEMORY)], 3, id="more than it asks for"),
        pytest.param([a_part("a", {INDEX: "0-1-2-3"})], 4, id="asks for none"),
        pytest.param(
            [a_part("a", {"gpu-fraction": "0.01", "gpu-fraction-num-devices": "64"})],
            4,
            id="a fraction that no reservation pod proves",
        ),
        pytest.param(
            [asking("reservation", requests={WHOLE: 1}, on="n1", labels={GROUP: "g"})],
            3,
            id="a reservation pod of KAI",
        ),
        pytest.param(
            [
                a_part("a", {INDEX: "0"}, **MEMORY),
                asking("liar", requests={WHOLE: 1}, on="n1", annotations={INDEX: "0"}),
            ],
            2,
            id="whole ones hide no parts of others",
        ),
    ],
)
def test_whole_gpus_are_what_parts_of_others_leave(there: list[Json], left: int) -> None:
    world = given([node("n1", resources=FOUR_GPUS)], there, plugins=[GpuFractions])
    assert world.schedule(asking("too-many", requests={WHOLE: left + 1})).node == ""
    assert world.schedule(asking("just", requests={WHOLE: left})).node == "n1"


def test_a_pod_that_names_other_devices_later_is_not_believed() -> None:
    there = [a_part(n, {"ALIYUN_COM_GPU_MEM_IDX": "1"}, **MEMORY) for n in "ab"]
    world = given([node("n1", resources=FOUR_GPUS)], there, plugins=[GpuFractions])
    assert world.schedule(asking("none", requests={WHOLE: 4})).node == ""
    world.add(a_part("a", {"ALIYUN_COM_GPU_MEM_IDX": "2"}, **MEMORY))
    assert world.schedule(asking("three", requests={WHOLE: 3})).node == "n1"
