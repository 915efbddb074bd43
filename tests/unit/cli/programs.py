"""The command line against a scheduler's port, a kubeconfig and an API server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp

from asched.cli.commands import main
from asched.cli.forwarder import Forwarder
from asched.cli.pages import PageError
from asched.kube.transport import Reply
from tests.unit.kube.scripted import Seen, Wire, reply, status

TOLD = {
    "pod": "default/web",
    "place": "unschedulable",
    "node": "",
    "attempts": 3,
    "rejectedBy": ["NodeResourcesFit", "TaintToleration"],
    "gatedBy": "",
    "schedulerName": "asched",
    "priority": 7,
    "story": [
        {"at": 1.0, "attempt": 4, "what": "node chosen", "details": ["n1", 300, 2]},
        {
            "at": 2.5,
            "attempt": 9,
            "what": "no node",
            "reasons": [
                {"plugin": "TaintToleration", "code": "x", "reason": "tainted", "nodes": 3},
                {"plugin": "NodeResourcesFit", "code": "x", "reason": "no cpu", "nodes": 17},
            ],
        },
    ],
    "now": {
        "nodes": 20,
        "lookedAt": 20,
        "feasible": 0,
        "funnel": [
            {"plugin": "TaintToleration", "refuses": 3, "left": 17, "of": 20},
            {"plugin": "NodeName", "refuses": 0, "left": 17, "of": 17},
            {"plugin": "NodeResourcesFit", "refuses": 19, "left": 0, "of": 17},
        ],
        "nearestMisses": [
            {"node": "n7", "objections": [{"plugin": "NodeResourcesFit", "reason": "no cpu"}]}
        ],
    },
}


async def asched(*words):
    """Exit status, standard output, standard error of a command, which runs in a thread."""
    return await asyncio.to_thread(_command, words)


def _command(words):
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    handlers = patch("asched.cli.commands.signal.signal")  # for the main thread only
    with handlers, redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(list(words))
        except SystemExit as ended:
            status = ended.code
    return status, *(stream.buffer.getvalue().decode() for stream in (out, err))


async def asched_process(*words):
    """The same with a process of its own, for a command that has handlers of signals."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "asched", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


LEASE = "/apis/coordination.k8s.io/v1/namespaces/asched-system/leases/asched"
POD = "/api/v1/namespaces/asched-system/pods/asched-7f-x"
TOKEN = "/api/v1/namespaces/asched-system/serviceaccounts/asched-explain/token"
PAGE = f"{POD.replace('asched-7f-x', 'https:asched-7f-x:10260')}/proxy/debug/asched/pods/team/web"


def a_leader(name: str = "asched-7f-x") -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": 1}, {"name": "https", "containerPort": 10260}]
    return {
        "metadata": {"name": name, "namespace": "asched-system"},
        "spec": {"containers": [{"name": "asched", "ports": ports}]},
        "status": {"phase": "Running"},
    }


class World:
    """A cluster's answers by path; a test changes some."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {
            LEASE: (200, {"spec": {"holderIdentity": "asched-7f-x_0b1c"}}),
            POD: (200, a_leader()),
            TOKEN: (201, {"status": {"token": "short-lived"}}),
            PAGE: (200, TOLD),
        }

    async def answer(self, seen: Seen, _wire: Wire) -> bytes:
        nothing = (404, status(404, "NotFound", f"{seen.path} not found"))
        return reply(*self.answers.get(seen.path, nothing))


def a_kubeconfig(folder: Path, url: str, *, namespace: str = "team") -> str:
    context = {"cluster": "c", "user": "u", "namespace": namespace}
    other = {"cluster": "c", "user": "u"}
    document = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "alice"}}],
        "contexts": [{"name": "here", "context": context}, {"name": "bare", "context": other}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document))
    return f"--kubeconfig={file}"


class Told:
    """A source that answers everything, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = 0
        self.namespace = "default"

    async def page(self, path: str) -> Reply:
        self.asked.append(path)
        if self.fails:
            self.fails -= 1
            raise PageError("nobody is there")
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nSet-Cookie: a=b\r\nX-Frame-Options: DENY"
        )
        return Reply(200, b"page", head)

    async def close(self) -> None: ...


@asynccontextmanager
async def a_forwarder() -> AsyncIterator[tuple[Told, str, aiohttp.ClientSession]]:
    source = Told()
    forwarder = Forwarder(source)
    url = await forwarder.start(0)
    try:
        async with aiohttp.ClientSession() as session:
            yield source, url.removesuffix("ui/"), session
    finally:
        await forwarder.close()
