"""API servers for tests, with a client: etcd and kube-apiserver of KUBEBUILDER_ASSETS, or the
embedded server in the test's process.

    @pytest.mark.parametrize("kind", SERVERS)
    async def test_something(kind, tmp_path):
        async with a_plane(kind) as plane:
            await plane.create("/api/v1/nodes", [...])

Bounds  CREATES_AT_ONCE requests in flight; PATIENCE_S for whatever a test waits for.
"""

import asyncio
import os
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest

from asched.kube.certificates import client_context
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.server import ApiServer
from asched_lab.bench.processes import Process
from asched_lab.measure.real import TOKEN, RealServer, assets
from tests.lab.apiserver.client import Client

Json = dict[str, Any]

CREATES_AT_ONCE: Final = 32
PATIENCE_S: Final = 180.0
POLL_S: Final = 0.25
PODS: Final = "/api/v1/pods"
#: The demo's crowd is 1,000 nodes and 5,000 pods; these sizes suit a machine with two cores.
NODES_COUNT: Final = int(os.environ.get("ASCHED_E2E_NODES", "100"))
PODS_COUNT: Final = int(os.environ.get("ASCHED_E2E_PODS", "500"))


#: Values of `kind`.
SERVERS: Final = ("embedded", pytest.param("real", marks=pytest.mark.real))


class Plane(ABC):
    """An API server; `client` has an administrator's rights."""

    client: Client
    folder: Path
    kubeconfig: str

    @abstractmethod
    async def kill_and_restart(self, away_s: float) -> None:
        """End the API server, and start it again after that time with the same objects."""

    async def create(self, path: str, objects: Iterable[Json]) -> None:
        """POST objects, many at a time; `{namespace}` in the path is each one's own."""
        gate = asyncio.Semaphore(CREATES_AT_ONCE)

        async def one(obj: Json) -> None:
            async with gate:
                where = path.format(namespace=obj["metadata"].get("namespace", ""))
                status, answer = await self.client.ask("POST", where, obj)
                assert status == 201, answer

        async with asyncio.TaskGroup() as group:
            for obj in objects:
                group.create_task(one(obj))

    async def create_pods(self, pods: Iterable[Json]) -> None:
        await self.create("/api/v1/namespaces/{namespace}/pods", pods)

    async def every(self, path: str) -> list[Json]:
        status, answer = await self.client.ask("GET", path)
        assert status == 200, answer
        items: list[Json] = answer["items"]
        return items

    async def until(self, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """Wait until something holds of all pods, and return them."""
        pods: list[Json] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    pods = await self.every(PODS)
                    if holds(pods):
                        return pods
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            waiting = [p["metadata"]["name"] for p in pods if not p["spec"].get("nodeName")]
            raise AssertionError(f"{len(waiting)} of {len(pods)} wait: {waiting[:10]}") from None

    async def clear(self) -> None:
        """Nothing of a test is left for the next one."""
        now = {"gracePeriodSeconds": 0}
        for namespace in {pod["metadata"]["namespace"] for pod in await self.every(PODS)}:
            await self.client.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods", now)
        await self.client.ask("DELETE", "/api/v1/nodes", now)


class ControlPlane(RealServer, Plane):
    """A real one. `gates` and `versions` are values of --feature-gates and --runtime-config."""

    def __init__(self, binaries: Path, gates: str = "", versions: str = "") -> None:
        super().__init__(binaries)
        self.gates = gates
        self._more = [
            *([f"--feature-gates={gates}"] if gates else ()),
            *(f"--runtime-config={version}=true" for version in versions.split() if version),
        ]

    @classmethod
    def here(cls, gates: str = "", versions: str = "") -> Self:
        """One made of the binaries that KUBEBUILDER_ASSETS names, or a visible skip."""
        folder = assets()
        if folder is None:
            pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
        return cls(folder, gates, versions)

    def open_client(self) -> Client:
        context = client_context(authorities=(self.folder / "serving.crt").read_bytes())
        self.client = Client(self.url, TOKEN, context)
        return self.client

    async def interrupted(self, meanwhile: Callable[[Path], object]) -> None:
        """Kill both, do something to the store's folder, and start both."""
        etcd, api_server = self._processes[:2]
        for process in (api_server, etcd):
            os.kill(process.pid, signal.SIGKILL)
            await process.stop()
        meanwhile(self.folder / "etcd")
        await etcd.start()
        await api_server.start()
        await self._until_ready(self.url, str(self.folder / "serving.crt"), api_server)

    async def _spawn(self, name: str, *arguments: str) -> Process:
        more = self._more if name == "kube-apiserver" else ()
        return await super()._spawn(name, *arguments, *more)


class EmbeddedPlane(Plane):
    """The embedded server, without kubelets."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.folder = folder
        self.kubeconfig = str(folder / "kubeconfig")
        Path(self.kubeconfig).write_text(server.kubeconfig(), encoding="utf-8")
        self.client = Client(server.url)
        self.server = server

    async def kill_and_restart(self, away_s: float) -> None:
        await self.server.stop()
        await asyncio.sleep(away_s)
        await self.server.start(port=int(self.server.url.rpartition(":")[2]))


@asynccontextmanager
async def a_plane(
    kind: str, *, gates: str = "", versions: str = "", controllers: bool = False
) -> AsyncIterator[Plane]:
    """A server of a kind of SERVERS that serves these group versions besides, with its client.
    `controllers`: the embedded server's create pods for Deployments and Jobs.
    """
    if kind == "real":
        async with ControlPlane.here(gates, versions) as real, real.open_client():
            yield real
        return
    options = Options(alpha=frozenset(versions.split()))
    server = ApiServer(options=options, controllers=controllers)
    await server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            plane = EmbeddedPlane(Path(folder), server)
            async with plane.client:
                yield plane
    finally:
        await server.stop()


def all_settled(pods: list[Json]) -> bool:
    """Every pod has a node, or was told why not."""
    return all(pod["spec"].get("nodeName") or refusal(pod) for pod in pods)


def all_placed(pods: list[Json]) -> bool:
    return all(pod["spec"].get("nodeName") for pod in pods)


def refusal(pod: Json) -> str:
    """Why a pod has no node, in the scheduler's words; empty if nobody said so."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
