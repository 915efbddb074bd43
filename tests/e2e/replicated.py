"""Two replicas of asched as processes, each behind a proxy that can hold bindings back, on the
embedded API server or on a real one.

    async with served("embedded", folder) as kubeconfig, objects(kubeconfig) as cluster:
        async with Replicas("asched", kubeconfig, folder, SHORT, flags=FLAGS) as replicas:
            ...
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from asched.kube.session import ConnectionOptions, Session, connect
from asched_lab.apiserver.server import ApiServer
from asched_lab.measure.replicas import LeaseOptions, Replicas
from tests.support import HANG_S, real_api_server

Json = dict[str, Any]
T = TypeVar("T")

SHORT: Final = LeaseOptions(4, 3, 0.5)
PODS: Final = "/api/v1/namespaces/default/pods"
NODES: Final = "/api/v1/nodes"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CLIENTS: Final = 16
POLL_S: Final = 0.1


@asynccontextmanager
async def served(kind: str, folder: Path) -> AsyncIterator[str]:
    """The path of a kubeconfig for a server that lives as long as the block."""
    if kind == "real":
        with real_api_server() as path:
            yield path
        return
    server = ApiServer()
    await server.start()
    try:
        (folder / "kubeconfig").write_text(server.kubeconfig())
        yield str(folder / "kubeconfig")
    finally:
        await server.stop()


class Objects:
    """A client of the server itself, not of a proxy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pool = session.pool(CLIENTS)

    async def create(self, path: str, objects: Iterable[Json]) -> None:
        """Create objects, many at a time."""
        queue = list(objects)

        async def some() -> None:
            while queue:
                reply = await self._pool.request("POST", path, json.dumps(queue.pop(0)).encode())
                assert reply.status == 201, reply

        await asyncio.gather(*(some() for _ in range(CLIENTS)))

    async def items(self, path: str) -> list[Json]:
        found: list[Json] = (await self._session.get_as(path, dict, timeout_s=30.0))["items"]
        return found

    async def placed(self, path: str = PODS) -> dict[str, str]:
        """Pod name -> node."""
        pods = await self.items(path)
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}
        return {name: node for name, node in nodes.items() if node}

    async def holder(self) -> str:
        """The holder of asched's lease, "" if none."""
        held = {lease["metadata"]["name"]: lease["spec"] for lease in await self.items(LEASES)}
        return str(held.get("asched", {}).get("holderIdentity") or "")


@asynccontextmanager
async def objects(kubeconfig: str) -> AsyncIterator[Objects]:
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    try:
        yield Objects(session)
    finally:
        await session.close()


async def until(replicas: Replicas, found: Callable[[], Awaitable[T]]) -> T:
    """Ask until the answer is true; replicas that end meanwhile are started again."""
    until_s = time.monotonic() + HANG_S
    while not (answer := await found()):
        assert time.monotonic() < until_s, "it never became true"
        await replicas.tend()
        await asyncio.sleep(POLL_S)
    return answer


def a_node(name: str, cpu: str = "64", pods: str = "60") -> Json:
    resources = {"cpu": cpu, "memory": "64Gi", "pods": pods}
    return {"metadata": {"name": name}, "status": {"allocatable": resources, "capacity": resources}}
