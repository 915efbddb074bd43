"""The filter against its twin, on random nodes with pods that we or others placed."""

import random
import sys

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.hardware.sharing.devices import CONTAINERS_MAX, FreeDevices
from asched.hardware.sharing.hami import HamiVGPUArgs
from asched.hardware.sharing.plugin import HamiVGPU
from asched.hardware.sharing.volcano import Volcano, VolcanoVGPUArgs
from tests.builders import all_rows
from tests.conformance.twins.shared_devices import Asks, finds_devices
from tests.unit.hardware.sharing.worlds import a_node, a_pod, random_asks, random_gpus, random_there

#: Of a node with one more pod: NODES * PODS states a seed.
NODES, PODS, SEEDS = 20, 5, range(4)


def compare(seed: int) -> tuple[int, int]:
    """How many nodes were compared, and how many took the pod."""
    rng = random.Random(seed)
    policy = rng.choice(("binpack", "spread"))
    cluster = Cluster()
    plugin = HamiVGPU(HamiVGPUArgs(gpu_scheduler_policy=policy), cluster)
    gpus, there = {}, {}
    for at in range(NODES):
        name = f"n{at}"
        gpus[name] = random_gpus(rng, name)
        cluster.apply(Seen(NODE, decode(Node, a_node(name, gpus[name]))))
        pods = [
            random_there(rng, f"{name}-p{n}", name, gpus[name]) for n in range(rng.randrange(4))
        ]
        there[name] = [told for told, _ in pods]
        for _, made in pods:
            cluster.apply(Seen(POD, decode(Pod, made)))
    compared = taken = 0
    for at in range(PODS):
        asks, model = random_asks(rng), rng.choice(("", "", "A100"))
        pod = decode(Pod, a_pod(f"new{at}", asks, model))
        info = PodInfo(pod, cluster.classes.class_of(pod))
        plugin.stamp(info, None)
        codes = plugin.filter(info, all_rows(cluster), None)
        for name, devices in gpus.items():
            found = not codes[cluster.nodes.row_of[name]]
            expected = finds_devices(devices, there[name], asks, model, policy == "spread")
            assert found == expected, (name, asks)
            compared, taken = compared + 1, taken + found
    return compared, taken


@pytest.mark.parametrize("seed", SEEDS)
def test_the_filter_says_what_its_twin_says(seed: int) -> None:
    compared, taken = compare(seed)
    assert compared == NODES * PODS
    assert 0 < taken < compared


@pytest.mark.parametrize("count", [CONTAINERS_MAX, CONTAINERS_MAX + 1])
def test_pods_of_very_many_containers_get_no_shared_devices(count: int) -> None:
    """Each node is asked for each of them: 2,000 took 24 ms a node."""
    cluster = Cluster()
    plugin = HamiVGPU(HamiVGPUArgs(), cluster)
    asks = [Asks("init", 1, 1000 + at, 0, 0) for at in range(count)]
    pod = decode(Pod, a_pod("large", asks))
    status = plugin.pre_filter(PodInfo(pod, cluster.classes.class_of(pod))).status

    assert status.is_success == (count == CONTAINERS_MAX)
    assert status.is_success or status.message == (
        "no more than 64 containers may share devices, it has 65"
    )


def test_volcanos_annotations_have_a_place_for_each_container() -> None:
    """Three devices, two containers of which the first asks for nothing."""
    volcano = Volcano(VolcanoVGPUArgs())
    node = decode(
        Node,
        {
            "metadata": {
                "name": "n1",
                "annotations": {
                    "volcano.sh/node-vgpu-register": "a,10,100,NVIDIA-X,true,hami-core:"
                    "b,10,100,NVIDIA-X,false,hami-core:c,10,100,NVIDIA-X,true,mig:broken,1:"
                },
            }
        },
    )
    devices = volcano.devices(node)
    assert [(d.id, d.is_healthy, d.mode) for d in devices] == [
        ("a", True, "hami-core"),
        ("b", False, "hami-core"),
        ("c", True, "mig"),
    ]
    asking = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "30"}
    pod = decode(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {"containers": [{"name": "x"}, {"name": "y", "resources": {"limits": asking}}]},
        },
    )
    request = volcano.request_of(pod)
    assert request is not None
    parts = FreeDevices(devices).choose(request, "binpack")
    assert parts is not None
    first = volcano.written(node, parts, 1000.5)
    second = volcano.written(node, parts, 1000.7)
    assert first["volcano.sh/devices-to-allocate"] == ";a,NVIDIA,30,0:"
    assert first["volcano.sh/vgpu-ids-new"] == ";a,NVIDIA,30,0:"
    assert (first["volcano.sh/vgpu-time"], second["volcano.sh/vgpu-time"]) == ("1000", "1001")
    assert first["volcano.sh/bind-phase"] == "allocating"


if __name__ == "__main__":  # how many seeds
    told = [compare(seed) for seed in range(int(sys.argv[1]))]
    print(*(sum(column) for column in zip(*told, strict=True)))  # noqa: T201
