"""Deployments, ReplicaSets and Jobs on the embedded server: their pods, their status, their end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from asched_lab.apiserver.context import Change
from asched_lab.apiserver.kubelet import Kubelet
from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import MERGE, PODS, STRATEGIC, Client, a_node

Json = Any
APPS = "/apis/apps/v1/namespaces/default"
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "one"}]},
}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """A server whose pods are bound as soon as they are there, and whose Jobs take no time."""
    running = ApiServer(kubelet=True, controllers=True, seed=1)
    for hand in running.hands:
        if isinstance(hand, Kubelet):
            hand.job_s = 0.0
    await running.start()
    running.create("nodes", a_node("n1"))
    loop = asyncio.get_running_loop()

    def bind(change: Change) -> None:
        if change.old is None and not change.new.obj["spec"].get("nodeName"):
            loop.call_soon(bound, running, change.new.key[1])

    running.store.table(("", "pods")).listeners.append(bind)
    yield running
    await running.stop()


def bound(server: ApiServer, name: str) -> None:
    pod = server.get("pods", "default", name)
    if pod is not None:
        spec = {**pod["spec"], "nodeName": "n1"}
        server.store.put(("", "pods"), ("default", name), {**pod, "spec": spec})


async def until(true: Callable[[], Any]) -> None:
    """Let the loop turn until something holds; a bounded number of turns."""
    for _ in range(5000):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be")


def a_deployment(replicas: int, **strategy: Any) -> Json:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
    spec |= {"template": TEMPLATE, "strategy": strategy}
    return {"metadata": {"name": "web"}, "spec": spec}


def rolled_out(server: ApiServer, replicas: int, image: str) -> bool:
    """What `kubectl rollout status` waits for, and pods of nothing but the new image."""
    deployment = server.get("deployments", "default", "web")
    assert deployment is not None
    status = deployment["status"]
    counts = [
        status.get(f"{kind}Replicas", 0)
        for kind in ("updated", "ready", "available", "unavailable")
    ]
    return (
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and counts == [replicas, replicas, replicas, 0]
        and status.get("replicas", 0) == replicas
        and images(server) == [image] * replicas
    )


def images(server: ApiServer) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in server.list("pods"))


async def change_image(client: Client, image: str) -> None:
    containers = [{"name": "c", "image": image}]
    body = {"spec": {"template": {"spec": {"containers": containers}}}}
    status, _ = await client.ask("PATCH", f"{APPS}/deployments/web", body, media=STRATEGIC)
    assert status == 200


async def test_a_deployment_gets_its_pods_and_is_scaled(server: ApiServer, client: Client) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(3))
    await until(lambda: rolled_out(server, 3, "one"))
    (replica_set,) = server.list("replicasets")
    for pod in server.list("pods"):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("ReplicaSet", replica_set["metadata"]["uid"])
        assert owner["controller"] is True
        labels = replica_set["spec"]["selector"]["matchLabels"]
        assert labels.items() <= pod["metadata"]["labels"].items()

    for replicas in (100, 1, 0):
        body = {"spec": {"replicas": replicas}}
        await client.ask("PATCH", f"{APPS}/deployments/web/scale", body, media=MERGE)
        await until(lambda count=replicas: rolled_out(server, count, "one"))
    assert len(server.list("replicasets")) == 1


async def test_a_deleted_pod_is_replaced(server: ApiServer, client: Client) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(2))
    await until(lambda: rolled_out(server, 2, "one"))
    gone = server.list("pods")[0]["metadata"]["name"]
    await client.ask("DELETE", f"{PODS}/{gone}")
    await until(lambda: server.get("pods", "default", gone) is None)
    await until(lambda: rolled_out(server, 2, "one"))


@pytest.mark.parametrize(
    ("surge", "missing", "pods_max", "ready_min"),
    [(1, 0, 5, 4), (0, 2, 4, 2), ("50%", "25%", 6, 3), ("0%", "10%", 4, 3)],
)
async def test_a_roll_stays_within_its_bounds(
    server: ApiServer,
    client: Client,
    surge: int | str,
    missing: int | str,
    pods_max: int,
    ready_min: int,
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": missing}
    made = a_deployment(4, type="RollingUpdate", rollingUpdate=rolling)
    await client.post(f"{APPS}/deployments", made)
    await until(lambda: rolled_out(server, 4, "one"))
    seen: list[tuple[int, int]] = []

    def count(_change: Change) -> None:
        live = [pod for pod in server.list("pods") if not pod["metadata"].get("deletionTimestamp")]
        ready = sum(1 for pod in live if pod["status"]["phase"] == "Running")
        seen.append((len(live), ready))

    server.store.table(("", "pods")).listeners.append(count)
    await change_image(client, "two")
    await until(lambda: rolled_out(server, 4, "two"))
    assert max(live for live, _ in seen) <= pods_max
    assert min(ready for _, ready in seen) >= ready_min
