"""What a transport promises, for everything rare and of one lane."""

import asyncio

import pytest

from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, ProtocolBroken
from asched.kube.transport import Reply
from tests.unit.kube.conftest import session_with
from tests.unit.kube.scripted import reply


def of_session(session, name):
    return session.general if name == "general" else session.pool(4)


@pytest.fixture(params=["general", "pool"])
async def transport(request, session):
    return of_session(session, request.param)


async def test_a_request_carries_method_path_query_body_and_headers(transport, server, session):
    answer = await transport.request("POST", "/api/v1/x?limit=5", b'{"a":1}', content_type="t/x")
    assert (answer.status, answer.body) == (200, b'{"ok": true}')
    (seen,) = server.seen
    assert (seen.method, seen.target, seen.body) == ("POST", "/api/v1/x?limit=5", b'{"a":1}')
    assert seen.headers["content-type"] == "t/x"
    assert seen.headers["user-agent"] == "asched"
    assert seen.headers["accept"] == "application/json"
    assert seen.headers["host"] == f"127.0.0.1:{server.port}"
    assert "accept-encoding" not in seen.headers
    assert "authorization" not in seen.headers
    assert session.observed == [("POST", f"127.0.0.1:{server.port}", "200")]
    (exchange,) = session.exchanges
    assert (exchange.sent, exchange.received) == (len(b'{"a":1}'), len(b'{"ok": true}'))
    assert exchange.duration_s > 0


async def test_a_chunked_answer_is_put_together(transport, server):
    async def chunks(_seen, wire):
        await wire.start_stream()
        for piece in (b"abc", b"d" * 100_000, b"\r\n0\r\n\r\n"):
            await wire.chunk(piece)
        await wire.end_stream()

    server.handler = chunks
    for _ in range(2):
        answer = await transport.request("GET", "/")
        assert answer.body == b"abc" + b"d" * 100_000 + b"\r\n0\r\n\r\n"
    assert server.connection_count == 1


async def test_an_answer_may_end_with_the_connection(transport, server):
    async def closing(_seen, wire):
        await wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        wire.close()

    server.handler = closing
    assert (await transport.request("GET", "/")).body == b"all of it"


async def test_continue_is_no_answer(transport, server):
    async def informal(_seen, _wire):
        return b"HTTP/1.1 100 Continue\r\n\r\n" + reply(201, b"done")

    server.handler = informal
    answer = await transport.request("POST", "/", b"{}")
    assert (answer.status, answer.body) == (201, b"done")


async def test_connection_close_is_obeyed(transport, server):
    async def last(_seen, _wire):
        return reply(200, b"x", "Connection: close")

    server.handler = last
    for _ in range(3):
        assert (await transport.request("GET", "/")).status == 200
    assert server.connection_count == 3


@pytest.mark.parametrize(
    "before", [b"", b"HTTP/1.1 201 Cre", b"HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\nab"]
)
async def test_a_reset_after_the_request_was_sent_may_mean_anything(transport, server, before):
    async def reset(_seen, wire):
        if before:
            await wire.send(before)
        wire.reset()

    server.handler = reset
    with pytest.raises((ConnectionLost, ProtocolBroken)) as caught:
        await transport.request("POST", "/", b"{}")
    assert caught.value.sent
    assert len(server.seen) == 1


async def test_a_refused_connection_has_sent_nothing(unused_tcp_port):
    class Nobody:
        url = f"http://127.0.0.1:{unused_tcp_port}"

    async with session_with(Nobody) as session:
        for transport in (session.general, session.pool(1)):
            with pytest.raises(ConnectFailed, match="connection refused") as caught:
                await transport.request("POST", "/", b"{}")
            assert not caught.value.sent
        assert [code for _, _, code in session.observed] == ["<error>"] * 2
        assert [(one.sent, one.received) for one in session.exchanges] == [(2, None)] * 2


async def test_an_unknown_host_has_sent_nothing():
    class Nobody:
        url = "http://no-such-host.invalid:1"

    async with session_with(Nobody) as session:
        for transport in (session.general, session.pool(1)):
            with pytest.raises(ConnectFailed, match=r"cannot reach http://no-such-host\.invalid:1"):
                await transport.request("GET", "/")


async def test_a_silent_server_meets_the_deadline(transport, server):
    async def silent(_seen, _wire):
        await asyncio.Event().wait()

    server.handler = silent
    with pytest.raises(DeadlineExceeded) as caught:
        await transport.request("POST", "/", b"{}", timeout_s=0.05)
    assert caught.value.sent


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: many\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_named_so(transport, server, nonsense):
    async def babble(_seen, wire):
        await wire.send(nonsense)
        wire.close()

    server.handler = babble
    with pytest.raises((ProtocolBroken, ConnectionLost)):
        await transport.request("POST", "/", b"{}")


async def test_a_cancelled_request_does_not_poison_its_connection(transport, server):
    async def by_path(seen, _wire):
        if seen.path == "/slow":
            await asyncio.Event().wait()
        return reply(200, seen.path.encode())

    server.handler = by_path
    task = asyncio.ensure_future(transport.request("GET", "/slow"))
    await server.has_seen(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await transport.request("GET", "/next")).body == b"/next"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "wire",
    [
        CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"10000000000000000\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300_000,
    ],
    ids=["negative", "signed", "above 64 bits", "negative length", "endless header"],
)
async def test_hostile_framing_ends_the_request_and_the_connection(transport, server, wire):
    async def hostile(_seen, gate):
        await gate.send(wire)
        await asyncio.Event().wait()

    server.handler = hostile
    with pytest.raises(ProtocolBroken) as caught:
        await transport.request("POST", "/", b"{}", timeout_s=20.0)
    assert caught.value.sent

    async def fine(_seen, _wire):
        return reply(200, b"fine")

    server.handler = fine
    assert (await transport.request("GET", "/")).body == b"fine"
    assert server.connection_count == 2


async def test_an_endless_answer_is_given_up_at_the_bound(transport, server, monkeypatch):
    transport.answer_bytes_max = 1 << 20

    async def endless(_seen, wire):
        await wire.start_stream()
        while True:
            await wire.chunk(b"x" * 100_000)

    server.handler = endless
    with pytest.raises(ProtocolBroken, match="no end within"):
        await transport.request("GET", "/", timeout_s=20.0)


def test_a_line_without_a_colon_is_no_header():
    answer = Reply(200, b"", b"HTTP/1.1 200 X\r\nlonely\r\nA-b:  c: d \r\na-b: e\r\n\r\n")
    names = ("lonely", "a-B", "", "HTTP/1.1 200 X")
    assert [answer.header(name) for name in names] == [None, "c: d", None, None]
