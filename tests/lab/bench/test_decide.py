"""Small workloads in the decide mode, operation by operation."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from asched.core.config.defaults import configuration
from asched_lab.bench.ops import OpRunner
from asched_lab.bench.preparation import prepare
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.bench.workload import Workload, read_file
from asched_lab.bench.world import CannotRunError, WorkloadFailedError

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
    with pytest.raises(WorkloadFailedError, match="nothing happens any more: 4 of 5"):
        await run(workload)


async def test_a_missing_template_fails_with_its_name(tmp_path) -> None:
    with pytest.raises(WorkloadFailedError, match=r"gone\.yaml"):
        await run(load(tmp_path, nodes(1), pods(1, podTemplatePath="gone.yaml")))


async def test_labels_go_round_robin_over_nodes_by_name(tmp_path) -> None:
    strategy = {"labelKey": "zone", "labelValues": ["a", "b"]}
    _, world = await run(load(tmp_path, nodes(5, labelNodePrepareStrategy=strategy)))
    labels = [node["metadata"]["labels"] for node in world.objects.listed("nodes")]
    assert [one["zone"] for one in labels] == ["a", "b", "a", "b", "a"]
    assert all(one["kubernetes.io/hostname"] for one in labels)


async def test_allocatable_and_csi_limits_come_from_a_strategy(tmp_path) -> None:
    strategy = {
        "nodeAllocatable": {"example.com/x": "3"},
        "csiNodeAllocatable": {"d.example.com": {"count": 9}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    _, world = await run(load(tmp_path, nodes(1, nodeAllocatableStrategy=strategy)))
    (node,) = world.objects.listed("nodes")
    assert node["status"]["allocatable"] == {
        "pods": "110", "cpu": "4", "memory": "32Gi", "example.com/x": "3",
    }  # fmt: skip
    (csi_node,) = world.objects.listed("csinodes")
    assert csi_node["spec"]["drivers"][0]["allocatable"] == {"count": 9}
    assert "kubernetes.io/aws-ebs" in str(csi_node["metadata"]["annotations"])


async def test_a_barrier_waits_for_attempts_only_if_told(tmp_path) -> None:
    giant = {
        **POD,
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}]
        },
    }
    waits = pods(2, podTemplatePath="p.yaml", skipWaitToCompletion=True)
    attempted = {"opcode": "barrier", "stageRequirement": "Attempted"}
    _, world = await run(load(tmp_path, nodes(1), waits, attempted, files={"p.yaml": giant}))
    assert placed(world) == ["", ""]
    with pytest.raises(WorkloadFailedError, match="every pod to be scheduled"):
        await run(load(tmp_path, nodes(1), waits, {"opcode": "barrier"}, files={"p.yaml": giant}))


async def test_deleting_pods_makes_room(tmp_path) -> None:
    full = pods(4, podTemplatePath="p.yaml", namespace="full")
    delete = {
        "opcode": "deletePods",
        "namespace": "full",
        "deletePodsPerSecond": 100,
        "skipWaitToCompletion": True,
    }
    more = pods(4, podTemplatePath="p.yaml", namespace="more")
    _, world = await run(load(tmp_path, nodes(1), full, delete, more, files={"p.yaml": POD}))
    assert placed(world, "full") == []
    assert len(placed(world, "more")) == 4


async def test_churn_recreates_its_slot(tmp_path) -> None:
    churn = {
        "opcode": "churn",
        "mode": "recreate",
        "number": 1,
        "templatePaths": ["p.yaml"],
        "intervalMilliseconds": 100,
        "namespace": "churn",
    }
    for seconds, there in (("250ms", 1), ("350ms", 0)):
        sleep = {"opcode": "sleep", "duration": seconds}
        _, world = await run(load(tmp_path, nodes(1), churn, sleep, files={"p.yaml": POD}))
        assert len(placed(world, "churn")) == there


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


async def test_steady_state_goes_round_until_its_time_is_over(tmp_path) -> None:
    steady = pods(3, steadyState=True, duration="50ms", collectMetrics=True, namespace="s")
    runner, world = await run(load(tmp_path, nodes(1), steady))
    assert int(runner.items[0].labels["pods"]) > 3
    assert len(placed(world, "s")) == 3


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


async def test_volumes_are_bound_to_claims_before_their_pods_come(tmp_path) -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1Gi"}, "csi": {"driver": "d"}},  # noqa: E501
    }  # fmt: skip
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    both = {
        "persistentVolumeTemplatePath": "pv.yaml",
        "persistentVolumeClaimTemplatePath": "pvc.yaml",
    }
    files = {"pv.yaml": volume, "pvc.yaml": claim}
    _, world = await run(load(tmp_path, nodes(1), pods(3, namespace="ns", **both), files=files))
    assert all(placed(world))
    handles = [v["spec"]["csi"]["volumeHandle"] for v in world.objects.listed("persistentvolumes")]
    assert handles == ["ns-pv-0", "ns-pv-1", "ns-pv-2"]


async def test_declared_features_are_told_by_every_node(tmp_path) -> None:
    counted = [{"name": "w", "params": {"numNodeDeclaredFeatures": 11}}]
    _, world = await run(load(tmp_path, nodes(2), workloads=counted))
    features = [n["status"]["declaredFeatures"] for n in world.objects.listed("nodes")]
    in_order = ["Feature0", "Feature1", "Feature10", "Feature2"]  # else a server refuses them
    assert [each[:4] for each in features] == [in_order] * 2
    assert {len(each) for each in features} == {11}


def test_a_gate_that_upstream_refuses_cannot_be_run(tmp_path) -> None:
    gates = {"DRADeviceTaints": False, "DRADeviceTaintRules": True}
    with pytest.raises(CannotRunError, match="depends on features that are disabled"):
        prepare(load(tmp_path, nodes(1), featureGates=gates))


def test_gates_without_a_switch_are_told(tmp_path) -> None:
    prepared = prepare(load(tmp_path, nodes(1), featureGates={"SchedulerQueueingHints": False}))
    assert prepared.gates == {}
    assert any("always on" in note for note in prepared.notes)


def test_gates_that_asched_cannot_do_without_are_left_out_aloud(tmp_path: Path) -> None:
    """A scheduler that was told so would not start."""
    asked = {"DRAExtendedResource": False, "SchedulerPopFromBackoffQ": True}
    prepared = prepare(load(tmp_path, nodes(1), featureGates=asked))
    assert prepared.gates == {"SchedulerPopFromBackoffQ": True}
    assert any("DRAExtendedResource=false is left out" in note for note in prepared.notes)


def test_the_cases_configuration_is_read(tmp_path) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 37,
    }
    workload = load(tmp_path, nodes(1), schedulerConfigPath="s.yaml", files={"s.yaml": config})
    assert prepare(workload).configuration.percentage_of_nodes_to_score == 37
    broken = load(tmp_path, nodes(1), schedulerConfigPath="s.yaml", files={"s.yaml": "kind: No\n"})
    with pytest.raises(CannotRunError, match="scheduler configuration"):
        prepare(broken)


async def test_kinds_of_two_groups_may_have_one_plural() -> None:
    """Pod groups are served by scheduling.k8s.io and by scheduling.x-k8s.io."""
    sorts = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": sorts}}
    world = DecideWorld(configuration({"profiles": [profile]}))
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "two", "namespace": "ns"},
        "spec": {"minMember": 2},
    }
    member = {**POD, "metadata": {"name": "a", "labels": {"scheduling.x-k8s.io/pod-group": "two"}}}
    amounts = {"cpu": "4", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await world.create([{**node, "status": {"capacity": amounts, "allocatable": amounts}}])
    await world.create([{**group, "apiVersion": "scheduling.k8s.io/v1alpha2", "spec": {}}], "ns")
    await world.create([group, member], "ns")
    await world.create([{**member, "metadata": {**member["metadata"], "name": "b"}}], "ns")
    await world.until(lambda: world.pods.scheduled_count == 2, 60.0, "the gang")
    assert world.objects.get("podgroups.scheduling.x-k8s.io", "ns", "two")["spec"] == group["spec"]
    assert world.objects.get("podgroups", "ns", "two")["spec"] == {}
    await world.close()
