"""What is aiohttp's own about the transport behind a proxy."""

import asyncio
import errno
from types import SimpleNamespace

import aiohttp
import pytest

from asched.edge.client import aio
from asched.edge.client.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    ProtocolBroken,
)
from asched.edge.client.session import ConnectionOptions, connect
from tests.edge.client.conftest import proxied
from tests.edge.client.scripted import reply, scripted
from tests.edge.client.test_credentials import kubeconfig, tls_cluster


@pytest.mark.parametrize("is_renewed", [True, False])
async def test_a_stream_that_was_not_let_in_is_asked_for_once_more_with_new_credentials(
    server, session, monkeypatch, is_renewed
):
    async def guarded(seen, _wire):
        return reply(200 if seen.headers.get("authorization") == "Bearer new" else 401, b"said")

    async def reload(used, _timeout_s):
        assert used == "Bearer old"
        session.credentials.authorization = "Bearer new" if is_renewed else "Bearer worse"
        return is_renewed

    server.handler = guarded
    session.credentials.authorization = "Bearer old"
    monkeypatch.setattr(session.credentials, "reload", reload)
    async with session.proxied().stream("/w?x=y", timeout_s=5.0) as stream:
        assert stream.status == (200 if is_renewed else 401)
        assert await stream.read_all() == b"said"
    asked = ["/w?x=y"] * (2 if is_renewed else 1)
    assert [seen.target for seen in server.seen] == asked
    assert [code for _, _, code in session.observed] == ["200" if is_renewed else "401"]


async def test_after_deadlines_connections_are_new_and_those_given_up_may_end_for_a_while(
    server, session, monkeypatch
):
    monkeypatch.setattr(aio, "RETIRE_EVERY_S", 0.0)
    last, rest = asyncio.Event(), asyncio.Event()

    async def handle(seen, _wire):
        if seen.path == "/mute":
            await asyncio.Event().wait()
        elif seen.path != "/next":
            await (last if seen.path == "/last" else rest).wait()
        return reply(200, b"%d" % seen.connection)

    server.handler = handle
    transport = session.proxied()

    async def expire():
        with pytest.raises(DeadlineExceeded):
            await transport.request("GET", "/mute", timeout_s=0.03)

    oldest = asyncio.ensure_future(transport.request("GET", "/oldest"))
    await server.has_seen(1)
    await expire()
    before = {seen.connection for seen in server.seen}
    assert int((await transport.request("GET", "/next")).body) not in before
    under_way = asyncio.ensure_future(transport.request("GET", "/last"))
    await server.has_seen(4)
    for _ in range(aio.RETIRED_MAX - 1):
        await expire()
    assert not oldest.done(), "as many as may be are left to end"
    await expire()
    with pytest.raises(ConnectionLost):
        await oldest
    last.set()
    assert (await under_way).status == 200


async def test_deadlines_soon_after_each_other_cost_one_set_of_connections(
    server, session, monkeypatch
):
    told = []
    monkeypatch.setattr(session, "_distrust_pools", lambda: told.append(1))
    monkeypatch.setattr(aio, "HEADER_TIMEOUT_S", 0.03)
    transport = session.proxied()

    async def mute(seen, _wire):
        if seen.path == "/mute":
            await asyncio.Event().wait()
        return reply(200, b"%d" % seen.connection)

    server.handler = mute
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            await transport.request("GET", "/mute", timeout_s=0.03)
    assert told == [1]
    transport = session.proxied()
    for _ in range(2):
        with pytest.raises(DeadlineExceeded):
            async with transport.stream("/mute", timeout_s=5.0):
                pass
    assert told == [1, 1]


@pytest.mark.parametrize(("name", "is_good"), [("api.example", True), ("other.example", False)])
async def test_the_tls_server_name_is_the_one_that_is_checked(
    tmp_path, certificates, name, is_good
):
    async def ok(_seen, _wire):
        return reply(200, b"{}")

    async with scripted(ok, certificates.server_context()) as server:
        cluster = tls_cluster(certificates, **{"tls-server-name": name})
        path = kubeconfig(tmp_path / "c", server.url, cluster=cluster)
        session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
        asked = proxied(session).request("GET", "/")
        if is_good:
            assert (await asked).status == 200
        else:
            with pytest.raises(ConnectFailed, match="not trusted"):
                await asked
        await session.close()


