"""One accepted connection, with or without TLS.

Every read waits for an event of the selector first, which decides whose turn it is
(`FairSelector`).

Nothing here refers to itself, so a connection's memory is freed with its last reference. asyncio's
transports are reference cycles, which only garbage collection frees; and the scheduling process
collects no objects that have lived for long (`asched/host/memory.py`).
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

#: Read from the socket, or encrypted, at a time.
PIECE_BYTES: Final = 64 * 1024


class ClientStream:
    """For one task. Owns a non-blocking socket. Its methods raise OSError, with TLS errors as
    ConnectionError.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        #: Whether bytes are known to have arrived.
        self._has_arrived = False
        self._tls: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO
        self._outgoing: ssl.MemoryBIO

    async def begin(self, context: ssl.SSLContext | None) -> None:
        """Do the TLS handshake if there is a context. The first bytes have arrived."""
        self._has_arrived = True
        if context is None:
            return
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        await self._with_input(self._tls.do_handshake)

    @property
    def certificate(self) -> bytes:
        """The client's certificate (DER); empty without one."""
        if self._tls is None:
            return b""
        return self._tls.getpeercert(binary_form=True) or b""

    async def read(self, bytes_max: int) -> bytes:
        """At least one byte; none at the end."""
        if self._tls is None:
            return await self._receive(bytes_max)
        tls = self._tls
        try:
            data: bytes = await self._with_input(lambda: tls.read(bytes_max))
        except EOFError:
            return b""
        return data

    async def send(self, data: bytes) -> None:
        if self._tls is None:
            await self._transmit(data)
            return
        for start in range(0, len(data), PIECE_BYTES):
            self._tls.write(memoryview(data)[start : start + PIECE_BYTES])
            await self._flush()

    async def finish(self) -> None:
        """Announce the end, and read what the client still sends until it ends, too: closing a
        socket with unread bytes would take the last answer from the client.
        """
        if self._tls is not None:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            await self._flush()
        self._sock.shutdown(socket.SHUT_WR)
        while await self._receive(PIECE_BYTES):
            pass

    def end(self) -> None:
        """End all methods in progress. The task that uses the stream then closes it."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()

    # --- TLS -------------------------------------------------------------------------------------

    async def _with_input(self, step: Callable[[], Any]) -> Any:
        """The result of a step of TLS that may need bytes of the client. Raises EOFError if the
        client ended the connection.
        """
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                pass
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                raise EOFError("the client has ended the connection") from None
            except ssl.SSLError as error:
                await self._flush()  # the alert that names the reason
                raise ConnectionError(str(error)) from None
            else:
                await self._flush()
                return result
            await self._flush()
            piece = await self._receive(PIECE_BYTES)
            if piece:
                self._incoming.write(piece)
            else:
                self._incoming.write_eof()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._transmit(self._outgoing.read())

    # --- the socket ------------------------------------------------------------------------------

    async def _receive(self, bytes_max: int) -> bytes:
        while True:
            if not self._has_arrived:
                await self._ready_to_read()
            self._has_arrived = False
            with suppress(BlockingIOError, InterruptedError):
                return self._sock.recv(bytes_max)

    async def _transmit(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._sock.send(left) :]
            except (BlockingIOError, InterruptedError):
                loop = asyncio.get_running_loop()
                await _event(loop.add_writer, loop.remove_writer, self._sock)

    async def _ready_to_read(self) -> None:
        loop = asyncio.get_running_loop()
        await _event(loop.add_reader, loop.remove_reader, self._sock)


async def _event(
    add: Callable[[socket.socket, Callable[[], None]], None],
    remove: Callable[[socket.socket], bool],
    sock: socket.socket,
) -> None:
    """Wait for one event of the socket."""
    happened = asyncio.Event()
    add(sock, happened.set)
    try:
        await happened.wait()
    finally:
        remove(sock)
