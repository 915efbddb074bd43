"""A node that runs asched: a kubelet's part, with a process in place of a container.

    async with a_kubelet(plane, folder, python):
        ...   # pods of the Deployment become ready, and end when they are deleted

Arguments, environment, mounted ConfigMaps, account, probes and grace are those of the pod. Not so:
image, resources, security context, other programs than asched.
"""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.e2e.control_plane import Plane
from tests.e2e.inside import a_node
from tests.e2e.outside import Asched, a_process

Json = dict[str, Any]

NODE: Final = "node"
ON_NODE: Final = f"/api/v1/pods?fieldSelector=spec.nodeName={NODE}"
POLL_S: Final = 0.1
MERGE: Final = "application/merge-patch+json"
#: A container's host name is the pod's name.
AS_CONTAINER: Final = """
import socket, sys
name = sys.argv.pop(1)
socket.gethostname = lambda: name
from asched.cli.main import main
sys.exit(main())
"""


def own_address() -> str:
    """An address of this machine that is no loopback: API servers proxy to no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address


@asynccontextmanager
async def a_kubelet(plane: Plane, folder: Path, python: Path) -> AsyncIterator[None]:
    """`python` has asched installed."""
    node = a_node(NODE)
    node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    await plane.create("/api/v1/nodes", [node])
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(Kubelet(plane, folder, python).run())
        yield
        running.cancel()


class Kubelet:
    """Runs the pods of asched that are bound to its node."""

    def __init__(self, plane: Plane, folder: Path, python: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._python = python
        self._starts = asyncio.Lock()
        # The first pod to start leads, and API servers reach it.
        self._addresses: asyncio.Queue[str] = asyncio.Queue()
        for address in (own_address(), "127.0.0.2"):
            self._addresses.put_nowait(address)

    async def run(self) -> None:
        started: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                for pod in await self._plane.every(ON_NODE):
                    is_ours = pod["spec"]["containers"][0]["name"] == "asched"
                    if is_ours and pod["metadata"]["uid"] not in started:
                        started.add(pod["metadata"]["uid"])
                        tasks.create_task(self._serve(pod))
                await asyncio.sleep(POLL_S)

    async def _serve(self, pod: Json) -> None:
        """Start a pod, and stop it when it is deleted."""
        metadata, spec = pod["metadata"], pod["spec"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        folder = self._folder / metadata["name"]
        folder.mkdir()
        async with AsyncExitStack() as stack:
            async with self._starts:
                address = await self._addresses.get()
                child = await stack.enter_async_context(await self._process(pod, folder, address))
                await self._report(path, address, is_ready=False)
                await until_ready(spec["containers"][0], address, child)
                await self._report(path, address, is_ready=True)
            while not await self._is_deleted(path):  # noqa: ASYNC110 - read from outside
                await asyncio.sleep(POLL_S)
            child.signal(signal.SIGTERM)
            await child.ended(within_s=spec["terminationGracePeriodSeconds"])
        self._addresses.put_nowait(address)
        await self._plane.client.ask("DELETE", path, {"gracePeriodSeconds": 0})

    async def _process(
        self, pod: Json, folder: Path, address: str
    ) -> AbstractAsyncContextManager[Asched]:
        (container,) = pod["spec"]["containers"]
        command, *words = await self._arguments(pod, container, folder)
        assert command == "run"
        return a_process(
            folder,
            *(*words, f"--bind-address={address}"),
            environment=await self._environment(pod, container, folder),
            program=(str(self._python), "-P", "-c", AS_CONTAINER, pod["metadata"]["name"]),
        )

    async def _is_deleted(self, path: str) -> bool:
        code, pod = await self._plane.client.get(path)
        return code != 200 or "deletionTimestamp" in pod["metadata"]

    async def _arguments(self, pod: Json, container: Json, folder: Path) -> list[str]:
        """The container's, with its mounts as folders of this machine."""
        words = container["args"]
        namespace = pod["metadata"]["namespace"]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            name = volumes[mount["name"]]["configMap"]["name"]
            path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
            code, files = await self._plane.client.get(path)
            assert code == 200, files
            target = folder / mount["name"]
            target.mkdir()
            for file, text in files["data"].items():
                (target / file).write_text(text, encoding="utf-8")
            words = [word.replace(mount["mountPath"], str(target)) for word in words]
        return list(words)

    async def _environment(self, pod: Json, container: Json, folder: Path) -> dict[str, str]:
        """The container's, and a kubeconfig with the token of the pod's account."""
        namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        code, answer = await self._plane.client.post(path, {"spec": {}})
        assert code == 201, answer
        write_kubeconfig(Path(self._plane.kubeconfig), answer["status"]["token"], folder)
        fields = {"status.hostIP": own_address()}
        values = {
            one["name"]: one["value"] if "value" in one
            else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in container.get("env", ())
        }  # fmt: skip
        return {**values, "KUBECONFIG": str(folder / "kubeconfig"), "PYTHONPATH": ""}

    async def _report(self, path: str, address: str, *, is_ready: bool) -> None:
        """Write the pod's status; nothing to do if the pod is gone meanwhile."""
        conditions = [
            {"type": "Ready", "status": str(is_ready)},
            {"type": "PodScheduled", "status": "True"},
        ]
        status = {"phase": "Running", "conditions": conditions, "podIP": address}
        status["podIPs"] = [{"ip": address}]
        await self._plane.client.ask("PATCH", f"{path}/status", {"status": status}, media=MERGE)


def write_kubeconfig(administrator: Path, token: str, folder: Path) -> None:
    document = json.loads(administrator.read_text(encoding="utf-8"))
    document["users"][0]["user"] = {"token": token}
    (folder / "kubeconfig").write_text(json.dumps(document), encoding="utf-8")


async def until_ready(container: Json, address: str, child: Asched) -> None:
    """Probe as the kubelet does: without credentials, whatever the certificate."""
    probe = container["readinessProbe"]["httpGet"]
    (port,) = (p["containerPort"] for p in container["ports"] if p["name"] == probe["port"])
    url = f"{probe['scheme'].lower()}://{address}:{port}{probe['path']}"
    async with aiohttp.ClientSession() as session:
        while True:
            assert child.is_there, child.words
            try:
                async with session.get(url, ssl=False) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(POLL_S)
