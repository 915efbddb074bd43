"""asched and kube-scheduler with the gates that 1.37 turns on, in turn on equal clusters; on the
embedded server asched by its gates and by its version.

Every pod has one best node, or none: filters leave one, or the room for volumes decides. Compared
are nodes, chosen nodes of volumes, allocated devices, and the texts of refusals.

ASCHED_E2E_GROUPS enlarges the cluster: three nodes and twenty pods each.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.e2e.control_plane import PATIENCE_S, POLL_S, SERVERS, Plane, a_plane, refusal
from tests.e2e.outside import a_process
from tests.e2e.reference_scheduler import kube_scheduler

Json = dict[str, Any]
GROUPS: Final = range(int(os.environ.get("ASCHED_E2E_GROUPS", "5")))
GATES: Final = "DRADeviceTaintRules=true,StorageCapacityScoring=true,VolumeLimitScaling=true"
RULES: Final = "resource.k8s.io/v1beta2"
GPU, MUST, DISK = "gpu.example.com", "must.example.com", "disk.example.com"
BROKEN, HOST = "example.com/broken", "kubernetes.io/hostname"
IN_DEFAULT: Final = "namespaces/default/"
#: Only room for volumes decides between nodes that fit.
CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "VolumeBinding"}]}
            },
        }
    ],
}


def named(name: str, spec: Json | None = None, **more: Any) -> Json:
    found: Json = {"metadata": {"name": name, "namespace": "default"}, **more}
    return found if spec is None else {**found, "spec": spec}


class Need(NamedTuple):
    """What a pod asks for besides its group."""

    claim: str = ""
    volume: str = ""
    cpu: str = "10m"
    only: str = ""  # the node's part of the group
    tolerates: bool = False


def a_pod(name: str, group: int, need: Need) -> Json:
    container: Json = {"name": "main", "image": "app", "resources": {"requests": {"cpu": need.cpu}}}
    spec: Json = {"containers": [container], "nodeSelector": {"group": f"g{group}"}}
    if need.claim:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": need.claim}]
    if need.volume:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": need.volume}}]
    if need.only:
        spec["nodeSelector"]["part"] = need.only
    if need.tolerates:
        spec["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]
    return named(name, spec)


def a_claim(name: str, index: int) -> Json:
    selector = f'device.attributes["{GPU}"].index == {index}'
    exactly: Json = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": selector}}]}
    if index == 7:
        exactly["tolerations"] = [{"key": BROKEN, "operator": "Exists"}]
    return named(name, {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})


def a_volume(name: str) -> tuple[Json, Json]:
    """A volume that is bound, and its claim."""
    common: Json = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        **common,
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": MUST, "volumeHandle": name},
        "claimRef": {"namespace": "default", "name": name},
    }
    claim = {**common, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    bound = named(name, claim)
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return named(name, volume), bound


def a_wish(name: str, size: str) -> Json:
    """A claim that is provisioned where its pod goes."""
    resources = {"requests": {"storage": size}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "scored", "resources": resources}
    return named(name, spec)


def objects() -> dict[str, list[Json]]:
    """All objects by path, in the order of creation; pods last."""
    made: dict[str, list[Json]] = {
        "/apis/resource.k8s.io/v1/deviceclasses": [named("gpu", {})],
        "/apis/storage.k8s.io/v1/csidrivers": [
            named(MUST, {"attachRequired": True, "preventPodSchedulingIfMissing": True}),
            named(DISK, {"attachRequired": False, "storageCapacity": True}),
        ],
        "/apis/storage.k8s.io/v1/storageclasses": [
            named("scored", provisioner=DISK, volumeBindingMode="WaitForFirstConsumer")
        ],
        "/api/v1/nodes": [],
        f"/apis/{RULES}/devicetaintrules": [],
        "/apis/resource.k8s.io/v1/resourceslices": [],
        "/apis/storage.k8s.io/v1/csinodes": [],
        f"/apis/storage.k8s.io/v1/{IN_DEFAULT}csistoragecapacities": [],
        "/api/v1/persistentvolumes": [],
        f"/api/v1/{IN_DEFAULT}persistentvolumeclaims": [],
        f"/apis/resource.k8s.io/v1/{IN_DEFAULT}resourceclaims": [],
        f"/api/v1/{IN_DEFAULT}pods": [],
    }
    by_kind = {path.rpartition("/")[2]: kept for path, kept in made.items()}
    for group in GROUPS:
        _nodes(by_kind, group)
        _pods(by_kind, group)
    return made


def _nodes(made: dict[str, list[Json]], group: int) -> None:
    """Devices on a and b, the driver of bound volumes on b, room for new volumes: b has most."""
    for part, room in (("a", "100Gi"), ("b", "300Gi"), ("c", "50Gi")):
        name = f"n{group}-{part}"
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        node = named(name, {}, status={"allocatable": amounts, "capacity": amounts})
        node["metadata"]["labels"] = {"group": f"g{group}", "part": part, HOST: name}
        if part == "c":
            node["spec"]["taints"] = [{"key": "maintenance", "effect": "NoSchedule"}]
        made["nodes"].append(node)
        where = {"matchLabels": {HOST: name}}
        of_class = {"storageClassName": "scored", "nodeTopology": where, "capacity": room}
        made["csistoragecapacities"].append(named(name, **of_class))
        if part == "c":
            continue
        first = 0 if part == "a" else 4
        devices = [
            {"name": f"d{index}", "attributes": {"index": {"int": index}}}
            for index in range(first, first + 4)
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec: Json = {"driver": GPU, "pool": pool, "nodeName": name, "devices": devices}
        made["resourceslices"].append(named(name, spec))
        selector = {"driver": GPU, "pool": name, "device": f"d{first + 3}"}
        rule = {"deviceSelector": selector, "taint": {"key": BROKEN, "effect": "NoSchedule"}}
        made["devicetaintrules"].append(named(name, rule))
        if part == "b":
            driver = {"name": MUST, "nodeID": name, "topologyKeys": []}
            made["csinodes"].append(named(name, {"drivers": [driver]}))


def _pods(made: dict[str, list[Json]], group: int) -> None:
    needs: dict[str, Need] = {}
    for index in range(8):  # device 3 is tainted, device 7 as well, and its claim tolerates that
        needs[f"gpu-{index}"] = Need(claim=f"c{group}-{index}")
        made["resourceclaims"].append(a_claim(f"c{group}-{index}", index))
    for index in range(4):  # only b has the driver
        name = f"v{group}-{index}"
        volume, claim = a_volume(name)
        made["persistentvolumes"].append(volume)
        made["persistentvolumeclaims"].append(claim)
        needs[f"bound-{index}"] = Need(volume=name, only="a" if index == 3 else "")
    for index, size in enumerate(("10Gi", "10Gi", "200Gi")):
        name = f"w{group}-{index}"
        made["persistentvolumeclaims"].append(a_wish(name, size))
        needs[f"new-{index}"] = Need(volume=name, only="a" if index == 2 else "")
    for index in range(4):
        needs[f"plain-{index}"] = Need(only="c", tolerates=index != 3)
    needs["large"] = Need(cpu="100")
    made["pods"] += [a_pod(f"p{group}-{name}", group, need) for name, need in needs.items()]


Outcome = dict[str, tuple[str, str]]


async def outcome_of(plane: Plane) -> Outcome:
    """By pod: its node, or the node that was chosen for its volume; and why it has none. By claim:
    its device.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            claims = await plane.every(f"/api/v1/{IN_DEFAULT}persistentvolumeclaims")
            pods = await plane.every(f"/api/v1/{IN_DEFAULT}pods")
            chosen = {
                claim["metadata"]["name"]: annotations.get("volume.kubernetes.io/selected-node", "")
                for claim in claims
                if (annotations := claim["metadata"].get("annotations", {}))
            }
            found = {pod["metadata"]["name"]: (node_of(pod, chosen), refusal(pod)) for pod in pods}
            if all(map(any, found.values())):
                break
            await asyncio.sleep(POLL_S)
    for claim in await plane.every(f"/apis/resource.k8s.io/v1/{IN_DEFAULT}resourceclaims"):
        allocation = claim.get("status", {}).get("allocation", {"devices": {"results": []}})
        devices = [f"{one['pool']}/{one['device']}" for one in allocation["devices"]["results"]]
        found[claim["metadata"]["name"]] = ", ".join(devices), ""
    return found


