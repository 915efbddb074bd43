"""A TCP proxy that goes wrong when it is told to. TLS passes through it, so it knows no requests.

    async with Wire(port_of_the_server) as wire:
        wire.fault = Fault.BLACK_HOLE    # ... and later
        wire.fault = None

A fault holds for connections that are open and for those to come. What was swallowed is gone: the
end of a fault resets the connections it touched, as a network does whose path comes back elsewhere.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from enum import Enum
from random import Random
from typing import Final, Self

from asched_lab.apiserver.server import accept_no_more

CHUNK: Final = 1 << 16
LINGER_NEVER: Final = struct.pack("ii", 1, 0)  # close sends RST


class Fault(Enum):
    """What goes wrong."""

    DELAY = "answers come 0.2 to 1 s late"
    RESET = "connections are reset after some bytes, new ones as well"
    BLACK_HOLE = "nothing passes in either direction"
    LOST_ANSWERS = "requests arrive, answers do not"
    CUT = "answers end in the middle"
    SLOW = "answers drip, 2 kB at a time"


class Wire:
    """Listens at `port` of 127.0.0.1 for a server at another."""

    def __init__(self, server_port: int, seed: int = 0) -> None:
        self._server_port = server_port
        self._random = Random(seed)
        self._fault: Fault | None = None
        self._touched: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0
        #: set once a fault has kept something from passing
        self.swallowed = asyncio.Event()

    @property
    def fault(self) -> Fault | None:
        return self._fault

    @fault.setter
    def fault(self, fault: Fault | None) -> None:
        self._fault = fault
        for writer in self._touched:
            _reset(writer)
        self._touched.clear()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await accept_no_more(*self._listening.sockets)
        self._listening.close()
        for writer in list(self._writers):
            _reset(writer)
        if self._open:
            await asyncio.wait(self._open)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._accept(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            back, there = await asyncio.open_connection("127.0.0.1", self._server_port)
            self._writers.add(there)
            ways = (self._requests(reader, there), self._answers(back, writer))
            tasks = [asyncio.ensure_future(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        except OSError:
            pass  # the server is away: the client is told by the end of the connection
        finally:
            for end in (writer, there):
                if end is not None:
                    self._writers.discard(end)
                    self._touched.discard(end)
                    _reset(end)

    def _swallow(self, to: asyncio.StreamWriter) -> None:
        self._touched.add(to)
        self.swallowed.set()

    async def _requests(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while data := await _some(source):
            if self._fault is Fault.BLACK_HOLE:
                self._swallow(to)
                continue
            to.write(data)
            await to.drain()

    async def _answers(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while data := await _some(source):
            match self._fault:
                case Fault.BLACK_HOLE | Fault.LOST_ANSWERS:
                    self._swallow(to)
                    continue
                case Fault.RESET if self._random.random() < 0.3:
                    return
                case Fault.CUT if len(data) > 200 and self._random.random() < 0.1:
                    to.write(data[: self._random.randrange(len(data))])
                    await to.drain()
                    return
                case Fault.DELAY:
                    await asyncio.sleep(self._random.uniform(0.2, 1.0))
                case Fault.SLOW:
                    for start in range(0, len(data), 2048):
                        to.write(data[start : start + 2048])
                        await asyncio.sleep(0.02)
                    continue
                case _:
                    pass
            to.write(data)
            await to.drain()


async def _some(source: asyncio.StreamReader) -> bytes:
    with suppress(OSError):
        return await source.read(CHUNK)
    return b""


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError, ValueError):  # closed already
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NEVER)
    writer.close()
