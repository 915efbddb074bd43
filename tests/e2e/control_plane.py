"""A real control plane for tests: etcd and kube-apiserver of KUBEBUILDER_ASSETS, and a client.

Bounds  CREATES_AT_ONCE requests in flight; PATIENCE_S for whatever a test waits for.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from asched.kube.certificates import client_context
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


class ControlPlane(RealServer):
    """`client` speaks as an administrator."""

    client: Client

    @classmethod
    def here(cls) -> "ControlPlane":
        """One made of the binaries that KUBEBUILDER_ASSETS names, or a visible skip."""
        folder = assets()
        if folder is None:
            pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
        return cls(folder)

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

    # --- objects ---------------------------------------------------------------------------------

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

    async def kubectl(self, *arguments: str) -> str:
        """What kubectl prints."""
        folder = assets()
        found = shutil.which("kubectl", path=f"{folder}:{os.environ['PATH']}")
        if found is None:
            pytest.skip("kubectl is not here")
        child = await asyncio.create_subprocess_exec(
            *(found, f"--kubeconfig={self.kubeconfig}", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await child.communicate()
        assert child.returncode == 0, printed
        return printed.decode()


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
