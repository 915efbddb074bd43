"""Streams, which only aiohttp reads."""

import asyncio
import socket
from pathlib import Path

import pytest

from asched.edge.client.aio import ERROR_BYTES_MAX, set_keepalive
from asched.edge.client.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from asched.edge.client.session import ConnectionOptions, connect
from asched.edge.client.transport import KEEPALIVE_IDLE_S
from tests.edge.client.conftest import session_with
from tests.edge.client.scripted import reply, scripted, status
from tests.edge.client.test_credentials import kubeconfig


async def test_a_stream_is_read_as_it_comes(server, session):
    go_on = asyncio.Event()

    async def slowly(_seen, wire):
        await wire.start_stream()
        await wire.chunk(b"one\n")
        await go_on.wait()
        await wire.chunk(b"two\n")
        await wire.end_stream()

    server.handler = slowly
    async with session.general.stream("/w", timeout_s=5) as stream:
        pieces = []
        async for piece in stream.chunks():
            pieces.append(piece)
            go_on.set()
    assert (stream.status, pieces) == (200, [b"one\n", b"two\n"])


async def test_a_stream_that_breaks_says_so(server, session):
    async def broken(_seen, wire):
        await wire.start_stream()
        await wire.chunk(b"one\n")
        wire.close()

    server.handler = broken
    pieces = []
    async with session.general.stream("/w", timeout_s=5) as stream:
        chunks = stream.chunks()
        pieces.append(await anext(chunks))
        with pytest.raises(ConnectionLost):
            await anext(chunks)
    assert pieces == [b"one\n"]


async def test_a_stream_ends_at_its_deadline(server, session):
    async def silent(_seen, wire):
        await wire.start_stream()
        await asyncio.Event().wait()

    server.handler = silent
    async with session.general.stream("/w", timeout_s=0.05) as stream:
        with pytest.raises(DeadlineExceeded):
            await anext(stream.chunks())


async def test_a_refused_stream_tells_why(server, session):
    async def refuse(_seen, _wire):
        return reply(429, status(429, "TooManyRequests", "m"), "Retry-After: 4")

    server.handler = refuse
    async with session.general.stream("/w", timeout_s=5) as stream:
        assert (stream.status, stream.header("retry-after")) == (429, "4")
        assert b"TooManyRequests" in await stream.read_all()
    host = f"127.0.0.1:{server.port}"
    assert session.exchanges == [("GET", host, "429", None, None, None)]


async def test_a_stream_from_nowhere_has_sent_nothing(unused_tcp_port):
    class Nobody:
        url = f"http://127.0.0.1:{unused_tcp_port}"

    async with session_with(Nobody) as session:
        with pytest.raises(ConnectFailed):
            async with session.general.stream("/w", timeout_s=5):
                pytest.fail("there is no server")


def test_silent_connections_are_probed():
    with socket.socket() as made:
        set_keepalive(made)
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle_s = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        assert idle_s == KEEPALIVE_IDLE_S


async def test_an_error_without_end_is_read_to_its_bound(server, session):
    async def endless(_seen, wire):
        await wire.send(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await wire.chunk(b"x" * 100_000)

    server.handler = endless
    async with session.general.stream("/w", timeout_s=20) as stream:
        assert await stream.read_all() == b"x" * ERROR_BYTES_MAX


def open_sockets():
    files = Path("/proc/self/fd").iterdir()
    return sum(file.is_socket() for file in files)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts sockets as Linux shows them")
async def test_a_stream_that_is_left_waits_for_no_farewell_of_a_silent_server(
    certificates, tmp_path
):
    left = asyncio.Event()

    async def silent(_seen, wire):
        await wire.start_stream()
        wire._writer.transport.pause_reading()  # it will not see that we go
        left.set()
        await asyncio.Event().wait()

    async with scripted(silent, certificates.server_context()) as server:
        cluster = {"certificate-authority": str(certificates.ca_file)}
        path = kubeconfig(tmp_path / "config", server.url, cluster=cluster)
        session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
        before = open_sockets()
        async with session.general.stream("/w", timeout_s=20):
            await left.wait()
            assert open_sockets() == before + 2  # both ends are here
        for _ in range(3):
            await asyncio.sleep(0)
        assert open_sockets() <= before + 1
        await session.close()


async def test_after_a_deadline_no_idle_connection_is_trusted():
    """A box on the way that swallows one connection swallows the others, too."""

    async def handle(seen, wire):
        if seen.path == "/mute":
            await wire.start_stream()
            await asyncio.Event().wait()
        return reply(200, {})

    async with scripted(handle) as server, session_with(server) as session:
        await session.general.request("GET", "/idle")
        async with session.general.stream("/mute", timeout_s=0.1) as stream:
            await session.general.request("GET", "/idle")
            with pytest.raises(DeadlineExceeded):
                [chunk async for chunk in stream.chunks()]
        before = {seen.connection for seen in server.seen}
        await session.general.request("GET", "/fresh")
        assert server.seen[-1].connection not in before
