"""Answers that are read as they come."""

import asyncio
import gc
from collections import Counter

import pytest

from asched.kube.errors import ConnectionLost, DeadlineExceeded, TransportError
from asched.kube.transport import ERROR_BYTES_MAX
from tests.unit.kube.scripted import reply, status


@pytest.fixture
async def transport(session):
    return session.general


async def test_a_stream_is_read_as_it_comes(server, transport):
    go_on = asyncio.Event()

    async def slowly(_seen, wire):
        await wire.start_stream()
        await wire.chunk(b"one\n")
        await go_on.wait()
        await wire.chunk(b"two\n")
        await wire.end_stream()

    server.handler = slowly
    async with transport.stream("/w", timeout_s=5) as stream:
        pieces = []
        async for piece in stream.chunks():
            pieces.append(piece)
            go_on.set()
    assert (stream.status, pieces) == (200, [b"one\n", b"two\n"])


async def test_a_stream_that_breaks_says_so(server, transport):
    async def broken(_seen, wire):
        await wire.start_stream()
        await wire.chunk(b"one\n")
        wire.close()

    server.handler = broken
    pieces = []
    async with transport.stream("/w", timeout_s=5) as stream:
        chunks = stream.chunks()
        pieces.append(await anext(chunks))
        with pytest.raises(ConnectionLost):
            await anext(chunks)
    assert pieces == [b"one\n"]


async def test_a_stream_ends_at_its_deadline(server, transport):
    async def silent(_seen, wire):
        await wire.start_stream()
        await asyncio.Event().wait()

    server.handler = silent
    async with transport.stream("/w", timeout_s=0.05) as stream:
        with pytest.raises(DeadlineExceeded):
            await anext(stream.chunks())


async def test_a_refused_stream_tells_why(server, session, transport):
    async def refuse(_seen, _wire):
        return reply(429, status(429, "TooManyRequests", "m"), "Retry-After: 4")

    server.handler = refuse
    async with transport.stream("/w", timeout_s=5) as stream:
        assert (stream.status, stream.header("retry-after")) == (429, "4")
        assert b"TooManyRequests" in await stream.read_all()
    host = f"127.0.0.1:{server.port}"
    assert session.exchanges == [("GET", host, "429", None, None, None)]


async def test_an_error_without_end_is_read_to_its_bound(server, transport):
    async def endless(_seen, wire):
        await wire.send(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await wire.chunk(b"x" * 100_000)

    server.handler = endless
    async with transport.stream("/w", timeout_s=20) as stream:
        assert await stream.read_all() == b"x" * ERROR_BYTES_MAX


# --- what our own reader has to keep beside that --------------------------------------------------


async def test_a_stream_that_ended_leaves_its_connection_to_the_next(server, session):
    async def short(_seen, wire):
        await wire.start_stream()
        await wire.chunk(b"x")
        await wire.end_stream()

    server.handler = short
    for _ in range(3):
        async with session.general.stream("/w", timeout_s=5) as stream:
            assert [piece async for piece in stream.chunks()] == [b"x"]
    assert (await session.general.request("GET", "/")).body == b"x"
    assert server.connection_count == 1


async def test_bytes_behind_the_end_of_a_stream_spoil_its_connection(server, session):
    async def chatty(_seen, wire):
        await wire.send(reply(200, b"x") + b"HTTP/1.1 408 Too Slow\r\n\r\n")

    server.handler = chatty
    for _ in range(2):
        async with session.general.stream("/w", timeout_s=5) as stream:
            assert [piece async for piece in stream.chunks()] == [b"x"]
    assert server.connection_count == 2


def kept() -> Counter[str]:
    """What an answer is read by, of those that nothing was collected of."""
    names = {
        "ConnectionLost",
        "Connection",
        "LiveStream",
        "PieceReader",
        "ResponseReader",
        "HttpResponseParser",
    }
    return Counter(name for one in gc.get_objects() if (name := type(one).__name__) in names)


@pytest.mark.parametrize("end", ["never begins", "ends", "breaks", "lasts too long", "is left"])
async def test_a_stream_that_is_over_needs_no_collector_of_garbage(server, session, end):
    """Whoever was old by then would stay: nobody looks through what is old."""

    async def told(_seen, wire):
        if end == "never begins":
            wire.close()
            return
        await wire.start_stream()
        await wire.chunk(b"x")
        if end == "ends":
            await wire.end_stream()
        elif end == "breaks":
            wire.close()
        else:
            await asyncio.Event().wait()

    async def listen() -> None:
        async with session.general.stream("/w", timeout_s=0.05) as stream:
            async for piece in stream.chunks():
                assert piece == b"x"
                if end == "is left":
                    return

    server.handler = told
    counts = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            for _ in range(4):
                try:
                    await listen()
                except TransportError:
                    assert end in {"never begins", "breaks", "lasts too long"}
                await asyncio.sleep(0.01)  # the connection hears of its end
            counts.append(kept())
    finally:
        gc.enable()
    assert counts[2] - counts[0] == Counter()
