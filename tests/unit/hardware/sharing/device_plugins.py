"""Device plugins as they are on nodes: what they read, in their order, and what they write.

Written from what these plugins do, not from ours: they take annotations apart with their own few
lines, and refuse what theirs would refuse. Each holds the devices of a node and what runs on them.
"""

import json
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class RefusedByPluginError(AssertionError):
    """The kubelet would fail the pod: UnexpectedAdmissionError."""


@dataclass
class Gpu:
    id: str
    memory: int
    slots: int = 10
    cores: int = 100
    model: str = "NVIDIA-A100"
    numa: int = 0
    #: pod -> the parts that run there: (kind of container, memory, cores)
    held: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)

    def give(self, pod: str, kind: str, memory: int, cores: int) -> None:
        self.held.setdefault(pod, []).append((kind, memory, cores))
        slots, used, busy = map(sum, zip(*map(peak, self.held.values()), strict=True))
        if slots > self.slots or used > self.memory or busy > self.cores:
            raise RefusedByPluginError(f"{self.id} is overcommitted: {self.held}")


def peak(parts: list[tuple[str, int, int]]) -> tuple[int, int, int]:
    """Slots, memory and cores that a pod takes of one device at its worst moment."""
    beside = [part for part in parts if part[0] == "sidecar"]
    later = [part for part in parts if part[0] == "container"]
    moments = [beside + later, *([*beside, part] for part in parts if part[0] == "init")]
    return (
        max(len(moment) for moment in moments),
        max(sum(part[1] for part in moment) for moment in moments),
        max(sum(part[2] for part in moment) for moment in moments),
    )


def containers(pod: Json) -> list[tuple[str, Json]]:
    inits = [
        ("sidecar" if one.get("restartPolicy") == "Always" else "init", one)
        for one in pod["spec"].get("initContainers", ())
    ]
    return [*inits, *(("container", one) for one in pod["spec"]["containers"])]


def limit(container: Json, resource: str) -> int:
    return int(container["resources"].get("limits", {}).get(resource, 0))


@dataclass
class DevicePlugin:
    node: str
    gpus: list[Gpu]

    def gpu(self, name: str) -> Gpu:
        for one in self.gpus:
            if one.id == name:
                return one
        raise RefusedByPluginError(f"{self.node} has no device {name}")

    def end(self, pod: str) -> None:
        for one in self.gpus:
            one.held.pop(pod, None)


class HamiPlugin(DevicePlugin):
    """Project-HAMi/HAMi nvinternal/plugin/server.go and util.go, pkg/util/util.go."""

    LOCK = "hami.io/mutex.lock"
    ASKED = "nvidia.com/gpu"

    def register(self) -> dict[str, str]:
        told = [
            {"id": g.id, "count": g.slots, "devmem": g.memory, "devcore": g.cores, "type": g.model}
            | {"numa": g.numa, "mode": "hami-core", "health": True}
            for g in self.gpus
        ]
        return {"hami.io/node-nvidia-register": json.dumps(told)}

    def offers(self) -> dict[str, int]:
        return {self.ASKED: sum(g.slots for g in self.gpus)}

    def serve(self, pod: Json, pods: list[Json], node: Json) -> None:
        """The kubelet asks for one container after the other; annotations move as the plugin's."""
        for _, container in containers(pod):
            asked = limit(container, self.ASKED)
            if asked:
                self._allocate(self._pending(pods, node), asked, node, pod)

    def _pending(self, pods: list[Json], node: Json) -> Json:
        lock = node["metadata"]["annotations"].get(self.LOCK, "")
        if lock:
            *_, name = lock.split(",")
            return next(p for p in pods if p["metadata"]["name"] == name)
        for one in pods:
            told = one["metadata"].get("annotations", {})
            is_phase = told.get("hami.io/bind-phase") in {"allocating", "success"}
            if is_phase and told.get("hami.io/vgpu-node") == self.node:
                return one
        raise RefusedByPluginError("no binding pod found on node")

    def _allocate(self, served: Json, asked: int, node: Json, meant: Json) -> None:
        told = served["metadata"]["annotations"]
        places = told["hami.io/vgpu-devices-to-allocate"].split(";")
        at = next((i for i, place in enumerate(places) if place), None)
        if at is None:
            raise RefusedByPluginError("no pending device allocation found")
        kind, _ = containers(served)[at]
        devices = [word.split(",") for word in places[at].split(":") if "," in word]
        if len(devices) != asked:
            raise RefusedByPluginError(f"device number not matched: {devices}, {asked}")
        if served["metadata"]["uid"] != meant["metadata"]["uid"]:
            raise RefusedByPluginError("another pod's devices are handed out")
        for name, maker, memory, cores in devices:
            if maker != "NVIDIA":
                raise RefusedByPluginError(f"device of {maker}")
            self.gpu(name).give(served["metadata"]["uid"], kind, int(memory), int(cores))
        places[at] = ""
        told["hami.io/vgpu-devices-to-allocate"] = ";".join(places)
        if not any(places):
            told["hami.io/bind-phase"] = "success"
            node["metadata"]["annotations"].pop(self.LOCK, None)


