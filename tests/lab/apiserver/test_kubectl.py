"""kubectl's everyday commands, by kubectl itself."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import kubectl as kubectl_path
from tests.lab.apiserver.client import a_node, a_pod
from tests.support import HANG_S

Run = Callable[..., Awaitable[tuple[int, str]]]
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: a}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: pause}]}
"""


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    running = ApiServer(kubelet=True, controllers=True, seed=1)
    await running.start()
    running.create("nodes", a_node("n1"))
    yield running
    await running.stop()


@pytest.fixture
def kubectl(server: ApiServer, tmp_path: Path) -> Run:
    config = tmp_path / "kubeconfig"
    config.write_text(server.kubeconfig())
    program = kubectl_path()
    env = {"KUBECONFIG": str(config), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    async def run(*args: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            program,
            *args,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(stdin.encode()), HANG_S)
        return process.returncode or 0, out.decode()

    return run


async def test_a_day_with_kubectl(server: ApiServer, kubectl: Run) -> None:
    code, out = await kubectl(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", **a_pod("web")})
    )
    assert (code, out) == (0, "pod/web created\n")
    code, out = await kubectl("get", "nodes,pods", "-o", "wide")
    assert code == 0
    assert "pod/web" in out
    assert "Pending" in out
    code, out = await kubectl("patch", "pod", "web", "-p", '{"metadata":{"labels":{"q":"1"}}}')
    assert (code, out) == (0, "pod/web patched\n")
    code, out = await kubectl("get", "pods", "-l", "q=1", "-o", "name")
    assert (code, out) == (0, "pod/web\n")
    code, out = await kubectl("describe", "pod", "web")
    assert code == 0
    assert "Labels:       q=1" in out
    code, out = await kubectl("delete", "pod", "web")
    assert code == 0
    assert not server.list("pods")
    code, out = await kubectl("get", "pod", "web")
    assert code == 1
    assert 'pods "web" not found' in out


async def test_apply_creates_changes_and_leaves_alone(server: ApiServer, kubectl: Run) -> None:
    assert (await kubectl("apply", "-f", "-", stdin=DEPLOYMENT))[1].endswith("web created\n")
    assert (await kubectl("apply", "-f", "-", stdin=DEPLOYMENT))[1].endswith("web unchanged\n")
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 3").replace(", labels: {team: a}", "")
    assert (await kubectl("apply", "-f", "-", stdin=changed))[1].endswith("web configured\n")
    deployment = server.list("deployments")[0]
    assert deployment["spec"]["replicas"] == 3
    assert "labels" not in deployment["metadata"]
    code, out = await kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=changed
    )
    assert code == 0, out


async def test_a_deployment_is_rolled_out(server: ApiServer, kubectl: Run) -> None:
    placed = DEPLOYMENT.replace("{containers:", "{nodeName: n1, containers:")
    assert (await kubectl("apply", "-f", "-", stdin=placed))[0] == 0
    for args in (("scale", "--replicas=3"), ("set", "image", "c=other"), ("rollout", "undo")):
        verbs = args[:2] if args[0] != "scale" else args[:1]
        code, out = await kubectl(*verbs, "deployment/web", *args[len(verbs) :])
        assert code == 0, out
        code, out = await kubectl("rollout", "status", "deployment/web", f"--timeout={HANG_S:.0f}s")
        assert (code, out.splitlines()[-1:]) == (0, ['deployment "web" successfully rolled out'])
        assert len(server.list("pods")) >= 2
    code, out = await kubectl("get", "deployment", "web")
    assert out.split()[5:10] == ["web", "3/3", "3", "3", out.split()[9]]


async def test_what_a_newcomer_asks(kubectl: Run) -> None:
    code, out = await kubectl("auth", "can-i", "--list")
    assert (code, "*.*" in out, "[*]" in out) == (0, True, True), out
    code, out = await kubectl("get", "--raw", "/readyz?verbose")
    assert (code, out.splitlines()[-1]) == (0, "readyz check passed")
    assert "[+]etcd ok" in out.splitlines()
    code, out = await kubectl("explain", "pod.spec.schedulerName")
    assert (code, "The scheduler that binds the pod" in out) == (0, True), out
