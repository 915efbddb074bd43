"""The pool of the hot lanes: its bound, and what a broken connection says about a request."""

import asyncio

import pytest

from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from asched.kube.fast import FastTransport
from tests.unit.kube.scripted import reply


async def test_a_fast_pool_never_opens_more_than_its_limit(server, session):
    release = asyncio.Event()

    async def held(_seen, _wire):
        await release.wait()
        return reply(200, b"")

    server.handler = held
    pool = session.pool(3)
    assert isinstance(pool, FastTransport)
    tasks = [asyncio.ensure_future(pool.request("POST", "/", b"{}")) for _ in range(10)]
    await server.has_seen(3)
    assert pool.connection_count == 3
    release.set()
    assert {answer.status for answer in await asyncio.gather(*tasks)} == {200}
    assert server.connection_count == 3
    assert len(server.seen) == 10


async def test_a_read_on_a_connection_the_server_had_closed_is_repeated(server, session):
    async def once_per_connection(seen, wire):
        if seen.connection == 1 and len(server.seen) == 2:
            wire.reset()
            return None
        return reply(200, b"%d" % seen.connection)

    server.handler = once_per_connection
    pool = session.pool(1)
    assert (await pool.request("GET", "/")).body == b"1"
    assert (await pool.request("GET", "/")).body == b"2"


async def test_a_write_on_a_connection_the_server_had_closed_is_not_repeated(server, session):
    async def once_per_connection(seen, wire):
        if len(server.seen) == 2:
            wire.reset()
            return None
        return reply(201, b"")

    server.handler = once_per_connection
    pool = session.pool(1)
    await pool.request("POST", "/", b"{}")
    with pytest.raises(ConnectionLost) as caught:
        await pool.request("POST", "/", b"{}")
    assert caught.value.sent
    assert len(server.seen) == 2


async def test_a_connection_closed_while_idle_is_not_used_again(server, session):
    closed = asyncio.Event()

    async def then_close(_seen, wire):
        await wire.send(reply(201, b""))
        wire.close()
        closed.set()

    server.handler = then_close
    pool = session.pool(1)
    await pool.request("POST", "/", b"{}")
    await closed.wait()
    while pool.connection_count:  # noqa: ASYNC110  # nobody tells when the end is noticed
        await asyncio.sleep(0)
    assert (await pool.request("POST", "/", b"{}")).status == 201
    assert server.connection_count == 2


async def test_new_credentials_mean_new_connections(session, server):
    pool = session.pool(2)
    await pool.request("GET", "/")
    session.credentials.generation += 1
    await pool.request("GET", "/")
    assert server.connection_count == 2


async def test_the_fence_is_looked_at_once_more_before_the_first_byte(server, session):
    """It may have closed while a connection was waited for."""
    leads, release = True, asyncio.Event()

    async def held(_seen, _wire):
        await release.wait()
        return reply(200, b"")

    server.handler = held
    pool = session.pool(1, may_send=lambda: leads)
    first = asyncio.ensure_future(pool.request("POST", "/", b"{}"))
    await server.has_seen(1)
    second = asyncio.ensure_future(pool.request("POST", "/", b"{}"))
    await asyncio.sleep(0)
    leads = False
    release.set()

    with pytest.raises(ConnectFailed, match="not sent"):
        await second
    assert (await first).status == 200
    assert len(server.seen) == 1


async def test_after_a_deadline_only_those_are_trusted_that_answered_meanwhile(server, session):
    """The lease's second connection must not cost what is left of the renewal."""
    both = asyncio.Event()

    async def handle(seen, _wire):
        if seen.path == "/mute":
            await asyncio.Event().wait()
        if seen.path == "/first":
            await both.wait()
        return reply(200, b"%d" % seen.connection)

    server.handler = handle
    pool = session.pool(3)
    firsts = [asyncio.ensure_future(pool.request("GET", "/first")) for _ in range(3)]
    await server.has_seen(3)
    both.set()
    await asyncio.gather(*firsts)
    mute = asyncio.ensure_future(pool.request("GET", "/mute", timeout_s=0.1))
    await server.has_seen(4)
    await asyncio.sleep(0.01)  # the loop's clock counts milliseconds
    trusted = (await pool.request("GET", "/meanwhile")).body
    with pytest.raises(DeadlineExceeded):
        await mute

    answers = await asyncio.gather(*(pool.request("GET", "/later") for _ in range(3)))
    used = {answer.body for answer in answers}
    assert used & {b"1", b"2", b"3"} == {trusted}


async def test_a_silent_watch_gives_up_the_idle_connections_of_bindings(server, session):
    async def handle(seen, wire):
        if seen.path == "/watch":
            await wire.start_stream()
            await asyncio.Event().wait()
        return reply(200, b"")

    server.handler = handle
    pool = session.pool(2)
    await pool.request("POST", "/binding", b"{}")
    async with session.general.stream("/watch", timeout_s=0.1) as stream:
        with pytest.raises(DeadlineExceeded):
            [chunk async for chunk in stream.chunks()]
    before = {seen.connection for seen in server.seen}
    await pool.request("POST", "/binding", b"{}")
    assert server.seen[-1].connection not in before
