"""A process whose streams are opened again and again, whose pages are asked and which audits itself
keeps no descriptor, no task and no thread of it; nor does one that gives its lease away and begins
anew again and again, while every file it was given is rotated.
"""

import asyncio
import gc
import os
import signal
import threading
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml

from asched.host.configuration.file import load_config
from asched.host.process import Plan, schedule
from asched.kube import certificates, credentials, pace, watchdog
from asched.kube.session import ConnectionOptions
from asched.serve.options import (
    AccessOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    ServingPlan,
)
from asched.serve.telemetry.metrics import PAGE_AGE_S
from asched_lab.apiserver.auth import ADMIN
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S
from tests.unit.host.processes import (
    CONFIGURATION,
    Process,
    a_node,
    a_pod,
    a_process,
    free_port,
)

PAGES = ("/metrics", "/readyz", "/configz", "/debug/asched/view", "/debug/asched/audit", "/flagz")
ROUNDS = 8
#: Of this process: a stream that is just being opened, a thread of the default executor.
WOBBLE = 6


def open_things() -> Counter[str]:
    """Both sides of every connection are in this process."""
    gc.collect()
    found = Counter(task.get_name().partition("-")[0] for task in asyncio.all_tasks())
    return Counter(
        {
            "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
            "threads": threading.active_count(),
            "tasks": found.total(),
        }
    )


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here")
async def test_nothing_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # shorter ones would take more requests a second than a client may send
    monkeypatch.setattr(pace, "STREAM_S", 1.0)
    async with a_process(tmp_path) as process:

        async def live(rounds: int) -> int:
            for number in range(rounds):
                process.server.create("pods", a_pod(f"p{rounds}-{number}"))
                for path in PAGES:
                    status, _ = await process.ask(path)
                    assert status == 200, path
                status, _ = await process.ask("/debug/asched/audit", method="POST")
                assert status == 200
                await asyncio.sleep(0.1)
            await asyncio.sleep(PAGE_AGE_S + 0.1)
            _, page = await process.ask("/metrics")
            told = [line for line in page.splitlines() if line.startswith("asched_audit_compared")]
            return sum(float(line.rpartition(" ")[2]) > 0 for line in told)

        assert await live(6) > 3
        before = open_things()
        await live(ROUNDS)
        after = open_things()

    assert {name: n for name, n in (after - before).items() if n > WOBBLE} == {}


class Files:
    """What a process is given as files, and what it talks to; `rotate` writes all of them anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = ApiServer()
        self.round = 0

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def pair(self, name: str) -> tuple[str, str]:
        """Paths of a certificate and its key, both just made."""
        certificate, key = certificates.self_signed(tuple(certificates.LOOPBACK))
        (self.folder / f"{name}.crt").write_bytes(certificate)
        (self.folder / f"{name}.key").write_bytes(key)
        return self.path(f"{name}.crt"), self.path(f"{name}.key")

    async def begin(self) -> None:
        await self.server.start(tls=self.pair("server"), token="first")
        self.rotate()
        document = yaml.safe_load(self.server.kubeconfig())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        del cluster["certificate-authority-data"], user["token"]
        cluster["certificate-authority"] = self.path("authority.crt")
        user["tokenFile"] = self.path("token")
        user["client-certificate"], user["client-key"] = self.path("me.crt"), self.path("me.key")
        (self.folder / "kubeconfig").write_text(yaml.safe_dump(document))

    def rotate(self) -> None:
        self.round += 1
        (self.folder / "authority.crt").write_bytes(self.server.authority)
        self.pair("me")
        self.pair("pages")
        self.server.auth.tokens[f"token-{self.round}"] = ADMIN
        (self.folder / "token").write_text(f"token-{self.round}")
        self.server.auth.tokens.pop(f"token-{self.round - 2}", None)

    @property
    def holder(self) -> str:
        leases = self.server.list("leases.coordination.k8s.io", "kube-system")
        return next((lease["spec"].get("holderIdentity") or "" for lease in leases), "")


@asynccontextmanager
async def a_process_with(files: Files):
    """One that leads, and whose pages have certificates of their own."""
    port, kubeconfig = free_port(), files.path("kubeconfig")
    plan = Plan(
        configuration=load_config(text=CONFIGURATION % "true").configuration,
        connection=ConnectionOptions(kubeconfig=kubeconfig),
        serving=ServingPlan(
            ServingOptions(
                bind_address="127.0.0.1",
                secure_port=port,
                tls_cert_file=files.path("pages.crt"),
                tls_private_key_file=files.path("pages.key"),
            ),
            AccessOptions(
                AuthenticationOptions(authentication_kubeconfig=kubeconfig),
                AuthorizationOptions(authorization_kubeconfig=kubeconfig),
            ),
            {"config": "x"},
        ),
    )
    task = asyncio.ensure_future(schedule(plan))
    async with aiohttp.ClientSession() as session:
        try:
            yield Process(files.server, session, port, task)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait((task,), timeout=HANG_S)
            await files.server.stop()
    assert task.exception() is None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here")
async def test_leader_changes_and_rotated_files_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "TOKEN_CHECK_S", 0.0)
    monkeypatch.setattr(certificates, "FILES_CHECK_S", 0.0)
    monkeypatch.setattr(watchdog, "CHECK_S", 0.05)
    files = Files(tmp_path)
    await files.begin()
    files.server.create("nodes", a_node("n1"))
    async with a_process_with(files) as process:

        async def live(rounds: int) -> None:
            for _ in range(rounds):
                files.rotate()
                was = files.holder
                monkeypatch.setattr(watchdog, "HAND_OVER_S", 0.0)  # it hears nothing, and gives up
                async with asyncio.timeout(HANG_S):
                    while files.holder in (was, ""):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                monkeypatch.setattr(watchdog, "HAND_OVER_S", 40.0)
                name = f"p{files.round}"
                files.server.create("pods", a_pod(name, "1m"))
                async with asyncio.timeout(HANG_S):
                    while not bound(files.server, name):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                await process.until(
                    "/metrics", lambda status, _: status == 200, token=f"token-{files.round}"
                )

        await process.until("/readyz", lambda status, _: status == 200, token="")
        await live(3)
        before = open_things()
        await live(ROUNDS)
        after = open_things()

    assert {name: n for name, n in (after - before).items() if n > WOBBLE} == {}


def bound(server: ApiServer, name: str) -> bool:
    pods = server.list("pods", "default")
    return any(p["metadata"]["name"] == name and p["spec"].get("nodeName") for p in pods)
