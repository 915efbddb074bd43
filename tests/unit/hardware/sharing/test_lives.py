"""Lives of nodes whose device plugins read what we wrote: pods come, are served late, and end; the
process starts again. No plugin refuses, no device is overcommitted.
"""

import random
from heapq import heappop, heappush
from typing import Any

import pytest

from asched.hardware.sharing.plugin import GpuShare, HamiVGPU, VolcanoVGPU
from asched.testing import World, given, node, pod
from tests.unit.hardware.sharing.device_plugins import (
    DevicePlugin,
    Gpu,
    GpuSharePlugin,
    HamiPlugin,
    Json,
    VolcanoPlugin,
)

NODES, PODS = 3, 40
KINDS = {
    "hami": (
        HamiVGPU,
        HamiPlugin,
        ["nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"],
    ),
    "volcano": (VolcanoVGPU, VolcanoPlugin, ["volcano.sh/vgpu-memory-percentage"]),
    "gpushare": (GpuShare, GpuSharePlugin, []),
}


def asked_of(rng: random.Random, kind: str) -> Json:
    """Limits of one container."""
    if kind == "gpushare":
        return {"aliyun.com/gpu-mem": str(rng.randrange(1, 17))}
    prefix = {"hami": "nvidia.com/gpu", "volcano": "volcano.sh/vgpu-"}[kind]
    count = {"hami": "nvidia.com/gpu", "volcano": "volcano.sh/vgpu-number"}[kind]
    memory = {"hami": "mem", "volcano": "memory"}[kind]
    limits = {count: str(rng.choice((1, 1, 1, 2)))}
    if rng.random() < 0.6:
        limits[prefix + memory] = str(rng.randrange(100, 9000))
    elif rng.random() < 0.7:
        limits[f"{prefix}{memory}-percentage"] = str(rng.randrange(1, 101))
    if rng.random() < 0.6:
        limits[prefix + "cores"] = str(rng.choice((0, 10, 30, 50, 100)))
    return limits


def a_sharer(rng: random.Random, kind: str, name: str) -> Json:
    made = pod(name, cpu="10m", memory="1Mi")
    plain = made["spec"]["containers"][0]

    def container(label: str, *, asks: bool, **more: Any) -> Json:
        limits = asked_of(rng, kind) if asks else {}
        requests = {**plain["resources"]["requests"], **limits}
        return {
            "name": label,
            "image": "x",
            "resources": {"requests": requests, "limits": limits},
            **more,
        }

    several = kind != "volcano"
    asks = [True] + [several and rng.random() < 0.5 for _ in range(rng.randrange(3))]
    rng.shuffle(asks)
    made["spec"]["containers"] = [container(f"c{at}", asks=one) for at, one in enumerate(asks)]
    if kind == "hami" and rng.random() < 0.4:
        always = {"restartPolicy": "Always"} if rng.random() < 0.5 else {}
        made["spec"]["initContainers"] = [container("i", asks=rng.random() < 0.7, **always)]
    if kind == "hami" and rng.random() < 0.2:
        made["metadata"]["annotations"] = {"nvidia.com/use-gputype": rng.choice(("A100", "T4"))}
    return made


class Life:
    def __init__(self, kind: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.kind = kind
        cls, plugin, self.ignored = KINDS[kind]
        self.cls: Any = cls
        self.plugins: dict[str, DevicePlugin] = {}
        nodes = []
        for at in range(NODES):
            models = [
                self.rng.choice(("NVIDIA-A100", "NVIDIA-T4"))
                for _ in range(self.rng.randrange(1, 5))
            ]
            size = 16 if kind == "gpushare" else 10_000
            ids = [str(n) if kind == "gpushare" else f"GPU-{at}-{n}" for n in range(len(models))]
            slots = 10_000 if kind == "gpushare" else self.rng.choice((2, 4, 10))
            gpus = [
                Gpu(one, size, slots, model=model) for one, model in zip(ids, models, strict=True)
            ]
            made = self.plugins[f"n{at}"] = plugin(f"n{at}", gpus)
            nodes.append(
                node(f"n{at}", cpu=64, resources=made.offers(), annotations=made.register())
            )
        self.world = self.start(nodes, [])
        self.events: list[tuple[float, int, Any]] = []
        self.number = 0
        self.served: set[str] = set()

    def start(self, nodes: list[Json], pods: list[Json]) -> World:
        args = {"NodeResourcesFit": {"ignoredResources": self.ignored}}
        seed = self.rng.randrange(1000)
        return given(nodes, pods, plugins=[self.cls], args=args, seed=seed)

    def after(self, seconds: float, act: Any) -> None:
        self.number += 1
        heappush(self.events, (self.world.now_s + seconds, self.number, act))

    def run(self) -> None:
        for at in range(PODS):
            self.after(self.rng.random() * 120, lambda at=at: self.create(f"p{at}"))
        self.after(self.rng.random() * 120, self.restart)
        while self.events:
            at_s, _, act = heappop(self.events)
            self.world.wait(max(at_s - self.world.now_s, 0))
            act()
            self.look()
        assert not self.world.raised

    def create(self, name: str) -> None:
        made = a_sharer(self.rng, self.kind, name)
        if self.rng.random() < 0.1:
            made["spec"]["schedulerName"] = "other"
        self.world.add(made)
        self.after(600, lambda: self.world._pods.get(f"default/{name}") and self.end(name))

    def look(self) -> None:
        """The kubelets of pods that were bound since."""
        for key, stored in list(self.world._pods.items()):
            name = stored["spec"].get("nodeName")
            if name and key not in self.served:
                self.served.add(key)
                self.after(self.rng.random() * 3, lambda key=key, name=name: self.serve(key, name))

    def serve(self, key: str, name: str) -> None:
        pods = list(self.world._pods.values())
        meant = self.world._pods.get(key)
        if meant is None:
            return
        self.plugins[name].serve(meant, pods, self.world._nodes[name])
        meant["status"]["phase"] = "Running"
        self.world.add(*pods, self.world._nodes[name])
        self.after(self.rng.random() * 60, lambda: self.end(meant["metadata"]["name"]))

    def end(self, name: str) -> None:
        stored = self.world._pods.get(f"default/{name}")
        if stored is not None:
            for plugin in self.plugins.values():
                plugin.end(stored["metadata"]["uid"])
            self.world.remove(stored)

    def restart(self) -> None:
        """Another process takes over what the API server holds."""
        before = self.world
        self.world = self.start(list(before._nodes.values()), [])
        self.world.now_s = before.now_s
        self.world.add(*before._pods.values())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_what_we_write_is_what_device_plugins_read(kind: str, seed: int) -> None:
    life = Life(kind, seed)
    life.run()
    assert len(life.served) > PODS // 2
