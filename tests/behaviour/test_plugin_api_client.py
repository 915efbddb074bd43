"""A user's plugin asks the API server for each pod over one connection; without it none is made."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S

PODS = 4
PLUGIN = """
from kubernetes_asyncio.client import CoreV1Api

class Freezes:
    rbac_rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]

    def __init__(self, api):
        self.api = api

    async def permit(self, pod, node):
        async with self.api() as client:
            found = await CoreV1Api(client).list_namespaced_config_map("default")
        return "frozen" if found.items else None
"""
CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
profiles:
- schedulerName: {SCHEDULER}
  plugins: {{multiPoint: {{enabled: [{{name: Freezes}}]}}}}
"""


class Forwarder:
    """Before a server: notes which program opens each connection, by its User-Agent."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def before(self, port: int) -> AsyncIterator[int]:
        """Its own port."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            self.agents.append(re.findall(r"(?im)^user-agent: (.*?)\r?$", head.decode())[0])
            there, to = await asyncio.open_connection("127.0.0.1", port)
            to.write(head)
            await asyncio.gather(copy(reader, to), copy(there, writer))

        async def copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    to.write(data)
            to.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()


async def test_one_connection_serves_the_plugins_of_all_pods(tmp_path: Path) -> None:
    (tmp_path / "freezes.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    server, forwarder = ApiServer(), Forwarder()
    await server.start()
    try:
        port = int(server.url.rpartition(":")[2])
        async with forwarder.before(port) as outer:
            kubeconfig = server.kubeconfig().replace(f":{port}", f":{outer}")
            (tmp_path / "kubeconfig").write_text(kubeconfig, encoding="utf-8")
            server.create("nodes", a_node("n"))
            async with a_process(
                tmp_path,
                f"--config={tmp_path / 'config.yaml'}",
                f"--plugin={tmp_path / 'freezes.py'}",
                "--secure-port=0",
                environment={"KUBECONFIG": str(tmp_path / "kubeconfig")},
            ) as asched:
                for number in range(PODS):
                    server.create("pods", a_pod(f"p{number}"))
                    await is_bound(server, f"p{number}")
                asched.signal(signal.SIGTERM)
                assert await asched.ended() == 0
                assert "nclosed" not in asched.words
    finally:
        await server.stop()

    asked = [agent for agent in forwarder.agents if not agent.startswith("asched")]
    assert len(asked) == 1


async def test_a_scheduler_without_such_a_plugin_does_not_import_the_library(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(
        CONFIGURATION.replace("{name: Freezes}", ""), encoding="utf-8"
    )
    server = ApiServer()
    await server.start()
    try:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig(), encoding="utf-8")
        server.create("nodes", a_node("n"))
        async with a_process(
            tmp_path,
            f"--config={tmp_path / 'config.yaml'}",
            "--secure-port=0",
            environment={
                "KUBECONFIG": str(tmp_path / "kubeconfig"),
                "PYTHONPROFILEIMPORTTIME": "1",
            },
        ) as asched:
            server.create("pods", a_pod("p"))
            await is_bound(server, "p")
            asched.signal(signal.SIGTERM)
            assert await asched.ended() == 0
            assert "asched.kube.typed" in asched.words
            assert "kubernetes_asyncio" not in asched.words
    finally:
        await server.stop()


async def is_bound(server: ApiServer, name: str) -> None:
    async with asyncio.timeout(HANG_S):
        while True:
            pod = server.get("pods", "default", name)
            if pod is not None and pod["spec"].get("nodeName"):
                return
            await asyncio.sleep(0.02)