class VolcanoPlugin(DevicePlugin):
    """Project-HAMi/volcano-vgpu-device-plugin pkg/util/util.go, pkg/plugin/server.go."""

    ASKED = "volcano.sh/vgpu-number"
    LAST = str(2**64 - 1)

    def register(self) -> dict[str, str]:
        told = [f"{g.id},{g.slots},{g.memory},{g.model},true,hami-core:" for g in self.gpus]
        return {"volcano.sh/node-vgpu-register": "".join(told)}

    def offers(self) -> dict[str, int]:
        return {
            self.ASKED: sum(g.slots for g in self.gpus),
            "volcano.sh/vgpu-memory": sum(g.memory for g in self.gpus),
            "volcano.sh/vgpu-cores": 100 * len(self.gpus),
        }

    def serve(self, pod: Json, pods: list[Json], node: Json) -> None:
        for container in pod["spec"]["containers"]:
            asked = limit(container, self.ASKED)
            if asked:
                self._allocate(self._oldest(pods, asked), asked, pod)

    def _oldest(self, pods: list[Json], asked: int) -> Json:
        found = []
        for one in pods:
            told = one["metadata"].get("annotations", {})
            left = told.get("volcano.sh/devices-to-allocate", "")
            if told.get("volcano.sh/vgpu-node") == self.node and left.count(",") == 3 * asked:
                found.append((int(told["volcano.sh/vgpu-time"]), one))
        if not found:
            raise RefusedByPluginError("cannot get valid pod")
        first = min(at for at, _ in found)
        equals = [one for at, one in found if at == first]
        return equals[-1]  # of those told in one second it takes the last in its list

    def _allocate(self, served: Json, asked: int, meant: Json) -> None:
        told = served["metadata"]["annotations"]
        places = told["volcano.sh/devices-to-allocate"].split(";")
        at = next(i for i, place in enumerate(places) if place)
        if limit(served["spec"]["containers"][at], self.ASKED) != asked:
            raise RefusedByPluginError("another container is served")
        if served["metadata"]["uid"] != meant["metadata"]["uid"]:
            raise RefusedByPluginError("another pod's devices are handed out")
        for word in filter(None, places[at].split(":")):
            name, _, memory, cores = word.split(",")
            uid = served["metadata"]["uid"]
            self.gpu(name).give(uid, "container", int(memory), int(cores))
        places[at] = ""
        told["volcano.sh/devices-to-allocate"] = ";".join(places)
        if "NVIDIA" not in told["volcano.sh/devices-to-allocate"]:
            told["volcano.sh/bind-phase"] = "success"
            told["volcano.sh/vgpu-time"] = self.LAST


class GpuSharePlugin(DevicePlugin):
    """AliyunContainerService/gpushare-device-plugin pkg/gpu/nvidia/allocate.go."""

    ASKED = "aliyun.com/gpu-mem"

    def register(self) -> dict[str, str]:
        return {}

    def offers(self) -> dict[str, int]:
        return {
            self.ASKED: sum(g.memory for g in self.gpus),
            "aliyun.com/gpu-count": len(self.gpus),
        }

    def serve(self, pod: Json, pods: list[Json], node: Json) -> None:
        asked = sum(limit(one, self.ASKED) for one in pod["spec"]["containers"])
        found = []
        for one in pods:
            told = one["metadata"].get("annotations", {})
            if told.get("ALIYUN_COM_GPU_MEM_ASSIGNED") == "false":
                size = sum(limit(c, self.ASKED) for c in one["spec"]["containers"])
                found.append((int(told["ALIYUN_COM_GPU_MEM_ASSUME_TIME"]), size, one))
        fitting = [one for _, size, one in sorted(found, key=lambda f: f[0]) if size == asked]
        if not fitting:
            raise RefusedByPluginError(f"no pod was assumed that asks for {asked}")
        told = fitting[0]["metadata"]["annotations"]
        gpu = self.gpu(told["ALIYUN_COM_GPU_MEM_IDX"])
        if told["ALIYUN_COM_GPU_MEM_DEV"] != str(gpu.memory):
            raise RefusedByPluginError("a device of another size")
        if told["ALIYUN_COM_GPU_MEM_POD"] != str(asked):
            raise RefusedByPluginError("another amount")
        # Accounts go by annotations, as those of whoever schedules do.
        gpu.give(fitting[0]["metadata"]["uid"], "container", asked, 0)
        told["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "true"
