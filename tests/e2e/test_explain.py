"""`asched explain POD` through an API server, by somebody with the component's rights."""

import asyncio
import json
import re
import socket
import sys
from base64 import b64encode
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from tests.deploy.clusters import started
from tests.deploy.manifests import DEPLOY, chart, container, documents, one
from tests.e2e.control_plane import SERVERS, EmbeddedPlane, Plane, a_plane, refusal
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.kubelet import own_address
from tests.e2e.outside import a_process
from tests.support import HANG_S
from tests.unit.cli.programs import asched

NAMESPACE: Final = "asched-system"
USER: Final = "alice"
MERGE: Final = "application/merge-patch+json"
PATHS: Final = {
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def as_user(plane: Plane, folder: Path) -> str:
    """A kubeconfig of somebody without any right but those bound to him."""
    document = yaml.safe_load(Path(plane.kubeconfig).read_text(encoding="utf-8"))
    document["users"][0]["user"] |= {"as": USER}
    file = folder / "alice"
    file.write_text(json.dumps(document))
    return f"--kubeconfig={file}"


def the_pod_of_this_process(port: int, namespace: str = NAMESPACE) -> dict[str, Any]:
    ports = [{"name": "https", "containerPort": port}]
    return {
        "metadata": {"name": socket.gethostname(), "namespace": namespace},
        "spec": {"nodeName": "n1", "containers": [{"name": "a", "image": "a", "ports": ports}]},
    }


async def shown_by_ui(flag: str) -> tuple[str, str]:
    """The page of `asched top --web` as it came through the API server, and its policy."""
    command = (sys.executable, "-m", "asched", "top", "--web", flag)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
            url = (await process.stdout.readline()).decode().split(" at ")[1].split()[0]
            async with session.get(url) as answer:
                assert answer.status == 200
                return await answer.text(), answer.headers["Content-Security-Policy"]
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("kind", SERVERS)
async def test_somebody_with_the_components_rights_asks_the_leader(
    kind: str, tmp_path: Path
) -> None:
    address, port = own_address() if kind == "real" else "127.0.0.1", free_port()
    async with a_plane(kind) as plane:
        await plane.create("/api/v1/namespaces", [{"metadata": {"name": NAMESPACE}}])
        await plane.create("/api/v1/nodes", [a_node("n1", cpu="1")])
        await plane.create_pods([a_pod("web", cpu="64"), the_pod_of_this_process(port)])
        own = f"/api/v1/namespaces/{NAMESPACE}/pods/{socket.gethostname()}/status"
        told = {"status": {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}}
        code, answer = await plane.client.ask("PATCH", own, told, media=MERGE)
        assert code == 200, answer
        for manifest in documents(DEPLOY / "components/explain/rbac.yaml"):
            await plane.create(PATHS[manifest["kind"]], [manifest])
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            f"--secure-port={port}",
            f"--scheduler-name={SCHEDULER}",
            f"--leader-elect-resource-namespace={NAMESPACE}",
            "--leader-elect-resource-name=asched",
            f"--cert-dir={tmp_path}",
            "--explain-hint",
        )
        async with a_process(tmp_path, *flags):
            pods = await plane.until(lambda pods: any(map(refusal, pods)))
            alice = as_user(plane, tmp_path)
            refused = await asched("explain", "web", alice)
            binding = {
                "metadata": {"name": "alice"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": "asched-explain",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
                ],
            }
            await plane.create(PATHS["RoleBinding"], [binding])
            async with asyncio.timeout(HANG_S):
                while True:  # until the binding is heard of
                    found = await asched("explain", "web", alice)
                    if found[0] == 0:
                        break
            top = await asched("top", alice)
            page, policy = await shown_by_ui(alice)
            events = await plane.every("/apis/events.k8s.io/v1/namespaces/default/events")

    assert refused[0] == 1
    assert "you may not read lease asched-system/asched" in refused[2]
    assert "pod default/web: unschedulable" in found[1]
    assert "NodeResourcesFit" in found[1]
    assert (top[0], top[2]) == (0, "")
    assert "NodeResourcesFit: Insufficient cpu (1)" in top[1]
    # The API server's proxy writes the tags of a page anew: its script must stay what it was.
    for part in ("script", "style"):
        content = re.search(rf"<{part}>(.*)</{part}>", page, re.DOTALL)
        assert content is not None
        assert b64encode(sha256(content[1].encode()).digest()).decode() in policy
    (pod,) = [pod for pod in pods if refusal(pod)]
    notes = {e["note"] for e in events if e["reason"] == "FailedScheduling"}
    assert notes == {refusal(pod)}
    assert refusal(pod).endswith(". Ask why: kubectl asched explain -n default web")


async def test_an_installation_by_chart_is_found_by_itself(tmp_path: Path) -> None:
    """1. The only one. 2. That of our name. 3. Of two with one name none is chosen."""
    objects = chart("y", "x")
    words = started(objects, tmp_path)
    port = int(next(word for word in words if word.startswith("--secure-port=")).split("=")[1])
    async with a_plane("embedded") as plane:
        assert isinstance(plane, EmbeddedPlane)
        for manifest in ({"kind": "Namespace", "metadata": {"name": "x"}}, *objects):
            plane.server.create("", {"apiVersion": "v1", **manifest})
        await plane.create("/api/v1/nodes", [a_node("n1", cpu="1")])
        await plane.create_pods([a_pod("web", cpu="64"), the_pod_of_this_process(port, "x")])
        own = f"/api/v1/namespaces/x/pods/{socket.gethostname()}/status"
        status = {"status": {"podIP": "127.0.0.1", "phase": "Running"}}
        assert (await plane.client.ask("PATCH", own, status, media=MERGE))[0] == 200
        where = f"--kubeconfig={plane.kubeconfig}"
        async with a_process(tmp_path, *words, environment={"KUBECONFIG": plane.kubeconfig}):
            await plane.until(lambda pods: any(map(refusal, pods)))
            only = await asched("explain", "web", where)
            plane.server.create("deployments", renamed(objects, "batch", "asched-batch"))
            ours = await asched("explain", "web", where)
            plane.server.create("deployments", renamed(objects, "second", "asched"))
            refused = await asched("explain", "web", where)
            named = await asched("explain", "web", where, "--lease=x/asched")
    for status, said, errors in (only, ours, named):
        assert (status, errors) == (0, "")
        assert said.startswith("pod default/web: unschedulable\n")
    assert refused[0] == 1
    shown = "x/second (lease x/second), x/y-asched (lease x/asched)"
    assert f"there are 2 installations: {shown}; name one with --lease" in refused[2]


def renamed(objects: list[dict[str, Any]], name: str, scheduler_name: str) -> dict[str, Any]:
    """Another Deployment of that installation, which serves another name without its file."""
    deployment = deepcopy(one(objects, "Deployment"))
    deployment["metadata"]["name"] = name
    flags = [f"--scheduler-name={scheduler_name}", f"--leader-elect-resource-name={name}"]
    container(deployment)["args"][:] = ["run", "--leader-elect-resource-namespace=x", *flags]
    return deployment
