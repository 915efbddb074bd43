"""Who gets a place at the port, and who gives one up: against a plain reading of the rule."""

import asyncio
import errno
import itertools
import logging
import random
import socket
from contextlib import closing

import pytest
from aiohttp import web

from asched.edge.serve import door
from asched.edge.serve.door import ACCEPT_AGAIN_S, Door, Guest, Limits
from asched.edge.serve.listening import listen
from tests.patience import HANG_S


async def no_page(_):
    return web.Response(text="hello")


@pytest.mark.parametrize("seed", range(30))
async def test_who_has_waited_longest_of_the_largest_crowd_gives_up_its_place(seed, monkeypatch):
    rng = random.Random(seed)
    now = itertools.count()
    monkeypatch.setattr(door, "monotonic", lambda: float(next(now)))
    in_all, by_peer = rng.randint(2, 6), rng.randint(1, 5)
    entrance = Door(no_page, None, Limits(in_all=in_all, by_peer=by_peer))
    inside: list[Guest] = []  # in the order in which they began to wait
    with closing(socket.socket()) as sock:
        for _ in range(40):
            peer = rng.choice("aab")
            guest = Guest(entrance, sock, peer)
            own = [other for other in inside if other.peer == peer]
            is_crowd, is_full = len(own) >= by_peer, len(inside) >= in_all
            waiting = [one for one in (own if is_crowd else inside) if not one.is_busy]
            leaves = None
            if is_crowd or is_full:
                crowds = {one.peer: sum(o.peer == one.peer for o in inside) for one in waiting}
                largest = [one for one in waiting if crowds[one.peer] == max(crowds.values())]
                leaves = largest[0] if largest else None
            is_let_in = not (is_crowd or is_full) or leaves is not None

            assert entrance._admits(guest) is is_let_in

            if leaves is not None:
                inside.remove(leaves)
            if is_let_in:
                inside.append(guest)
            else:
                guest.left()
            assert entrance._guests == set(inside)
            for one in list(inside):
                if rng.random() < 0.15 and not one.is_busy:
                    one.asked()
                elif rng.random() < 0.15 and one.is_busy:
                    one.answered()
                    inside.remove(one)
                    inside.append(one)
                elif rng.random() < 0.05:
                    one.left()
                    inside.remove(one)
        for one in inside:
            one.left()


async def test_a_connection_that_cannot_be_accepted_stops_no_other(monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    troubles = (ConnectionAbortedError(), OSError(errno.EMFILE, "too many open files"))
    loop, pauses = asyncio.get_running_loop(), []
    accept, sleep, left = loop.sock_accept, asyncio.sleep, list(troubles)

    async def accepting(listening):
        if left:
            raise left.pop(0)
        return await accept(listening)

    async def pausing(seconds):
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(loop, "sock_accept", accepting)
    monkeypatch.setattr(door.asyncio, "sleep", pausing)
    entrance = Door(no_page, None)
    port = entrance.open(await listen("127.0.0.1", 0, cure="x"))
    async with asyncio.timeout(HANG_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert pauses[0] == ACCEPT_AGAIN_S
        warned = [record.getMessage() for record in caplog.records]
        assert warned == ["No connection can be accepted"]
        await entrance.close()
        await reader.read()
        writer.close()
    with pytest.raises(OSError, match=r"refused|Connect"):
        await asyncio.open_connection("127.0.0.1", port)
    assert entrance._guests == set()
