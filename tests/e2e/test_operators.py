"""The objects that batch operators make, against the embedded API server and a real one.

Each file of `operators/` is a row: PodGroups and pods as the operator creates them. Keys with `x-`
are the test's: `x-count` pods of a kind, `x-after` a pod that runs first, `x-released` gates that
somebody lifts, `x-waits` pods that cannot start, `x-told` what an event must say.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
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
from tests.e2e.outside import ROOT, Asched, a_process
from tests.lab.apiserver.client import MERGE, Client

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "operators"
ROWS: Final = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "crd")
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups"
PATIENCE_S: Final = 120.0
POLL_S: Final = 0.1
#: A queue that is left alone for so long has nothing more to try.
QUIET_S: Final = 2.0
OWN: Final = ("--secure-port=0", "--status-controllers")


class Row:
    """One file, made in its own namespace."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
        self.documents: list[Json] = list(yaml.safe_load_all(text))
        self.namespace: str = self.documents[0]["metadata"]["namespace"]
        self.pods_path = f"/api/v1/namespaces/{self.namespace}/pods"

    async def play(self) -> None:
        await self._client.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for document in self.documents:
            if document["kind"] == "PodGroup":
                await self._made(GROUPS.format(self.namespace), document)
                continue
            if after := document.get("x-after"):
                await self.until(lambda pods, first=after: bool(_node_of(pods, first)))
            for number in range(document.get("x-count", 1)):
                await self._made(self.pods_path, _pod(document, number))
            if document.get("x-released"):
                await self._release()
        if any(document.get("x-waits") for document in self.documents):
            await asyncio.sleep(QUIET_S)
            assert not [pod for pod in await self.pods() if pod["spec"].get("nodeName")]
        else:
            await self.until(lambda pods: all(pod["spec"].get("nodeName") for pod in pods))
        for told in [d["x-told"] for d in self.documents if "x-told" in d]:
            await self._until_told(told)

    async def pods(self) -> list[Json]:
        _, answer = await self._client.get(self.pods_path)
        items: list[Json] = answer["items"]
        return items

    async def until(self, holds: Callable[[list[Json]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(await self.pods()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)

    async def phase(self, name: str, phase: str) -> Json:
        """Wait for a PodGroup's phase; its status."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, group = await self._client.get(f"{GROUPS.format(self.namespace)}/{name}")
                if group.get("status", {}).get("phase") == phase:
                    status: Json = group["status"]
                    return status
                await asyncio.sleep(POLL_S)

    async def _made(self, path: str, document: Json) -> None:
        body = {key: value for key, value in document.items() if not key.startswith("x-")}
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status, answer = await self._client.post(path, body)
                if status == 201:
                    return
                # A new namespace has no service account for a moment, a new CRD no endpoint.
                assert status in (403, 404), answer
                await asyncio.sleep(POLL_S)

    async def _release(self) -> None:
        await asyncio.sleep(QUIET_S)
        for pod in await self.pods():
            assert not pod["spec"].get("nodeName")
            path = f"{self.pods_path}/{pod['metadata']['name']}"
            body = {"spec": {"schedulingGates": None}}
            status, answer = await self._client.ask("PATCH", path, body, media=MERGE)
            assert status == 200, answer

    async def _until_told(self, text: str) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, answer = await self._client.get(path)
                if any(text in event.get("note", "") for event in answer["items"]):
                    return
                await asyncio.sleep(POLL_S)


def _pod(document: Json, number: int) -> Json:
    metadata = dict(document["metadata"])
    prefix = metadata.pop("generateName", "")
    if prefix:
        metadata["name"] = f"{prefix}{number}"
    return {**document, "metadata": metadata}


def _node_of(pods: list[Json], name: str) -> str:
    found = [pod["spec"].get("nodeName", "") for pod in pods if pod["metadata"]["name"] == name]
    return found[0] if found else ""


def _nodes() -> Iterator[Json]:
    for number in range(10):
        yield a_node(f"node-{number}", cpu="4")


@asynccontextmanager
async def embedded(tmp_path: Path) -> AsyncIterator[Client]:
    """The embedded server with nodes, and asched as a process with config/batch.yaml."""
    server = ApiServer(options=Options(alpha=POD_GROUPS))
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    try:
        async with Client(server.url) as client, _asched(tmp_path, kubeconfig) as asched:
            for node in _nodes():
                server.create("nodes", node)
            yield client
            assert "Traceback" not in asched.words, asched.words[-3000:]
    finally:
        await server.stop()


@asynccontextmanager
async def real(tmp_path: Path) -> AsyncIterator[Client]:
    """The same with a real control plane and the CRD."""
    async with ControlPlane.here() as plane, plane.open_client() as client:
        crd = yaml.safe_load((FOLDER / "crd.yaml").read_text(encoding="utf-8"))
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, answer = await client.post(path, crd)
        assert status == 201, answer
        await plane.create("/api/v1/nodes", _nodes())
        async with _asched(tmp_path, plane.kubeconfig) as asched:
            yield client
            assert "Traceback" not in asched.words, asched.words[-3000:]


def _asched(folder: Path, kubeconfig: object) -> AbstractAsyncContextManager[Asched]:
    flags = (f"--config={ROOT / 'config' / 'batch.yaml'}", "--leader-elect=false")
    environment = {"KUBECONFIG": str(kubeconfig)}
    return a_process(folder, *flags, *OWN, environment=environment)


async def every_row(client: Client) -> None:
    """All rows at the same time, then Spark's second application in room for one."""
    rows = {name: Row(client, name) for name in ROWS}
    async with asyncio.TaskGroup() as group:
        for row in rows.values():
            group.create_task(row.play())
    status = await rows["trainer-v2"].phase("pytorch", "Scheduling")
    assert status["phase"] == "Scheduling"
    assert (await rows["leader-first"].phase("stuck", "Pending")).get("running", 0) == 0


async def test_every_operators_objects_go_on_or_are_told_why_not(tmp_path: Path) -> None:
    async with embedded(tmp_path) as client:
        await every_row(client)


@pytest.mark.real
async def test_the_same_against_a_real_api_server(tmp_path: Path) -> None:
    async with real(tmp_path) as client:
        await every_row(client)
