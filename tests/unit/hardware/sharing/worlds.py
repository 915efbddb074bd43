"""Random nodes, pods with and without devices on them, as JSON and for the twin."""

import json
import random
from typing import Any

from tests.conformance.twins.shared_devices import Asks, Gpu, There

Json = dict[str, Any]
COUNT, MEMORY, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)


def random_gpus(rng: random.Random, node: str) -> list[Gpu]:
    return [
        Gpu(
            f"{node}-g{at}",
            rng.choice(("NVIDIA-A100", "NVIDIA-T4")),
            rng.randrange(1, 5),
            rng.choice((8000, 16_000)),
            rng.choice((100, 100, 100, 150)),
            rng.random() < 0.9,
        )
        for at in range(rng.randrange(5))
    ]


def a_node(name: str, gpus: list[Gpu]) -> Json:
    told = [
        {"id": g.id, "count": g.slots, "devmem": g.memory, "devcore": g.cores, "type": g.model}
        | {"index": at, "numa": 0, "mode": "hami-core", "health": g.healthy}
        for at, g in enumerate(gpus)
    ]
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "annotations": {"hami.io/node-nvidia-register": json.dumps(told)},
        },
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", COUNT: "40"}},
    }


def random_asks(rng: random.Random) -> list[Asks]:
    roles = ["init"] * rng.randrange(2) + ["sidecar"] * rng.randrange(2)
    roles += ["container"] * rng.randrange(1, 3)
    asks = []
    for role in roles:
        number = rng.choice((0, 1, 1, 2))
        memory = rng.choice((0, 0, 1000, 4000, 8000, 9000)) if number else 0
        percent = rng.choice((10, 50, 100)) if number and not memory else 0
        cores = rng.choice((0, 0, 20, 50, 100)) if number else 0
        asks.append(Asks(role, number, memory, percent, cores))
    if not any(one.number for one in asks):
        asks[-1] = Asks("container", 1, 1000, 0, 0)
    return asks


def a_pod(name: str, asks: list[Asks], model: str = "", on: str = "") -> Json:
    def container(at: int, one: Asks) -> Json:
        limits = {}
        if one.number:
            limits = {COUNT: str(one.number), CORES: str(one.cores)}
            limits |= {MEMORY: str(one.memory)} if one.memory else {PERCENT: str(one.percent)}
        always = {"restartPolicy": "Always"} if one.role == "sidecar" else {}
        return {"name": f"c{at}", "image": "x", "resources": {"limits": limits}, **always}

    each = [(one.role, container(at, one)) for at, one in enumerate(asks)]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"pod-{name}",
            "annotations": {"nvidia.com/use-gputype": model} if model else {},
        },
        "spec": {
            "initContainers": [one for role, one in each if role != "container"],
            "containers": [one for role, one in each if role == "container"],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def random_there(rng: random.Random, name: str, node: str, gpus: list[Gpu]) -> tuple[There, Json]:
    """A pod on a node: told of devices that are there, or gone; told nonsense; told nothing."""
    asks = random_asks(rng)
    made = a_pod(name, asks, on=node)
    if rng.random() < 0.15:
        return There(asks, None), made
    if rng.random() < 0.1:
        broken = rng.choice(("x,NVIDIA,-5,0:;", "x,NVIDIA,5:;", "a,b,c,d:;", ";" * 40 + "x,y,1,1:"))
        made["metadata"]["annotations"] |= told(broken, node)
        return There(asks, None), made
    names = [gpu.id for gpu in gpus] + ["gone"] * (rng.random() < 0.2)
    more = int(rng.random() < 0.1)
    parts = [
        [
            (device, rng.randrange(0, 6000), rng.choice((0, 10, 40)))
            for device in rng.sample(names, min(one.number + more, len(names)))
        ]
        for one in asks
    ]
    text = "".join(
        "".join(f"{d},NVIDIA,{memory},{cores}:" for d, memory, cores in place) + ";"
        for place in parts
    )
    made["metadata"]["annotations"] |= told(text, node)
    return There(asks, parts), made


def told(text: str, node: str) -> dict[str, str]:
    return {"hami.io/vgpu-devices-allocated": text, "hami.io/vgpu-node": node}
