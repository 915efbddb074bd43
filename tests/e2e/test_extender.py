"""A scheduler that asks `asched extender`: a stock kube-scheduler on a real API server, and
`asched run` on the embedded one.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from asched.kube.session import ConnectionOptions, Session, connect
from tests.e2e.control_plane import SERVERS
from tests.e2e.extenders import PLUGIN, running
from tests.e2e.replicated import served
from tests.support import HANG_S

SCHEDULER = "stock"
PODS = "/api/v1/namespaces/default/pods"


def client_of(kind: str) -> list[str]:
    """The command of the scheduler that asks."""
    if kind == "embedded":
        return [sys.executable, "-m", "asched", "run"]
    path = Path(os.environ.get("KUBEBUILDER_ASSETS", "")) / "kube-scheduler"
    if not path.is_file():
        pytest.skip("KUBEBUILDER_ASSETS holds no kube-scheduler")
    return [str(path)]


async def until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
        while True:
            assert process.poll() is None, await asyncio.to_thread(log.read_text)
            try:
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectorError:
                pass
            await asyncio.sleep(0.1)


@asynccontextmanager
async def client_with_extender(
    folder: Path, client: list[str], kubeconfig: str, port: int, *, by_name: bool
) -> AsyncIterator[Session]:
    """Both processes; yields a session with the API server, three nodes in place."""
    (folder / "rule.py").write_text(PLUGIN)
    url = f"http://127.0.0.1:{port}"
    extender = {
        "urlPrefix": f"{url}/scheduler",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 100,
        "nodeCacheCapable": by_name,
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig},
        "profiles": [{"schedulerName": SCHEDULER}],
        "extenders": [extender],
    }
    (folder / "config.yaml").write_text(json.dumps(document))
    ours = [sys.executable, "-m", "asched", "extender", f"--port={port}"]
    ours += ["--kubeconfig", kubeconfig, "--plugin", str(folder / "rule.py")]
    theirs = [*client, "--config", str(folder / "config.yaml"), "--secure-port=0"]
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    try:
        for number in range(3):
            await create(session, "/api/v1/nodes", a_node(f"e{number}"))
        with running(ours, folder / "asched.log") as process:
            await until_ready(url, process, folder / "asched.log")
            with running(theirs, folder / "scheduler.log"):
                yield session
    finally:
        await clean(session)
        await session.close()


def a_node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"metadata": {"name": name}, "status": status}


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    more = {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **more}}


async def create(session: Session, path: str, obj: dict[str, Any]) -> None:
    reply = await session.general.request("POST", path, json.dumps(obj).encode())
    assert reply.status == 201, reply.body


async def clean(session: Session) -> None:
    for path in (PODS, "/api/v1/nodes"):
        reply = await session.general.request("GET", path)
        for item in json.loads(reply.body)["items"]:
            await session.general.request("DELETE", f"{path}/{item['metadata']['name']}")


async def pod_once(session: Session, name: str, is_settled: Any) -> dict[str, Any]:
    """The pod, as soon as it is what is waited for."""
    async with asyncio.timeout(HANG_S):
        while True:
            reply = await session.general.request("GET", f"{PODS}/{name}")
            pod: dict[str, Any] = json.loads(reply.body)
            if reply.status == 200 and is_settled(pod):
                return pod
            await asyncio.sleep(0.1)


def is_bound(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName"))


def refusal_of(pod: dict[str, Any]) -> str:
    conditions = pod["status"].get("conditions") or [{}]
    return str(conditions[0].get("message", ""))


@pytest.mark.parametrize("by_name", [True, False], ids=["names", "whole nodes"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_a_scheduler_follows_the_plugins_of_the_extender(
    kind: str, by_name: bool, tmp_path: Path, unused_tcp_port: int
) -> None:
    """1. Our score decides. 2. Our refusal is told. 3. Victims are agreed on. 4. We bind."""
    async with (
        served(kind, tmp_path) as kubeconfig,
        client_with_extender(
            tmp_path, client_of(kind), kubeconfig, unused_tcp_port, by_name=by_name
        ) as session,
    ):
        await create(session, PODS, a_pod("web"))
        web = await pod_once(session, "web", is_bound)
        assert web["spec"]["nodeName"] == "e2"

        selector = {"kubernetes.io/hostname": "nowhere"}
        await create(session, PODS, a_pod("first", nodeSelector=selector))
        await pod_once(session, "first", refusal_of)

        first = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["e0"]}]}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [first]}}
        await create(session, PODS, a_pod("pinned", affinity={"nodeAffinity": terms}))
        pinned = await pod_once(session, "pinned", refusal_of)
        assert "the first node is for others" in refusal_of(pinned)

        third = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["e2"]}]}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [third]}}
        affinity = {"nodeAffinity": terms}
        await create(session, PODS, a_pod("victim", "1800m", affinity=affinity, priority=0))
        await pod_once(session, "victim", is_bound)
        important = a_pod(
            "important", "1500m", affinity=affinity, priorityClassName="system-node-critical"
        )
        await create(session, PODS, important)
        placed = await pod_once(session, "important", is_bound)
        assert placed["spec"]["nodeName"] == "e2"
