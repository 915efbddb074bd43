"""`asched run --shadow` beside another scheduler: read rights are enough, reasons are given. The
other is kube-scheduler on a real API server, and asched on the embedded one.

ASCHED_E2E_NODES and ASCHED_E2E_PODS enlarge the crowd.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from asched.insight.shadow.finding import Agreement
from asched.insight.shadow.following import AGAIN_S, LATE_S
from asched_lab.sim import mix
from tests.deploy.manifests import DEPLOY, documents
from tests.e2e.control_plane import (
    NODES_COUNT,
    PODS_COUNT,
    SERVERS,
    Plane,
    a_plane,
    all_settled,
)
from tests.e2e.inside import a_pod
from tests.e2e.outside import a_process
from tests.e2e.reference_scheduler import kube_scheduler
from tests.support import HANG_S

USER: Final = "onlooker"
THEIRS: Final = "default-scheduler"
PACKING: Final = "packing"
#: Second looks on a machine that others use.
LOOKS_PER_S: Final = 100
#: Agreement, and what says nothing against it.
EXPLAINED: Final = ("same", "tie", "lag", "sampled", "missed")
#: A configuration as a team may have one: all nodes are scored, and a second profile packs.
CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %s, qps: 5000, burst: 5000}
leaderElection: {leaderElect: false}
percentageOfNodesToScore: 100
profiles:
  - schedulerName: default-scheduler
  - schedulerName: packing
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
"""
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


async def as_onlooker(plane: Plane, folder: Path) -> str:
    """A kubeconfig of somebody who has the rights of the overlay, and no others."""
    role, _ = documents(DEPLOY / "overlays/shadow/role.yaml")
    await plane.create(f"{RBAC}/clusterroles", [role])
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }
    await plane.create(f"{RBAC}/clusterrolebindings", [binding])
    return written(plane.kubeconfig, folder / "onlooker")


def written(kubeconfig: str, file: Path) -> str:
    """The same kubeconfig for the onlooker."""
    document = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    document["users"][0]["user"] |= {"as": USER}
    file.write_text(json.dumps(document))
    return str(file)


def a_file(folder: Path, name: str, kubeconfig: str) -> str:
    (folder / name).write_text(CONFIGURATION % kubeconfig)
    return f"--config={folder / name}"


@asynccontextmanager
async def the_other(kind: str, plane: Plane, folder: Path, *flags: str) -> AsyncIterator[None]:
    """The scheduler that places the pods."""
    if kind == "real":
        async with kube_scheduler(plane, *flags):
            yield
        return
    own = folder / "other"
    own.mkdir()
    async with a_process(own, *flags, "--secure-port=0"):
        yield


@pytest.mark.parametrize("names", [(THEIRS,), (THEIRS, PACKING)], ids=["default", "configured"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_every_difference_has_a_reason(
    kind: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    async with a_plane(kind) as plane:
        namespaces = [{"metadata": {"name": name}} for name in mix.NAMESPACES]
        await plane.create("/api/v1/namespaces", namespaces)
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await plane.create(classes, mix.priority_classes())
        await plane.create("/api/v1/nodes", mix.nodes(NODES_COUNT))
        onlooker = await as_onlooker(plane, tmp_path)
        ours = (f"--kubeconfig={onlooker}",)
        theirs: tuple[str, ...] = (
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            *(() if kind == "real" else (f"--scheduler-name={THEIRS}",)),
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
        )
        if len(names) > 1:
            ours = (a_file(tmp_path, "ours.yaml", onlooker),)
            theirs = (a_file(tmp_path, "theirs.yaml", plane.kubeconfig),)
        flags = *ours, "--secure-port=0", f"--shadow={','.join(names)}"
        async with (
            a_process(tmp_path, *flags, f"--shadow-report={report}") as process,
            the_other(kind, plane, tmp_path, *theirs),
        ):
            await process.says("synced")
            await plane.create_pods([a_pod("first", schedulerName=THEIRS)])
            await plane.until(all_settled)  # both follow the queue's order from here on
            crowd = list(mix.pods(PODS_COUNT, THEIRS))
            for number, pod in enumerate(crowd):
                pod["spec"]["schedulerName"] = names[number % len(names)]
            await plane.create_pods(crowd)
            pods = await plane.until(all_settled)
            await asyncio.sleep(2 * (AGAIN_S + LATE_S) + PODS_COUNT / LOOKS_PER_S)
            process.signal(signal.SIGTERM)
            assert await process.ended(HANG_S) == 0
            assert "Traceback" not in process.words
            assert "orbidden" not in process.words
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    assert told["profiles"].keys() == set(names)
    for name in names:
        of_it = [pod for pod in pods if pod["spec"]["schedulerName"] == name]
        assert_explained(told["profiles"][name], of_it, samples=len(names) == 1)
    for example in told["examples"]:
        assert example["meaning"] == Agreement(example["outcome"]).meaning
        if example["outcome"] in ("score", "sampled"):
            details = example["details"]
            assert details["score"] < details["ours"]
            assert details["score"] == sum(one["theirs"] for one in details["points"])
        elif example["outcome"] == "refused":
            assert example["plugin"]
            assert example["details"]["reason"]


def assert_explained(found: Any, pods: list[Any], *, samples: bool) -> None:
    """Every decision about these pods was counted, most agree, the rest has a reason."""
    placed, refused = (found[name]["outcomes"] for name in ("placed", "unschedulable"))
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    assert sum(placed.values()) == bound
    assert sum(refused.values()) >= len(pods) - bound
    explained = sum(placed.get(outcome, 0) for outcome in EXPLAINED)
    assert explained > 0.95 * bound, placed
    assert found["unschedulable"]["agreement"] > 0.9
    assert not {"error", "unknown_node"} & placed.keys()
    assert samples or "sampled" not in placed
