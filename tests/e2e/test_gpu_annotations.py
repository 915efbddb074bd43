"""HamiVGPU from outside: annotations, the node's lock, and whose turn it is."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e.control_plane import SERVERS, Plane, a_plane
from tests.e2e.inside import a_node
from tests.e2e.outside import ROOT, a_process
from tests.lab.apiserver.client import MERGE

Json = dict[str, Any]
LOCK: Final = "hami.io/mutex.lock"
TOLD: Final = "hami.io/vgpu-devices-allocated"


def a_gpu_node() -> Json:
    told = {"id": "gpu-0", "count": 4, "devmem": 1000, "devcore": 100, "type": "T4", "health": True}
    node = a_node("n1")
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": json.dumps([told])}
    for offered in ("capacity", "allocatable"):
        node["status"].setdefault(offered, {})["nvidia.com/gpu"] = "4"
    return node


def a_sharer(name: str) -> Json:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "500"}
    container = {"name": "main", "image": "app", "resources": {"limits": limits}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "asched", "containers": [container]},
    }


@pytest.mark.parametrize("kind", SERVERS)
async def test_pods_are_told_of_their_devices_one_after_the_other(
    kind: str, tmp_path: Path
) -> None:
    async with a_plane(kind) as plane:
        await share_a_device(plane, tmp_path)


async def share_a_device(plane: Plane, tmp_path: Path) -> None:
    await plane.create("/api/v1/nodes", [a_gpu_node()])
    config = yaml.safe_load((ROOT / "config/hami.yaml").read_text(encoding="utf-8"))
    config["clientConnection"] = {"kubeconfig": plane.kubeconfig}
    config["leaderElection"] = {"leaderElect": False}
    (tmp_path / "hami.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    await plane.create_pods([a_sharer("one"), a_sharer("two")])
    flags = (f"--config={tmp_path / 'hami.yaml'}", "--secure-port=0")
    async with a_process(tmp_path, *flags) as process:
        placed = await plane.until(lambda pods: any(pod["spec"].get("nodeName") for pod in pods))
        (first,) = [pod for pod in placed if pod["spec"].get("nodeName")]
        name = first["metadata"]["name"]
        assert first["metadata"]["annotations"][TOLD] == "gpu-0,NVIDIA,500,0:;"
        assert first["metadata"]["labels"]["hami.io/vgpu-node"] == "n1"
        (node,) = await plane.every("/api/v1/nodes")
        assert node["metadata"]["annotations"][LOCK].endswith(f",default,{name}")
        # The device plugin has served the first.
        patch = {"metadata": {"annotations": {LOCK: None}}}
        status, answer = await plane.client.ask("PATCH", "/api/v1/nodes/n1", patch, media=MERGE)
        assert status == 200, answer
        both = await plane.until(lambda pods: all(pod["spec"].get("nodeName") for pod in pods))
        assert {pod["metadata"]["annotations"][TOLD] for pod in both} == {"gpu-0,NVIDIA,500,0:;"}
        (node,) = await plane.every("/api/v1/nodes")
        (second,) = {"one", "two"} - {name}
        assert node["metadata"]["annotations"][LOCK].endswith(f",default,{second}")
        assert "Traceback" not in process.words, process.words[-3000:]
