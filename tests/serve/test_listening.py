"""A port is taken, or one line says why not."""

import asyncio
import socket

import pytest

from asched.serve.listening import listen
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