def node_of(pod: Json, chosen: Json) -> str:
    volumes = pod["spec"].get("volumes") or ()
    claims = [v["persistentVolumeClaim"]["claimName"] for v in volumes if len(v) == 2]
    found = [pod["spec"].get("nodeName"), *(chosen.get(name) for name in claims)]
    return next(filter(None, found), "")


@asynccontextmanager
async def a_full_plane(kind: str) -> AsyncIterator[Plane]:
    async with a_plane(kind, gates=GATES, versions=RULES) as plane:
        for path, made in objects().items():
            await plane.create(path, made)
        yield plane


@pytest.mark.parametrize("kind", SERVERS)
async def test_both_schedulers_place_and_refuse_alike(kind: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"

    def flags(plane: Plane) -> str:
        connection = {"clientConnection": {"kubeconfig": plane.kubeconfig}}
        config.write_text(yaml.safe_dump({**CONFIG, **connection}))
        return f"--config={config}"

    gates = f"--feature-gates={GATES}"
    outcomes: dict[str, Outcome] = {}
    if kind == "real":
        async with a_full_plane(kind) as plane, kube_scheduler(plane, flags(plane), gates):
            outcomes["kube-scheduler"] = await outcome_of(plane)
    for rules in (gates, "--emulated-version=1.37"):
        async with (
            a_full_plane(kind) as plane,
            a_process(tmp_path, flags(plane), rules, "--secure-port=0") as process,
        ):
            outcomes[rules] = await outcome_of(plane)
            assert "Traceback" not in process.words, process.words[-3000:]
    first = next(iter(outcomes.values()))
    assert len(first) == (20 + 8) * len(GROUPS)
    for rules, found in outcomes.items():
        assert {k: (first[k], found[k]) for k in first if first[k] != found[k]} == {}, rules
    placed = {name.partition("-")[2]: node[-1:] for name, (node, _) in first.items()}
    assert (placed["gpu-7"], placed["bound-0"], placed["new-0"]) == ("b", "b", "b")
    refused = ("gpu-3", "bound-3", "new-2", "plain-3", "large")
    assert [placed[name] for name in refused] == [""] * len(refused)
