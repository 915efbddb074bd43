"""Strangers at the port: idle, slow, broken off. The kubelet's probe is answered all the same."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from asched.serve import app
from asched.serve import connections as door
from asched.serve.connections import Limits
from tests.support import HANG_S
from tests.unit.serve.world import a_port, client_tls

PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
SOON_S = 0.1


@asynccontextmanager
async def strangers():
    """Opens connections, and closes whatever is open at the end."""
    opened = []

    async def come(port, *, of="127.0.0.1", tls=True):
        talk = await asyncio.open_connection(
            "127.0.0.1",
            port.server.port,
            ssl=client_tls() if tls else None,
            local_addr=(of, 0),
        )
        opened.append(talk[1])
        return talk

    async with asyncio.timeout(HANG_S):
        yield come
    for writer in opened:
        writer.transport.abort()


async def probe(port):
    answer, _ = await port.ask("/livez")
    return answer.status


async def until_full(port):
    """All requests that may be under way are."""
    while True:
        if port.server.is_busy:
            return
        await asyncio.sleep(0)


async def is_closed(talk):
    """Waits until the server ends the connection."""
    try:
        return await talk[0].read() == b""
    except ConnectionError:
        return True


async def test_idle_connections_of_one_peer_make_room_for_its_next():
    async with a_port(limits=Limits(by_peer=4)) as port, strangers() as come:
        talks = [await come(port, tls=False) for _ in range(40)]
        assert await probe(port) == 200
        assert all([await is_closed(talk) for talk in talks[:36]])


async def test_the_peer_with_most_connections_gives_way_to_others():
    limits = Limits(in_all=8, by_peer=8)
    async with a_port(limits=limits) as port, strangers() as come:
        lone = await come(port, of="127.0.0.3")
        crowd = [await come(port, of="127.0.0.2", tls=False) for _ in range(7)]
        for _ in range(3):
            await come(port, of="127.0.0.4")
        assert all([await is_closed(talk) for talk in crowd[:3]])
        lone[1].write(PROBE)
        assert (await lone[0].readline()).startswith(b"HTTP/1.1 200")


async def test_who_is_being_answered_is_not_sent_away(monkeypatch):
    """A PUT whose body is on its way holds its place; there is none for others then."""
    monkeypatch.setattr(app, "REQUESTS_MAX", 1)
    monkeypatch.setattr(app, "BODY_S", HANG_S)
    async with a_port(limits=Limits(by_peer=1)) as port, strangers() as come:
        talk = await come(port)
        talk[1].write(put("2"))
        await talk[1].drain()
        await until_full(port)
        assert await is_closed(await come(port, tls=False))
        talk[1].write(b"00")
        assert (await talk[0].readline()).startswith(b"HTTP/1.1 200")


def put(length):
    return (
        "PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def test_the_limit_is_told_and_follows_the_descriptors(monkeypatch, caplog):
    monkeypatch.setattr(door.resource, "getrlimit", lambda _: (20, 4096))
    assert door.connections_max() == 5
    async with a_port() as port, strangers() as come:
        talks = [await come(port, tls=False) for _ in range(6)]
        assert await is_closed(talks[0])
    assert "Too many connections" in caplog.text


async def test_tls_that_does_not_come_is_not_waited_for():
    async with a_port(limits=Limits(head_s=SOON_S)) as port, strangers() as come:
        assert await is_closed(await come(port, tls=False))


async def test_a_head_that_drips_is_cut_off():
    """The deadline counts from the first byte, and bytes do not move it."""
    async with a_port(limits=Limits(head_s=SOON_S)) as port, strangers() as come:
        reader, writer = await come(port)
        while not reader.at_eof() and reader.exception() is None:
            writer.write(b"X")
            await asyncio.wait([asyncio.create_task(reader.read(1))], timeout=SOON_S / 10)


async def test_the_next_head_has_a_deadline_too():
    limits = Limits(head_s=SOON_S, idle_s=HANG_S)
    async with a_port(limits=limits) as port, strangers() as come:
        talk = await come(port)
        talk[1].write(PROBE)
        await talk[0].readuntil(b"\r\n\r\nok")
        talk[1].write(PROBE[:5])
        assert await is_closed(talk)


async def test_silence_after_an_answer_ends():
    limits = Limits(head_s=HANG_S, idle_s=SOON_S)
    async with a_port(limits=limits) as port, strangers() as come:
        talk = await come(port)
        talk[1].write(PROBE)
        await talk[0].readuntil(b"\r\n\r\nok")
        assert await is_closed(talk)


async def test_the_body_of_a_get_is_not_waited_for():
    async with a_port(limits=Limits(linger_s=SOON_S)) as port, strangers() as come:
        talk = await come(port)
        talk[1].write(PROBE[:-2] + b"Content-Length: 10\r\n\r\n")
        await talk[0].readuntil(b"\r\n\r\nok")
        assert await is_closed(talk)


async def test_bodies_that_do_not_come_stop_no_probe(monkeypatch):
    monkeypatch.setattr(app, "REQUESTS_MAX", 3)
    monkeypatch.setattr(app, "BODY_S", HANG_S)
    async with a_port() as port, strangers() as come:
        for _ in range(3):
            _, writer = await come(port)
            writer.write(put("2"))
        await until_full(port)
        answer, _ = await port.ask("/metrics", "admin")
        assert answer.status == 429
        assert await probe(port) == 200


async def test_a_body_has_a_deadline(monkeypatch):
    monkeypatch.setattr(app, "BODY_S", SOON_S)
    async with a_port() as port, strangers() as come:
        reader, writer = await come(port)
        writer.write(put("2"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    ("words", "tls"),
    [
        (b"", False),
        (b"", True),
        (b"hello?\r\n\r\n", False),
        (b"hello?\r\n\r\n", True),
        (PROBE[:20], True),
        (put("2"), True),
        (put("chunks"), True),
        (PROBE * 50, True),
    ],
)
async def test_who_goes_leaves_no_trace(words, tls, caplog):
    """Neither a warning, nor an error that the loop hears of."""
    heard = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: heard.append(context))
    caplog.set_level(logging.WARNING)
    async with a_port() as port, strangers() as come:
        _, writer = await come(port, tls=tls)
        writer.write(words)
        await writer.drain()
        writer.transport.abort()
        assert await probe(port) == 200
    loop.set_exception_handler(None)
    assert heard == []
    assert [record.getMessage() for record in caplog.records] == []
