"""SIGTERM while `asched run` starts: it ends, whichever answer of the API server it was reading,
and has not become the leader.

A proxy sees each request. Before an answer is passed on, the process is stopped; it then finds the
answer and the signal at once, and runs the signal's handler in whatever reads the answer.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from asched_lab.apiserver.server import ApiServer
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import Asched, a_process

#: It ends in some milliseconds; the rest is for a busy machine.
END_S = 10.0
METHODS = (b"GET ", b"POST ", b"PUT ", b"PATCH ")
STATUS_AT_ONCE = 128 + signal.SIGTERM


class Proxy:
    """Passes everything on until request number `at`, counted from 1."""

    def __init__(self, url: str, at: int, *, is_answered: bool) -> None:
        self._host, self._port = urlsplit(url).hostname or "", urlsplit(url).port or 0
        self._at = at
        self._is_answered = is_answered
        self._count = 0
        self._answer_for: asyncio.StreamWriter | None = None
        self.process: asyncio.Future[Asched] = asyncio.get_running_loop().create_future()
        self.signalled = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_connection(self._host, self._port)
        answers = asyncio.ensure_future(self._pass(above, writer))
        try:
            with suppress(OSError):
                while piece := await reader.read(1 << 16):
                    self._count += piece.startswith(METHODS)
                    if self._count == self._at and not self.signalled.is_set():
                        if not self._is_answered:
                            await self._signal()
                            continue
                        self._answer_for = writer
                    below.write(piece)
        finally:
            answers.cancel()
            below.close()
            writer.close()

    async def _pass(self, above: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await above.read(1 << 16):
                if self._answer_for is not writer:
                    writer.write(piece)
                    continue
                self._answer_for = None
                process = await self.process
                process.signal(signal.SIGSTOP)
                await asyncio.to_thread(until_stopped, process.pid)
                writer.write(piece)
                await writer.drain()
                await self._signal()

    async def _signal(self) -> None:
        process = await self.process
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGCONT)
        self.signalled.set()


def until_stopped(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


@asynccontextmanager
async def a_start(
    folder: Path, at: int, *, is_answered: bool
) -> AsyncIterator[tuple[ApiServer, Asched, Proxy]]:
    """A process that gets its signal at request number `at`."""
    server = ApiServer()
    await server.start()
    server.create("nodes", a_node("node"))
    server.create("pods", a_pod("pod"))
    proxy = Proxy(server.url, at, is_answered=is_answered)
    between = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = between.sockets[0].getsockname()[1]
    kubeconfig = folder / "kubeconfig"
    text = server.kubeconfig().replace(server.url, f"http://127.0.0.1:{port}")
    kubeconfig.write_text(text, encoding="utf-8")
    flags = (f"--kubeconfig={kubeconfig}", "--secure-port=0", f"--scheduler-name={SCHEDULER}")
    try:
        async with a_process(folder, *flags) as process:
            proxy.process.set_result(process)
            yield server, process, proxy
    finally:
        between.close()
        await server.stop()


@pytest.mark.parametrize("is_answered", [True, False], ids=["with an answer", "without an answer"])
@pytest.mark.parametrize("at", range(1, 13))
async def test_it_ends_at_every_read(at: int, is_answered: bool, tmp_path: Path) -> None:
    async with a_start(tmp_path, at, is_answered=is_answered) as (server, process, proxy):
        await asyncio.wait_for(proxy.signalled.wait(), 3 * END_S)
        status = await process.ended(END_S)
        assert status == (STATUS_AT_ONCE if at == 1 else 0), process.words
        assert "Traceback" not in process.words
        holders = [lease["spec"].get("holderIdentity") for lease in server.list("leases")]
        assert not any(holders)
        assert not any(pod["spec"].get("nodeName") for pod in server.list("pods"))
