"""A configuration file mounted as a ConfigMap is."""

import asyncio
from pathlib import Path
from typing import Any

from asched_lab.apiserver.server import ApiServer
from tests.builders import a_pod
from tests.support import HANG_S

RULE = """
class Picky:
    def filter(self, pod, node):
        return None if node.name == "NODE" else "node(s) were not picked"
"""


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, leaseDuration: LEASE}
clientConnection: {kubeconfig: KUBECONFIG}
profiles:
  - schedulerName: asched
    plugins: {multiPoint: {enabled: [{name: Picky}]}}
"""


class Mount:
    """The folder of a ConfigMap, and what the process says of it."""

    def __init__(self, folder: Path, server: ApiServer) -> None:
        self.config = folder / "config.yaml"
        self.plugins = folder / "plugins"
        self.log = folder / "log"
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(server.kubeconfig())
        self.plugins.mkdir()

    def write(self, node: str, lease: str = "15s") -> None:
        (self.plugins / "picky.py").write_text(RULE.replace("NODE", node))
        text = CONFIG.replace("LEASE", lease).replace("KUBECONFIG", str(self._kubeconfig))
        self.config.write_text(text)

    async def says(self, text: str) -> None:
        async with asyncio.timeout(HANG_S):
            while text not in await asyncio.to_thread(self.log.read_text):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def placed(server: ApiServer, name: str) -> str:
    made: dict[str, Any] = a_pod(name).spec(schedulerName="asched").json
    del made["metadata"]["uid"]
    server.create("pods", made)
    async with asyncio.timeout(HANG_S):
        while True:
            pod = server.get("pods", "default", name)
            if pod is not None and pod["spec"].get("nodeName"):
                return str(pod["spec"]["nodeName"])
            await asyncio.sleep(0.05)
