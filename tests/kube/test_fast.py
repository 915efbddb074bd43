"""The pool of the hot lanes: its bound, and what a broken connection says about a request."""

import asyncio

import pytest

from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from asched.kube.fast import FastTransport
from tests.kube.scripted import reply


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


async def test_a_fast_pool_without_a_free_connection_sends_nothing(server, session):
    async def held(_seen, _wire):
        await asyncio.Event().wait()

    server.handler = held
    pool = session.pool(1)
    first = asyncio.ensure_future(pool.request("POST", "/", b"{}", timeout_s=5))
    await server.has_seen(1)
    with pytest.raises(ConnectFailed, match="became free"):
        await pool.request("POST", "/", b"{}", timeout_s=0.02)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert len(server.seen) == 1


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


async def test_closing_leaves_no_connection_behind(session, server):
    pool = session.pool(4)
    await asyncio.gather(*(pool.request("GET", "/") for _ in range(4)))
    await pool.close()
    assert pool.connection_count == 0


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

    with pytest.raises(ConnectFailed, match="held back"):
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


async def test_a_connection_made_ready_is_there_for_the_next_request(server, session):
    pool = session.pool(4)
    await pool.prepare()
    assert (pool.connection_count, server.seen) == (1, [])
    assert (await pool.request("POST", "/", b"{}")).status == 200
    assert server.connection_count == 1


async def test_what_a_request_says_of_itself_stands_in_its_head(server, session):
    pool = session.pool(1)
    for content_type, accept in (("a/1", "b/1"), ("b/1", "a/1"), ("a/1", "b/1")):
        await pool.request("PATCH", "/p?q=r", b"{}", content_type=content_type, accept=accept)
    await pool.request("GET", "/p", content_type="a/1", accept="b/2")
    told = [
        (seen.method, seen.target, seen.headers.get("content-type"), seen.headers["accept"])
        for seen in server.seen
    ]
    patch = ("PATCH", "/p?q=r")
    assert told == [
        (*patch, "a/1", "b/1"),
        (*patch, "b/1", "a/1"),
        (*patch, "a/1", "b/1"),
        ("GET", "/p", None, "b/2"),
    ]
    assert [seen.headers.get("content-length") for seen in server.seen] == ["2", "2", "2", None]
    assert {seen.headers["host"] for seen in server.seen} == {server.url.removeprefix("http://")}
    assert server.connection_count == 1


async def after_a_restart(server, transport, count):
    """So many idle connections, of which the server has forgotten all."""
    both = asyncio.Barrier(count)

    async def together(seen, wire):
        if seen.path == "/first":
            await both.wait()
        elif seen.connection <= count:
            wire.reset()
            return None
        return reply(200, b"%d" % seen.connection)

    server.handler = together
    await asyncio.gather(*(transport.request("GET", "/first") for _ in range(count)))
    assert transport.connection_count == server.connection_count == count


async def test_a_read_is_repeated_once_and_never_on_a_connection_that_may_be_as_stale(
    server, session
):
    pool = session.pool(3)
    await after_a_restart(server, pool, 3)
    assert (await pool.request("GET", "/second")).body == b"4"
    assert [seen.path for seen in server.seen].count("/second") == 2


async def test_a_stream_is_begun_anew_once_and_never_on_a_connection_that_may_be_as_stale(
    server, session
):
    await after_a_restart(server, session.general, 3)
    async with session.general.stream("/second", timeout_s=5.0) as stream:
        assert await stream.read_all() == b"4"
    assert [seen.path for seen in server.seen].count("/second") == 2


async def test_the_start_of_a_stream_is_observed_once_with_its_code(server, session):
    async def refused(_seen, _wire):
        return reply(410, b"")

    server.handler = refused
    async with session.general.stream("/", timeout_s=5.0) as stream:
        assert stream.status == 410
    host = server.url.removeprefix("http://")
    assert session.exchanges == [("GET", host, "410", None, None, None)]


async def test_a_connection_given_up_a_moment_ago_is_not_used_again(server, session):
    """The loop has not told yet that it is closed."""
    pool = session.pool(2)
    await pool.request("POST", "/", b"{}")
    pool.distrust(pool.loop.time())
    assert (await pool.request("POST", "/", b"{}")).status == 200
    assert [seen.connection for seen in server.seen] == [1, 2]
