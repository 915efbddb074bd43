"""ElasticQuotas against the embedded API server and a real one with their CRD: who is refused, what
status.used says, and who is told that Kueue's quota counts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.e2e.control_plane import ControlPlane
from tests.e2e.inside import a_node
from tests.e2e.outside import Asched, a_process
from tests.lab.apiserver.client import MERGE, Client

Json = dict[str, Any]

CRDS: Final = Path(__file__).parent / "crds" / "elastic-quotas.yaml"
TEAM: Final = "/api/v1/namespaces/team/pods"
QUOTAS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas"
QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
PATIENCE_S: Final = 120.0
POLL_S: Final = 0.1
CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: asched
    plugins:
      multiPoint: {enabled: [{name: CapacityScheduling}]}
      postFilter: {enabled: [{name: CapacityScheduling}], disabled: [{name: "*"}]}
"""


@asynccontextmanager
async def embedded(tmp_path: Path) -> AsyncIterator[Client]:
    served = POD_GROUPS | {"kueue.x-k8s.io/v1beta2"}
    server = ApiServer(kubelet=False, options=Options(alpha=frozenset(served)))
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    try:
        async with Client(server.url) as client, _asched(tmp_path, kubeconfig) as asched:
            server.create("nodes", a_node("node", cpu="8"))
            yield client
            assert "Traceback" not in asched.words, asched.words[-3000:]
    finally:
        await server.stop()


@asynccontextmanager
async def real(tmp_path: Path) -> AsyncIterator[Client]:
    async with ControlPlane.here() as plane, plane.open_client() as client:
        for crd in yaml.safe_load_all(CRDS.read_text(encoding="utf-8")):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            status, answer = await client.post(path, crd)
            assert status == 201, answer
        for path in (QUOTAS, QUEUES):  # a kind that is absent is looked for again in minutes
            await until(client, path.format("default"), lambda _: True)
        await plane.create("/api/v1/nodes", [a_node("node", cpu="8")])
        async with _asched(tmp_path, plane.kubeconfig) as asched:
            yield client
            assert "Traceback" not in asched.words, asched.words[-3000:]


def _asched(folder: Path, kubeconfig: object) -> AbstractAsyncContextManager[Asched]:
    config = folder / "config.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    flags = (f"--config={config}", "--leader-elect=false", "--secure-port=0")
    status = "--status-controllers"
    return a_process(folder, *flags, status, environment={"KUBECONFIG": str(kubeconfig)})


async def made(client: Client, path: str, body: Json) -> None:
    """A new namespace has no service account for a moment, a new CRD no endpoint."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, answer = await client.post(path, body)
            if status == 201:
                return
            assert status in (403, 404), answer
            await asyncio.sleep(POLL_S)


async def until(client: Client, path: str, holds: Callable[[Json], bool]) -> Json:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, answer = await client.get(path)
            if status == 200 and holds(answer):
                return answer
            await asyncio.sleep(POLL_S)


def a_pod(name: str, cpu: str) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "schedulerName": "asched"},
    }


def a_quota(**spec: Json) -> Json:
    body = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota"}
    return {**body, "metadata": {"name": "quota"}, "spec": spec}


async def runs(client: Client, name: str) -> None:
    """As its kubelet would say."""
    await until(client, f"{TEAM}/{name}", lambda pod: bool(pod["spec"].get("nodeName")))
    body = {"status": {"phase": "Running"}}
    status, answer = await client.ask("PATCH", f"{TEAM}/{name}/status", body, media=MERGE)
    assert status == 200, answer


async def a_quota_is_kept_and_told(client: Client) -> None:
    for namespace in ("team", "queued"):
        await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await made(client, QUOTAS.format("team"), a_quota(min={"cpu": "2"}, max={"cpu": "2"}))
    quota = f"{QUOTAS.format('team')}/quota"
    await until(client, quota, lambda one: one.get("status", {}).get("used") == {"cpu": "0"})

    for name, cpu in (("one", "1500m"), ("two", "1")):
        await made(client, TEAM, a_pod(name, cpu))
        if name == "one":
            await runs(client, name)

    await until(client, quota, lambda one: one["status"]["used"] == {"cpu": "1500m"})
    refused = "ElasticQuota team is more than Max"
    await until(client, f"{TEAM}/two", lambda pod: refused in str(pod["status"].get("conditions")))
    await client.ask("DELETE", f"{TEAM}/one", {"gracePeriodSeconds": 0})
    await runs(client, "two")
    await until(client, quota, lambda one: one["status"]["used"] == {"cpu": "1"})


async def a_queue_of_kueue_frees_from_no_quota(client: Client) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}
    await made(client, QUEUES.format("team"), {**queue, "metadata": {"name": "queue"}, "spec": {}})
    await made(client, TEAM, a_pod("large", "4"))
    refused = "ElasticQuota team is more than Max"
    await until(
        client, f"{TEAM}/large", lambda pod: refused in str(pod["status"].get("conditions"))
    )


async def test_a_quota_is_kept_and_its_use_is_told(tmp_path: Path) -> None:
    async with embedded(tmp_path) as client:
        await a_quota_is_kept_and_told(client)
        await a_queue_of_kueue_frees_from_no_quota(client)


@pytest.mark.real
async def test_the_same_against_a_real_api_server(tmp_path: Path) -> None:
    async with real(tmp_path) as client:
        await a_quota_is_kept_and_told(client)
        await a_queue_of_kueue_frees_from_no_quota(client)
