"""Small workloads in the decide mode, operation by operation."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from asched_lab.bench.ops import OpRunner
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.bench.suite import prepare
from asched_lab.bench.workload import Workload, read_file
from asched_lab.bench.world import WorkloadFailedError

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}


def load(
    tmp_path: Path, *ops: dict[str, Any], files: dict[str, Any] | None = None, **case
) -> Workload:
    for name, content in (files or {}).items():
        (tmp_path / name).write_text(
            content if isinstance(content, str) else yaml.safe_dump(content)
        )
    document = {"name": "Case", "workloadTemplate": list(ops), "workloads": [{"name": "w"}], **case}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump([document]))
    (workload,) = read_file(file)
    return workload


async def run(workload: Workload) -> tuple[OpRunner, DecideWorld]:
    world = DecideWorld(prepare(workload).configuration)
    runner = OpRunner(workload, world, lambda *_: None)
    try:
        await runner.run()
    finally:
        await world.close()
    return runner, world


def nodes(count: int, **fields) -> dict[str, Any]:
    return {"opcode": "createNodes", "count": count, **fields}


def pods(count: int, **fields) -> dict[str, Any]:
    return {"opcode": "createPods", "count": count, **fields}


def placed(world: DecideWorld, namespace: str = "") -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in world.objects.listed("pods", namespace)]


async def test_pods_are_scheduled_and_measured(tmp_path) -> None:
    runner, world = await run(load(tmp_path, nodes(3), pods(5), pods(7, collectMetrics=True)))
    assert all(placed(world))
    throughput = runner.items[0]
    assert throughput.name == "Case/w/namespace-2"
    assert throughput.labels["pods"] == "7"
    assert throughput.data["Average"] > 0
    assert throughput.data["Engine"] > 0
    assert world.facts()["results"] == {"scheduled": 7}
    assert world.event_count == 7


async def test_a_full_cluster_fails_with_one_line(tmp_path) -> None:
    workload = load(tmp_path, nodes(1), pods(5, podTemplatePath="p.yaml"), files={"p.yaml": POD})
    with pytest.raises(WorkloadFailedError, match="no event is left: 4 of 5"):
        await run(workload)


async def test_an_update_replaces_labels_and_lifts_gates(tmp_path) -> None:
    gated = {**POD, "metadata": {"name": "p-{{.Index}}", "labels": {"old": "1"}}}
    gated["spec"] = {**POD["spec"], "schedulingGates": [{"name": "wait"}]}
    free = {**POD, "metadata": {"name": "p-{{.Index}}", "labels": {"new": "1"}}}
    _, world = await run(
        load(
            tmp_path,
            nodes(1),
            pods(2, podTemplatePath="gated.yaml", namespace="ns", skipWaitToCompletion=True),
            {"opcode": "barrier", "stageRequirement": "Attempted"},
            {
                "opcode": "updateAny",
                "count": 2,
                "namespace": "ns",
                "templatePath": "free.yaml",
                "updatePerSecond": 10,
            },
            {"opcode": "barrier"},
            files={"gated.yaml": gated, "free.yaml": free},
        )
    )
    assert all(placed(world))
    assert {tuple(p["metadata"]["labels"]) for p in world.objects.listed("pods")} == {("new",)}


async def test_claims_come_from_templates_and_devices_from_the_driver(tmp_path) -> None:
    claim_template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},  # noqa: E501
    }  # fmt: skip
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "d.example.com"'}}]},
    }
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}],
        "resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}],
    }
    files = {"t.yaml": claim_template, "c.yaml": device_class, "p.yaml": {**POD, "spec": spec}}
    _, world = await run(
        load(
            tmp_path,
            nodes(2),
            {
                "opcode": "createResourceDriver",
                "driverName": "d.example.com",
                "nodes": "node-*",
                "maxClaimsPerNode": 2,
            },
            {"opcode": "createAny", "templatePath": "c.yaml"},
            {"opcode": "createAny", "templatePath": "t.yaml", "namespace": "ns"},
            pods(4, namespace="ns", podTemplatePath="p.yaml"),
            files=files,
        )
    )
    claims = world.objects.listed("resourceclaims")
    devices = [claim["status"]["allocation"]["devices"]["results"][0] for claim in claims]
    assert len({(d["pool"], d["device"]) for d in devices}) == 4
    await world.delete("pods", "ns", world.objects.listed("pods")[0]["metadata"]["name"])
    assert len(world.objects.listed("resourceclaims")) == 3


def test_gates_that_asched_cannot_do_without_are_left_out_aloud(tmp_path: Path) -> None:
    """A scheduler that was told so would not start."""
    asked = {"DRAExtendedResource": False, "SchedulerPopFromBackoffQ": True}
    prepared = prepare(load(tmp_path, nodes(1), featureGates=asked))
    assert prepared.gates == {"SchedulerPopFromBackoffQ": True}
    assert any("DRAExtendedResource=false is left out" in note for note in prepared.notes)
