"""A plan gives the same places or is refused, while `asched run` schedules: with the controllers of
the embedded server, and of a real control plane.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from asched_lab.apiserver import faults
from tests.e2e.control_plane import SERVERS, Plane, a_plane
from tests.e2e.controllers import controllers
from tests.e2e.inside import a_node, a_pod
from tests.e2e.outside import a_process
from tests.lab.whatif.clusters import a_deployment
from tests.support import HANG_S
from tests.unit.cli.programs import asched

Json = dict[str, Any]

#: So long a controller that is not content with its pods has to say so.
SETTLED_S: Final = 2.0
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"


@pytest_asyncio.fixture
async def plane(kind: str, tmp_path: Path) -> AsyncIterator[Plane]:
    """Six empty nodes of 4 CPUs in three zones; controllers and asched run."""
    async with a_plane(kind, controllers=True) as made, controllers(made):
        nodes = [a_node(f"n{number}", "4") for number in range(6)]
        for number, node in enumerate(nodes):
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"z{number % 3}"
        await made.create("/api/v1/nodes", nodes)
        folder = tmp_path / "asched"
        folder.mkdir()
        flags = (f"--kubeconfig={made.kubeconfig}", "--leader-elect=false", "--secure-port=0")
        async with a_process(folder, *flags):
            yield made


def spread(name: str, replicas: int, cpu: str = "500m") -> Json:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    asks = {"schedulerName": "asched", "topologySpreadConstraints": [constraint]}
    return a_deployment(name, replicas, cpu, **asks)


async def items(plane: Plane, path: str, app: str) -> list[Json]:
    found = await plane.every(path)
    return [o for o in found if (o["metadata"].get("labels") or {}).get("app") == app]


async def plan_of(folder: Path, plane: Plane, *manifests: Json) -> Path:
    workload, out = folder / "workload.json", folder / "the.plan"
    workload.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    words = ("plan", "-f", str(workload), "--out", str(out), f"--kubeconfig={plane.kubeconfig}")
    ended, told, err = await asched(*words)
    assert ended == 0, err
    assert told.startswith("planned: ")
    assert " at resourceVersion " in told
    return out


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_deployment_has_the_places_of_its_plan_and_lives_on_by_itself(
    plane: Plane, tmp_path: Path
) -> None:
    plan = await plan_of(tmp_path, plane, spread("web", 9))
    wanted = {p["pod"]["metadata"]["name"]: p["node"] for p in json.loads(plan.read_text())["pods"]}
    assert plan.stat().st_mode & 0o777 == 0o600

    ended, told, err = await asched(
        "plan", "--check", str(plan), f"--kubeconfig={plane.kubeconfig}"
    )
    assert (ended, told.partition(":")[0]) == (0, "holds"), err
    ended, told, err = await asched(
        "plan", "--apply", str(plan), f"--kubeconfig={plane.kubeconfig}"
    )
    assert ended == 0, err
    assert told.startswith("applied: 9 pods on ")

    pods = await items(plane, PODS, "web")
    assert {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods} == wanted
    (replica_set,) = await items(plane, SETS, "web")
    (deployment,) = await plane.every(DEPLOYMENTS)
    (owner,) = replica_set["metadata"]["ownerReferences"]
    assert owner["uid"] == deployment["metadata"]["uid"]
    for pod in pods:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["uid"] == replica_set["metadata"]["uid"]

    # The pod that replaces a deleted one may go to any node.
    gone = pods[0]["metadata"]["name"]
    await plane.client.ask("DELETE", f"{PODS}/{gone}", {"gracePeriodSeconds": 0})
    async with asyncio.timeout(HANG_S):
        while True:
            now = {p["metadata"]["name"]: p for p in await items(plane, PODS, "web")}
            fresh = [p for name, p in now.items() if name not in wanted]
            if len(now) == 9 and fresh and fresh[0]["spec"].get("nodeName"):
                break
            await asyncio.sleep(0.1)
    assert "affinity" not in fresh[0]["spec"]

    ended, _, err = await asched("plan", "--apply", str(plan), f"--kubeconfig={plane.kubeconfig}")
    assert ended == 1
    assert "is refused" in err


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_plan_whose_room_was_taken_is_refused_and_leaves_nothing(
    plane: Plane, tmp_path: Path
) -> None:
    plan = await plan_of(tmp_path, plane, spread("late", 3, "2"))
    taken = {p["node"] for p in json.loads(plan.read_text())["pods"]}
    thieves = []
    for number, node in enumerate(sorted(taken)):
        free = a_pod(f"thief-{number}", "3")
        free["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        thieves.append(free)
    await plane.create(PODS, thieves)
    await plane.until(
        lambda pods: all(
            p["spec"].get("nodeName") for p in pods if p["metadata"]["name"].startswith("thief")
        )
    )

    ended, _, err = await asched("plan", "--apply", str(plan), f"--kubeconfig={plane.kubeconfig}")

    assert ended == 1
    assert "is refused" in err
    assert "Insufficient cpu" in err
    assert await items(plane, PODS, "late") == await items(plane, SETS, "late") == []


async def refuse_replica_sets(kind: str, plane: Plane) -> None:
    """As a quota does; the embedded server counts no objects of that kind."""
    if kind == "embedded":
        why = {"reason": "Forbidden", "message": "replicasets.apps is forbidden: exceeded quota"}
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, **why}
        rule = {"name": "unavailable", "status": 403, "text": json.dumps(status)}
        rules = [{**rule, "path": "/replicasets$", "method": "POST"}]
        code, answer = await plane.client.ask("PUT", faults.PATH, rules)
        assert code == 200, answer
        return
    quotas, hard = "/api/v1/namespaces/default/resourcequotas", {"count/replicasets.apps": "0"}
    quota = {"metadata": {"name": "few"}, "spec": {"hard": hard}}
    await plane.create(quotas, [quota])
    counted = {**quota, "status": {"hard": hard, "used": hard}}
    code, _ = await plane.client.ask("PUT", f"{quotas}/few/status", counted)
    assert code == 200


@pytest.mark.parametrize("kind", SERVERS)
async def test_room_taken_while_it_is_applied_takes_everything_back(
    kind: str, plane: Plane, tmp_path: Path
) -> None:
    """A quota that says no to the owner: the pods were created by then, and are gone again."""
    plan = await plan_of(tmp_path, plane, spread("quota", 6))
    await refuse_replica_sets(kind, plane)
    ended, _, err = await asched("plan", "--apply", str(plan), f"--kubeconfig={plane.kubeconfig}")
    assert ended == 1, err
    assert "forbidden" in err
    assert await plane.every(PODS) == []


CONTROLLED: Final = [
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum"},
        "spec": {"completions": 5, "parallelism": 3, "completionMode": "Indexed"},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"parallelism": 2},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "local",
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {},
    },
]


def controlled(manifest: Json) -> Json:
    """With a template of pods that ask for little."""
    name = manifest["metadata"]["name"]
    labels = {"app": name}
    spec: Json = {
        "schedulerName": "asched",
        "containers": [
            {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "50m"}}}
        ],
    }
    made: Json = {**manifest["spec"], "template": {"metadata": {"labels": labels}, "spec": spec}}
    if manifest["kind"] == "Job":
        spec["restartPolicy"] = "Never"
    else:
        made["selector"] = {"matchLabels": labels}
    return {**manifest, "metadata": {"namespace": "default", "name": name}, "spec": made}


@pytest.mark.parametrize(
    ("kind", "manifest"),
    [
        pytest.param(kind, one, marks=marks, id=f"{kind}-{one['metadata']['name']}")
        for kind, marks in (("embedded", ()), ("real", pytest.mark.real))
        for one in CONTROLLED
        # The embedded server's controllers make pods for no other kind of these.
        if kind == "real" or one["kind"] == "Job"
    ],
)
async def test_what_a_controller_would_make_has_the_places_of_its_plan(
    kind: str, plane: Plane, tmp_path: Path, manifest: Json
) -> None:
    """1. Planned and applied. 2. The controller takes the pods for its own and makes no others."""
    name = manifest["metadata"]["name"]
    if name == "db":
        await local_volumes(plane)
    plan = await plan_of(tmp_path, plane, controlled(manifest))
    wanted = {p["pod"]["metadata"]["name"]: p["node"] for p in json.loads(plan.read_text())["pods"]}
    assert len(wanted) == {"sum": 3, "once": 2, "db": 3, "agent": 6}[name]

    ended, told, err = await asched(
        "plan", "--apply", str(plan), f"--kubeconfig={plane.kubeconfig}"
    )
    assert ended == 0, err
    assert told.startswith(f"applied: {len(wanted)} pods on ")

    await asyncio.sleep(SETTLED_S)
    pods = await items(plane, PODS, name)
    assert {p["metadata"]["name"]: p["spec"].get("nodeName") for p in pods} == wanted
    uids = set()
    for pod in pods:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == (manifest["kind"], name)
        assert not pod["metadata"].get("deletionTimestamp")
        uids.add(owner["uid"])
    (uid,) = uids
    plural = {"Job": "/apis/batch/v1/namespaces/default/jobs"}.get(
        manifest["kind"], f"/apis/apps/v1/namespaces/default/{manifest['kind'].lower()}s"
    )
    (owner,) = [one for one in await plane.every(plural) if one["metadata"]["name"] == name]
    assert owner["metadata"]["uid"] == uid
    status = owner["status"]
    match manifest["kind"]:
        case "Job":
            assert status["active"] == len(wanted)
            if kind == "real":  # its controller counts ended pods by a finalizer
                finalizers = [pod["metadata"]["finalizers"] for pod in pods]
                assert finalizers == [["batch.kubernetes.io/job-tracking"]] * len(wanted)
        case "StatefulSet":
            assert owner["spec"]["updateStrategy"]["type"] == "RollingUpdate"
            assert status["replicas"] == status["updatedReplicas"] == len(wanted)
            assert status["currentRevision"] == status["updateRevision"]
        case "DaemonSet":
            assert status["currentNumberScheduled"] == len(wanted)
            assert status["updatedNumberScheduled"] == len(wanted)


async def local_volumes(plane: Plane) -> None:
    """One of a class that waits for a pod, on each of three nodes."""
    storage_class = {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await plane.create("/apis/storage.k8s.io/v1/storageclasses", [storage_class])
    volumes = []
    for number in range(3):
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{number}"]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        volumes.append({"metadata": {"name": f"pv-{number}"}, "spec": spec})
    await plane.create("/api/v1/persistentvolumes", volumes)
    async with asyncio.timeout(HANG_S):  # a controller says so before a pod may use them
        while not all(  # noqa: ASYNC110 - another process does it
            volume.get("status", {}).get("phase") == "Available"
            for volume in await plane.every("/api/v1/persistentvolumes")
        ):
            await asyncio.sleep(0.1)
