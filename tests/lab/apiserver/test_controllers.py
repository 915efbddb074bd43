"""Deployments, ReplicaSets and Jobs on the embedded server: their pods, their status, their end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from asched_lab.apiserver import controllers
from asched_lab.apiserver.kubelet import Kubelet
from asched_lab.apiserver.server import ApiServer
from asched_lab.apiserver.store import DELETED, Change
from tests.lab.apiserver.client import MERGE, PODS, STRATEGIC, Client, a_node

Json = Any
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default/jobs"
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


def a_job(**spec: Any) -> Json:
    pod = {"restartPolicy": "Never", **TEMPLATE["spec"]}
    return {"metadata": {"name": "sum"}, "spec": {"template": {"spec": pod}, **spec}}


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


async def test_recreate_ends_the_old_pods_first(server: ApiServer, client: Client) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(3, type="Recreate"))
    await until(lambda: rolled_out(server, 3, "one"))
    mixed: list[Change] = []

    def look(change: Change) -> None:
        live = [pod for pod in server.list("pods") if not pod["metadata"].get("deletionTimestamp")]
        if len({pod["spec"]["containers"][0]["image"] for pod in live}) > 1:
            mixed.append(change)

    server.store.table(("", "pods")).listeners.append(look)
    await change_image(client, "two")
    await until(lambda: rolled_out(server, 3, "two"))
    assert not mixed


async def test_a_former_template_comes_back_in_its_own_replica_set(
    server: ApiServer, client: Client
) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(2))
    await until(lambda: rolled_out(server, 2, "one"))
    first = server.list("replicasets")[0]["metadata"]["name"]
    await change_image(client, "two")
    await until(lambda: rolled_out(server, 2, "two"))
    await change_image(client, "one")
    await until(lambda: rolled_out(server, 2, "one"))

    revisions = {
        one["metadata"]["name"]: one["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        for one in server.list("replicasets")
    }
    assert len(revisions) == 2
    assert revisions[first] == "3"


async def test_an_owner_takes_its_dependents_along(server: ApiServer, client: Client) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(3))
    await until(lambda: rolled_out(server, 3, "one"))
    await client.ask("DELETE", f"{APPS}/deployments/web")
    await until(lambda: not server.list("replicasets") and not server.list("pods"))


async def test_orphans_stay(server: ApiServer, client: Client) -> None:
    await client.post(f"{APPS}/deployments", a_deployment(3))
    await until(lambda: rolled_out(server, 3, "one"))
    (name,) = (one["metadata"]["name"] for one in server.list("replicasets"))
    await client.ask("DELETE", f"{APPS}/replicasets/{name}", {"propagationPolicy": "Orphan"})
    # The Deployment misses its ReplicaSet and makes another one, with pods of its own.
    await until(lambda: len(server.list("pods")) == 6)
    orphans = [pod for pod in server.list("pods") if not pod["metadata"].get("ownerReferences")]
    assert len(orphans) == 3


async def test_what_refuses_pods_is_told_and_tried_again(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controllers, "RETRY_S", 0.0)
    made = a_deployment(1)
    made["spec"]["template"] = {
        **TEMPLATE,
        "spec": {**TEMPLATE["spec"], "priorityClassName": "later"},
    }
    await client.post(f"{APPS}/deployments", made)
    await until(
        lambda: [one for one in server.list("replicasets") if one["status"].get("conditions")]
    )
    (failure,) = server.list("replicasets")[0]["status"]["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "no PriorityClass with name later was found" in failure["message"]

    server.create("priorityclasses", {"metadata": {"name": "later"}, "value": 7})
    await until(lambda: rolled_out(server, 1, "one"))
    assert "conditions" not in server.list("replicasets")[0]["status"]


async def test_a_job_ends_when_enough_pods_have(server: ApiServer, client: Client) -> None:
    beside: list[int] = []

    def count(change: Change) -> None:
        if change.type != DELETED:
            live = [pod["status"]["phase"] for pod in server.list("pods")]
            beside.append(len(live) - live.count("Succeeded"))

    server.store.table(("", "pods")).listeners.append(count)
    spec = {"completions": 5, "parallelism": 2, "completionMode": "Indexed"}
    await client.post(BATCH, a_job(**spec))
    await until(lambda: "completionTime" in server.list("jobs")[0]["status"])

    status = server.list("jobs")[0]["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (5, "0-4")
    assert {one["type"] for one in status["conditions"]} == {"SuccessCriteriaMet", "Complete"}
    assert max(beside) == 2
    indexes = [
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        for pod in server.list("pods")
    ]
    assert sorted(indexes) == ["0", "1", "2", "3", "4"]


async def test_a_job_waits_while_it_is_suspended(server: ApiServer, client: Client) -> None:
    await client.post(BATCH, a_job(suspend=True))
    await until(lambda: server.list("jobs")[0]["status"].get("conditions"))
    assert not server.list("pods")
    await client.ask("PATCH", f"{BATCH}/sum", {"spec": {"suspend": False}}, media=MERGE)
    await until(lambda: server.list("jobs")[0]["status"].get("succeeded") == 1)


async def test_a_job_gives_up_after_its_backoff_limit(server: ApiServer, client: Client) -> None:
    made = a_job(backoffLimit=1)
    made["spec"]["template"]["spec"]["nodeName"] = "elsewhere"  # where no kubelet runs it
    await client.post(BATCH, made)
    for _ in range(2):
        await until(lambda: any(pod["status"]["phase"] != "Failed" for pod in server.list("pods")))
        for pod in server.list("pods"):
            body = {"status": {"phase": "Failed"}}
            path = f"{PODS}/{pod['metadata']['name']}/status"
            await client.ask("PATCH", path, body, media=MERGE)
    await until(lambda: server.list("jobs")[0]["status"].get("conditions"))
    (condition,) = server.list("jobs")[0]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert len(server.list("pods")) == 2


async def test_kinds_without_a_controller_are_warned_of(server: ApiServer, client: Client) -> None:
    spec = {"serviceName": "s", "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    body = {"metadata": {"name": "s"}, "spec": spec}
    url = f"{server.url}{APPS}/statefulsets"
    async with client.session.post(url, json=body) as answer:
        assert answer.status == 201
        assert "runs no StatefulSet controller" in answer.headers["Warning"]
    async with client.session.post(f"{server.url}{BATCH}", json=a_job()) as answer:
        assert "Warning" not in answer.headers
