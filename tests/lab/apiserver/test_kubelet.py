"""The pretend kubelets: pods that run, pods that end, namespaces that empty."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import PODS, Client, a_binding, a_node, a_pod


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    running = ApiServer(kubelet=True, seed=1)
    await running.start()
    running.create("nodes", a_node("n1"))
    yield running
    await running.stop()


async def until(true: Callable[[], bool]) -> None:
    """Let the loop turn until something holds; a bounded number of turns."""
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be")


async def test_a_bound_pod_runs_and_a_deleted_one_ends(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("web"))
    await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))
    await until(lambda: server.list("pods")[0]["status"]["phase"] == "Running")

    pod = server.list("pods")[0]
    conditions = {c["type"]: c["status"] for c in pod["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert pod["status"]["startTime"]

    status, answer = await client.ask("DELETE", f"{PODS}/web")
    assert status == 200
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    await until(lambda: not server.list("pods"))


async def test_a_pod_on_a_missing_node_does_not_run(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("web"))
    server.create("pods", a_pod("other"))
    await client.post(f"{PODS}/web/binding", a_binding("web", "nowhere"))
    await client.post(f"{PODS}/other/binding", a_binding("other", "n1"))
    await until(lambda: server.list("pods")[0]["status"]["phase"] == "Running")
    assert server.list("pods")[1]["status"]["phase"] == "Pending"


async def test_a_terminating_namespace_is_emptied(server: ApiServer, client: Client) -> None:
    server.create("namespaces", {"metadata": {"name": "t"}})
    pod = a_pod("web")
    pod["metadata"] |= {"namespace": "t"}
    server.create("pods", pod)
    server.create("configmaps", {"metadata": {"name": "m", "namespace": "t"}})
    await client.ask("DELETE", "/api/v1/namespaces/t")
    await until(lambda: server.get("namespaces", "", "t") is None)
    assert not server.list("pods", "t")
    assert not server.list("configmaps", "t")
