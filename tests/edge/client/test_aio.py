"""What is aiohttp's own about the transport behind a proxy."""

import asyncio

import pytest

from asched.edge.client import aio
from asched.edge.client.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
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


async def test_deadlines_soon_after_each_other_cost_one_set_of_connections(server, session):
    told, transport = [], session.proxied()
    transport._distrusted = lambda: told.append(1)

    async def mute(seen, _wire):
        if seen.path == "/mute":
            await asyncio.Event().wait()
        return reply(200, b"%d" % seen.connection)

    server.handler = mute
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            await transport.request("GET", "/mute", timeout_s=0.03)
    assert told == [1]


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
