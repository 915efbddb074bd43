"""`asched run --shadow` beside a real kube-scheduler: read rights are enough, reasons are given.

ASCHED_E2E_NODES and ASCHED_E2E_PODS enlarge the crowd.
"""

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from asched.core.shadow.finding import Outcome
from asched.lab.bench.processes import Process
from asched.lab.sim import mix
from tests.deploy.manifests import DEPLOY, documents
from tests.e2e.control_plane import NODES_COUNT, PODS_COUNT, ControlPlane, all_settled
from tests.e2e.inside import a_pod
from tests.e2e.outside import a_process
from tests.patience import HANG_S

pytestmark = pytest.mark.real
USER: Final = "onlooker"
THEIRS: Final = "default-scheduler"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


@asynccontextmanager
async def kube_scheduler(plane: ControlPlane) -> AsyncIterator[Process]:
    """The real one, with its usual configuration but for the limit of its client."""
    binary = plane.binaries / "kube-scheduler"
    if not binary.exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    command = (
        str(binary),
        f"--kubeconfig={plane.kubeconfig}",
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
    )
    process = Process("kube-scheduler", command, plane.folder / "kube-scheduler.log")
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


async def as_onlooker(plane: ControlPlane, folder: Path) -> str:
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
    """The same kubeconfig for the onlooker, and the flag that names it."""
    document = json.loads(Path(kubeconfig).read_text(encoding="utf-8"))
    document["users"][0]["user"] |= {"as": USER}
    file.write_text(json.dumps(document))
    return f"--kubeconfig={file}"


async def test_beside_a_real_scheduler_every_difference_has_a_reason(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    async with ControlPlane.here() as plane, plane.open_client():
        namespaces = [{"metadata": {"name": name}} for name in mix.NAMESPACES]
        await plane.create("/api/v1/namespaces", namespaces)
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await plane.create(classes, mix.priority_classes())
        await plane.create("/api/v1/nodes", mix.nodes(NODES_COUNT))
        flags = await as_onlooker(plane, tmp_path), "--secure-port=0", f"--shadow={THEIRS}"
        async with (
            a_process(tmp_path, *flags, f"--shadow-report={report}") as process,
            kube_scheduler(plane),
        ):
            await process.says("synced")
            await plane.create_pods([a_pod("first", schedulerName=THEIRS)])
            await plane.until(all_settled)  # both follow the queue's order from here on
            await plane.create_pods(mix.pods(PODS_COUNT, THEIRS))
            pods = await plane.until(all_settled)
            process.signal(signal.SIGTERM)
            assert await process.ended(HANG_S) == 0
            assert "Traceback" not in process.words
            assert "403" not in process.words
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    found = told["profiles"][THEIRS]
    placed, refused = (found[name]["outcomes"] for name in ("placed", "unschedulable"))
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    assert sum(placed.values()) == bound
    assert sum(refused.values()) >= len(pods) - bound
    assert found["placed"]["agreement"] > 0.9
    assert found["unschedulable"]["agreement"] > 0.9
    assert not {"error", "unknown_node"} & placed.keys()
    for example in told["examples"]:
        assert example["outcome"] in Outcome
        if example["outcome"] in ("score", "sampled"):
            details = example["details"]
            assert details["score"] < details["ours"]
            assert details["score"] == sum(one["theirs"] for one in details["points"])
        elif example["outcome"] == "refused":
            assert example["plugin"]
            assert example["details"]["reason"]
