"""The sharing plugins in a profile: who waits for whom, what is taken back, what is refused."""

import json
import re

import pytest

from asched.core.framework.profile import CannotBuildError
from asched.core.model.timestamp import rfc3339
from asched.hardware.sharing.plugin import GpuShare, HamiVGPU, VolcanoVGPU
from asched.plugin import Patch
from asched.testing import World, given, node, pod

LOCK = "hami.io/mutex.lock"
IGNORED = {"NodeResourcesFit": {"ignoredResources": ["nvidia.com/gpumem", "nvidia.com/gpucores"]}}


def hami_node(name: str, gpus: int = 2, **annotations: str):
    told = [
        {"id": f"{name}-{at}", "count": 10, "devmem": 1000, "devcore": 100, "type": "NVIDIA-T4"}
        | {"health": True, "mode": "hami-core"}
        for at in range(gpus)
    ]
    register = {"hami.io/node-nvidia-register": json.dumps(told)}
    offered = {"nvidia.com/gpu": 10 * gpus}
    return node(name, resources=offered, annotations={**register, **annotations})


def sharing(name: str, memory: int = 500, number: int = 1, **more):
    made = pod(name, **more)
    asked = {"nvidia.com/gpu": str(number), "nvidia.com/gpumem": str(memory)}
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"] |= asked
    resources["limits"] = asked
    return made


def hami_world(*nodes) -> World:
    return given(nodes, plugins=[HamiVGPU], args=IGNORED)


def release(world: World, name: str = "n1") -> None:
    stored = world._nodes[name]
    stored["metadata"]["annotations"].pop(LOCK, None)
    world.add(stored)


def test_the_next_pod_waits_until_the_plugin_has_let_go_of_the_lock() -> None:
    world = hami_world(hami_node("n1"))
    assert world.schedule(sharing("one")).node == "n1"
    for name in ("two", "three"):
        assert world.schedule(sharing(name)).node == ""
    world.wait(30)
    assert world.outcome("two").node == ""
    release(world)
    assert (world.outcome("two").node, world.outcome("three").node) == ("n1", "")
    release(world)
    assert world.outcome("three").node == "n1"


@pytest.mark.parametrize(
    ("lock", "is_heeded"),
    [
        ("{old},default,other", False),
        ("{now},default,gone", False),
        ("{now},default,other", True),
        ("{now}", True),
        ("nonsense", True),
    ],
)
def test_a_lock_is_heeded_while_it_is_young_and_its_pod_is_there(
    lock: str, is_heeded: bool
) -> None:
    world = hami_world(hami_node("n1"))
    world.add(pod("other", on="n1"))
    text = lock.format(now=rfc3339(world.now_s), old=rfc3339(world.now_s - 301))
    world.add(hami_node("n1", **{LOCK: text}))
    assert (world.schedule(sharing("web")).node == "") == is_heeded


def test_pods_with_other_annotations_do_not_wait_for_each_other() -> None:
    """One that fits nowhere says nothing of another that only its annotations tell apart."""
    world = hami_world(hami_node("n1"))
    picky = sharing("picky", annotations={"nvidia.com/use-gputype": "H100"})
    assert world.schedule(picky).node == ""
    assert world.schedule(sharing("modest")).node == "n1"


def test_more_devices_told_by_an_agent_wake_who_waits() -> None:
    world = hami_world(hami_node("n1", gpus=1))
    refused = world.schedule(sharing("web", number=2))
    assert "too little left of each shared device" in refused.message
    world.add(hami_node("n1", gpus=2))
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_pods_without_devices_are_none_of_its_business() -> None:
    world = hami_world(node("plain"))
    assert world.schedule(pod("web")).node == "plain"
    assert not world.asked(Patch)
    refused = world.schedule(sharing("gpu", namespace="default"))
    assert refused.node == ""


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"hami.io/gpu-scheduler-policy": "topology-aware"}, '"topology-aware" is not implemented'),
        ({"hami.io/node-scheduler-policy": "x"}, 'node-scheduler-policy "x" is not implemented'),
        ({"hami.io/device-scoring-weights": "{}"}, "device-scoring-weights is not implemented"),
        ({"nvidia.com/vgpu-mode": "mig"}, 'vgpu-mode "mig" is not implemented'),
    ],
)
def test_what_annotations_ask_for_in_vain_is_refused_by_name(annotations, message) -> None:
    world = hami_world(hami_node("n1"))
    assert message in world.schedule(sharing("web", annotations=annotations)).message


def test_volcano_serves_one_container_of_a_pod() -> None:
    world = given([node("n1", resources={"volcano.sh/vgpu-number": 4})], plugins=[VolcanoVGPU])
    made = pod("web")
    container = made["spec"]["containers"][0]
    container["resources"]["limits"] = {"volcano.sh/vgpu-number": "1"}
    made["spec"]["containers"].append({**container, "name": "second"})
    assert "serves one container of a pod" in world.schedule(made).message


@pytest.mark.parametrize(
    ("plugin", "args", "message"),
    [
        (HamiVGPU, {"gpuSchedulerPolicy": "mutex"}, 'gpuSchedulerPolicy "mutex" is none of'),
        (HamiVGPU, {"defaultCores": 101}, "defaultCores is within 0..100"),
        (VolcanoVGPU, {"schedulePolicy": "x"}, 'schedulePolicy "x" is none of binpack, spread'),
        (GpuShare, {"policy": "x"}, "policy: unknown field"),
    ],
)
def test_args_without_a_meaning_are_refused(plugin, args, message) -> None:
    with pytest.raises(CannotBuildError, match=re.escape(message)):
        given([node("n1")], plugins=[plugin], args={plugin.name: args})
