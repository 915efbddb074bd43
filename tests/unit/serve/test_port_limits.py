"""Clients without credentials at the serving port of a running process: what they send costs
bounded memory and a bounded number of requests, and a probe is answered beside them.
"""

import asyncio
import errno
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from asched.serve.connections import ConnectionServer, Limits, listen
from asched.serve.options import ServingOptions
from asched.serve.pages import Page, text
from asched.serve.request import HttpRequest
from asched.serve.tls import Certificates
from asched.serve.turns import FairSelector
from asched_lab.apiserver.server import ApiServer
from tests.e2e.outside import Asched, a_process
from tests.support import HANG_S

PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"\r\n\r\nok"
MIB = 1 << 20
PEERS = ("127.0.0.11", "127.0.0.12")
#: Without a bound, 20 heads would take 320 MiB.
CONNECTIONS_OF_A_PEER = 10
#: A request line, then headers without the empty line that ends them; 16 MiB.
ENDLESS_HEAD = b"GET / HTTP/1.1\r\n" + b"".join(
    b"X-%d: %s\r\n" % (number, b"a" * 65_000) for number in range(250)
)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Asched, int]]:
    """A scheduler with an empty cluster, and its port."""
    tmp_path = tmp_path_factory.mktemp("process")
    server = ApiServer()
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", f"--secure-port={port}")
    try:
        async with a_process(tmp_path, *flags, "--bind-address=127.0.0.1") as child:
            await child.says("Serving securely")
            yield child, port
    finally:
        await server.stop()


@asynccontextmanager
async def connected(
    port: int, of: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=(of, 0))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def everything_said(reader: asyncio.StreamReader) -> bytes:
    """All that is answered until the server ends the connection."""
    said = b""
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            said += piece
    return said


async def probe(port: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(PROBE)
        assert (await reader.readuntil(OK)).startswith(b"HTTP/1.1 200")


def peak_bytes(child: Asched) -> int:
    status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nX: " + b"a" * 9_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: %s\r\n" % (b"a" * 8_000) * 9,
    ],
    ids=["a header of 9 kB", "a request line of 9 kB", "72 kB without an end"],
)
async def test_a_head_has_bounds(process: tuple[Asched, int], head: bytes) -> None:
    _, port = process
    async with asyncio.timeout(HANG_S), connected(port) as (reader, writer):
        writer.write(head)
        assert (await everything_said(reader)).startswith(b"HTTP/1.1 431")
        await probe(port)


async def test_one_read_is_one_request(process: tuple[Asched, int]) -> None:
    """Further requests of the same piece end the connection; those that follow an answer do not."""
    _, port = process
    async with asyncio.timeout(HANG_S):
        async with connected(port) as (reader, writer):
            writer.write(PROBE * 1_000)
            said = await everything_said(reader)
            assert said.count(b"HTTP/1.1") == 1
            assert b"Connection: close" in said
        async with connected(port) as (reader, writer):
            for _ in range(5):
                writer.write(PROBE)
                assert b"Connection: close" not in await reader.readuntil(OK)


async def test_heads_without_end_of_two_peers_stay_in_memory_bounds(
    process: tuple[Asched, int],
) -> None:
    """Each connection sends until it is ended; a probe is answered meanwhile."""
    child, port = process

    async def attack(peer: str) -> None:
        with suppress(OSError, EOFError):
            async with connected(port, of=peer) as (reader, writer):
                for start in range(0, len(ENDLESS_HEAD), 65_000):
                    writer.write(ENDLESS_HEAD[start : start + 65_000])
                    await writer.drain()
                await reader.read()

    async with asyncio.timeout(HANG_S):
        attacks = [
            asyncio.create_task(attack(peer))
            for peer in PEERS
            for _ in range(CONNECTIONS_OF_A_PEER)
        ]
        await probe(port)
        await asyncio.wait(attacks)
        await probe(port)
    assert peak_bytes(child) < 250 * MIB


@pytest.mark.parametrize("words", [b"", b"hello", ENDLESS_HEAD[:70_000], PROBE])
async def test_an_ended_connection_needs_no_garbage_collection(
    words: bytes, tmp_path: Path
) -> None:
    """The scheduling process collects nothing that has lived for long: memory of connections
    that refer to themselves would stay.
    """

    async def hello(_: HttpRequest) -> Page:
        return text("hello")

    def visit(port: int) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port)) as plain,
            tls.wrap_socket(plain) as secure,
        ):
            secure.sendall(words)
            secure.recv(1)

    options = ServingOptions(cert_dir=str(tmp_path))
    limits = Limits(head_s=0.2, idle_s=0.2)
    server = ConnectionServer(hello, Certificates(options).context, limits)
    port = server.open(await listen("127.0.0.1", 0, cure="x"))
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            await asyncio.to_thread(visit, port)
        await server.close()
        gc.collect()
        left = [type(kept).__name__ for kept in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert "SSLObject" not in left
    assert "MemoryBIO" not in left


async def test_the_address_that_was_served_least_recently_is_next() -> None:
    with FairSelector() as turns:
        pairs = [socket.socketpair() for _ in range(4)]
        addresses = ["many", "many", "many", "one"]
        for address in set(addresses):
            turns.answered(address, is_probe=False)
        for (ours, _), address in zip(pairs, addresses, strict=True):
            turns.join(ours.fileno(), address)
            turns.register(ours, 1, address)
        other = socket.socketpair()
        turns.register(other[0], 1, "other")

        def served() -> list[str]:
            return sorted(key.data for key, _ in turns.select(HANG_S))

        for _, theirs in pairs[:3]:
            theirs.send(b"x")
        assert served() == served() == ["many"]
        pairs[3][1].send(b"x")
        other[1].send(b"x")
        assert served() == ["one", "other"]
        assert served() == ["many", "other"]
        for ours, theirs in (*pairs, other):
            ours.close()
            theirs.close()


class TroubledSocket(socket.socket):
    """Accepts nothing at first, as where descriptors are lacking."""

    troubles: list[OSError]

    def accept(self) -> tuple[socket.socket, object]:
        if self.troubles:
            raise self.troubles.pop(0)
        return super().accept()


async def test_a_connection_that_cannot_be_accepted_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hello(_: HttpRequest) -> Page:
        return text("hello")

    (listening,) = await listen("127.0.0.1", 0, cure="x")
    troubled = TroubledSocket(fileno=listening.detach())
    troubled.setblocking(False)
    troubled.troubles = [ConnectionAbortedError(), OSError(errno.EMFILE, "too many open files")]
    door = ConnectionServer(hello, None)
    port = door.open([troubled])
    async with asyncio.timeout(HANG_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PROBE)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        warned = [record.getMessage() for record in caplog.records]
        assert warned == ["No connection can be accepted"]
        await door.close()
        await everything_said(reader)
        writer.close()
    with pytest.raises(OSError, match=r"refused|Connect"):
        await asyncio.open_connection("127.0.0.1", port)
