"""Our program as a process, with nodes and pods for it."""

import asyncio
import os
import signal
import socket
import ssl
from contextlib import asynccontextmanager

import aiohttp

from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.versions import for_server
from asched.host.configuration.file import load_config
from asched.host.process import Plan, schedule
from asched.kube.session import ConnectionOptions
from asched.serve.options import (
    AccessOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    ServingPlan,
)
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: %s, resourceName: asched}
profiles: [{schedulerName: asched}]
"""


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def a_node(name):
    resources = {"cpu": "4", "memory": "4Gi", "pods": "50"}
    return {
        "metadata": {"name": name},
        "status": {"allocatable": resources, "capacity": resources},
    }


def a_pod(name, cpu="100m"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "asched", "containers": [container]},
    }


class Process:
    def __init__(self, server, session, port, task):
        self.server = server
        self.session = session
        self.port = port
        self.task = task

    async def ask(self, path, token="sesame", method="GET"):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers["Connection"] = "close"  # the next one has a TLS context of its own
        url = f"https://127.0.0.1:{self.port}{path}"
        try:
            async with self.session.request(method, url, headers=headers, ssl=tls) as answer:
                return answer.status, (await answer.read()).decode()
        except aiohttp.ClientConnectionError:
            return 0, ""

    async def until(self, path, wanted, token="sesame"):
        """Ask until the answer is as wanted; gives its text."""
        async with asyncio.timeout(HANG_S):
            while True:
                status, text = await self.ask(path, token)
                if wanted(status, text):
                    return text
                await asyncio.sleep(0.05)


@asynccontextmanager
async def a_process(
    tmp_path, *, elects=True, gates=DEFAULT_GATES, reviewed_by="kubeconfig", server=None
):
    server = server or ApiServer()
    await server.start(token="sesame")
    kubeconfig = str(tmp_path / "kubeconfig")
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    server.create("nodes", a_node("n1"))
    server.create("pods", a_pod("web"))
    server.create("pods", a_pod("big", "64"))
    port = free_port()
    reviewers = kubeconfig if reviewed_by == "kubeconfig" else ""
    plan = Plan(
        configuration=load_config(
            text=CONFIGURATION % str(elects).lower(), gates=gates
        ).configuration,
        connection=ConnectionOptions(kubeconfig=kubeconfig),
        kubernetes=for_server(server.ctx.options.minor),
        serving=ServingPlan(
            ServingOptions(bind_address="127.0.0.1", secure_port=port),
            AccessOptions(
                AuthenticationOptions(authentication_kubeconfig=reviewers),
                AuthorizationOptions(authorization_kubeconfig=reviewers),
            ),
            {"config": "x"},
        ),
    )
    task = asyncio.ensure_future(schedule(plan))
    async with aiohttp.ClientSession() as session:
        process = Process(server, session, port, task)
        try:
            await process.until("/readyz", lambda status, _: status == 200, token="")
            yield process
        finally:
            if not task.done():
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait((task,), timeout=HANG_S)
            await server.stop()
    assert task.exception() is None
