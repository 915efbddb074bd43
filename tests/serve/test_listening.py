"""A port is taken, or one line says why not."""

import asyncio
import errno
import socket

import pytest

from asched.serve import listening
from asched.serve.listening import BACKLOG, listen
from asched.serve.options import CannotServeError


async def test_an_address_in_use_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(CannotServeError, match=f"cannot listen on 127.0.0.1:{number}: .*; x"):
            await listen("127.0.0.1", number, cure="x")


async def test_whoever_comes_before_there_is_a_door_waits():
    (one,) = await listen("127.0.0.1", 0, cure="x")
    with one:
        port = one.getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        sock, _ = await asyncio.get_running_loop().sock_accept(one)
        sock.close()
        writer.close()


def an_address(family, number=0):
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    return (family, socket.SOCK_STREAM, 6, "", (host, number))


@pytest.mark.parametrize("lacks", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_addresses_that_this_machine_does_not_have_are_passed_over(lacks, monkeypatch):
    """No IPv6, for instance; if there is no other, that is the trouble."""
    create = socket.create_server
    seen = []

    def create_server(address, *, family, **options):
        seen.append((address, options))
        if family == socket.AF_INET6:
            raise OSError(lacks, "not here")
        return create(address, family=family, **options)

    monkeypatch.setattr(listening.socket, "create_server", create_server)
    sixth = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))
    (one,) = listening._listen([sixth, an_address(socket.AF_INET)], reuse_port=True)
    with one:
        assert one.getblocking() is False
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
    assert [address for address, _ in seen] == [("::1", 0), ("127.0.0.1", 0)]
    assert {options["backlog"] for _, options in seen} == {BACKLOG}
    with pytest.raises(OSError, match="not here"):
        listening._listen([sixth], reuse_port=False)
    with pytest.raises(OSError, match="no such address"):
        listening._listen([], reuse_port=False)


def test_a_port_that_is_taken_gives_back_the_others(monkeypatch):
    create, made = socket.create_server, []

    def create_server(address, *, family, **options):
        if made:
            raise OSError(errno.EADDRINUSE, "taken")
        made.append(create(address, family=family, **options))
        return made[0]

    monkeypatch.setattr(listening.socket, "create_server", create_server)
    with pytest.raises(OSError, match="taken"):
        listening._listen([an_address(socket.AF_INET)] * 2, reuse_port=False)
    assert made[0].fileno() == -1


async def test_no_host_is_every_address_of_the_machine():
    found = await listen("", 0, cure="x")
    try:
        assert {one.getsockname()[0] for one in found} <= {"0.0.0.0", "::"}
    finally:
        for one in found:
            one.close()