async def test_a_type_that_is_asked_for_takes_the_place_of_json(server, session):
    transport = session.proxied()
    await transport.request("GET", "/", accept="text/plain")
    await transport.request("GET", "/")
    assert [seen.headers["accept"] for seen in server.seen] == ["text/plain", "application/json"]
    assert ["content-type" in seen.headers for seen in server.seen] == [False, False]


class Raising:
    """An exchange of aiohttp that fails."""

    def __init__(self, error):
        self.error = error

    async def __aenter__(self):
        raise self.error

    async def __aexit__(self, *_):
        pass

    def __await__(self):
        raise self.error
        yield


KEY = SimpleNamespace(host="h", port=1, ssl=True, is_ssl=True)


@pytest.mark.parametrize(
    ("error", "told", "text"),
    [
        (aiohttp.ConnectionTimeoutError(), ConnectFailed, "cannot reach {url}: no connection"),
        (aiohttp.ServerTimeoutError(), DeadlineExceeded, "{url} did not answer in time"),
        (TimeoutError(), DeadlineExceeded, "{url} did not answer in time"),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connection refused")),
            ConnectFailed,
            "cannot reach {url}: connection refused",
        ),
        (
            aiohttp.ClientResponseError(SimpleNamespace(real_url="u"), (), status=400, message="m"),
            ProtocolBroken,
            "{url} sent no valid HTTP: 400, message='m'",
        ),
        (aiohttp.ClientPayloadError("torn"), ConnectionLost, "the connection to {url} broke: torn"),
        (
            aiohttp.ClientPayloadError(),
            ConnectionLost,
            "the connection to {url} broke: ClientPayloadError",
        ),
        (OSError("gone"), ConnectionLost, "the connection to {url} broke: gone"),
    ],
    ids=repr,
)
async def test_what_fails_is_told_by_whether_anything_can_have_been_done(
    session, server, monkeypatch, error, told, text
):
    transport = session.proxied()
    monkeypatch.setattr(aiohttp.ClientSession, "request", lambda *_, **__: Raising(error))
    with pytest.raises(told) as caught:
        await transport.request("POST", "/", b"{}")
    assert str(caught.value).startswith(text.format(url=server.url))
    assert caught.value.sent is (told is not ConnectFailed)
    with pytest.raises(told):
        async with transport.stream("/", timeout_s=5.0):
            pass


@pytest.mark.parametrize(("given_s", "connect_s"), [(5.0, 5.0), (60.0, 30.0)])
async def test_a_connection_has_no_more_time_than_its_request(
    session, monkeypatch, given_s, connect_s
):
    given = []

    def request(*_, timeout, **__):
        given.append((timeout.total, timeout.sock_connect))
        return Raising(TimeoutError())

    monkeypatch.setattr(aiohttp.ClientSession, "request", request)
    with pytest.raises(DeadlineExceeded):
        await session.proxied().request("GET", "/", timeout_s=given_s)
    assert given == [(given_s, connect_s)]


@pytest.mark.parametrize(("size", "is_taken"), [(1000, True), (1001, False)])
async def test_an_answer_may_be_as_long_as_the_bound(server, session, monkeypatch, size, is_taken):
    async def long(_seen, _wire):
        return reply(200, b"x" * size)

    server.handler = long
    monkeypatch.setattr(aio, "ANSWER_BYTES_MAX", 1000)
    monkeypatch.setattr(aio, "ERROR_BYTES_MAX", 999)
    transport = session.proxied()
    if is_taken:
        assert len((await transport.request("GET", "/")).body) == size
    else:
        with pytest.raises(ProtocolBroken, match="no end within 1000 bytes"):
            await transport.request("GET", "/")
    async with transport.stream("/", timeout_s=5.0) as stream:
        assert await stream.read_all() == b"x" * 999


async def test_a_stream_looks_at_the_token_like_any_request(server, session, monkeypatch):
    looked = []
    monkeypatch.setattr(session.credentials, "keep_fresh", lambda: looked.append(1))
    async with session.proxied().stream("/", timeout_s=5.0):
        assert looked == [1]
