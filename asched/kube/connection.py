"""One keep-alive connection of `fast.py`: requests one after the other, answers whole or as they
come.

Bounds  of a stream that nobody reads PIECES_BYTES_MAX are kept and little more, then the peer has
        to wait.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, cast

from asched.kube.errors import ConnectionLost, DeadlineExceeded, ProtocolBroken, TransportError
from asched.kube.http1 import PieceReader, ResponseReader
from asched.kube.sockets import set_keepalive
from asched.kube.transport import ERROR_BYTES_MAX, Reply

PIECES_BYTES_MAX: Final = 1 << 20


class Home(Protocol):
    """Whoever keeps connections."""

    loop: asyncio.AbstractEventLoop
    where: str
    answer_bytes_max: int

    def forget(self, connection: "Connection") -> None:
        """It has closed."""


class Connection(asyncio.Protocol):
    """At most one request at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._reader = ResponseReader(home.answer_bytes_max)
        self._waiter: asyncio.Future[Reply] | None = None
        self._stream: LiveStream | None = None
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = home.loop.create_future()
        self.generation = 0
        self.idle_since_s = 0.0
        self.was_used = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            set_keepalive(raw)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, data: bytes) -> asyncio.Future[Reply]:
        """Write a request; the future gets its answer or a TransportError."""
        assert self._transport is not None
        assert self._waiter is None, "requests are never pipelined"
        self._reader.begin()
        waiter = self._waiter = self._home.loop.create_future()
        self._transport.write(data)
        return waiter

    def stream(self, data: bytes) -> "LiveStream":
        """Write a request whose answer is read as it comes, until `end_stream`."""
        assert self._transport is not None
        assert self._waiter is None, "requests are never pipelined"
        self._stream = LiveStream(self._transport, self._home)
        self._transport.write(data)
        return self._stream

    def end_stream(self) -> None:
        """Nobody reads on. Unless the answer has ended, so does the connection: a polite end of TLS
        would wait for a peer that may be silent, and outlive the loop.
        """
        stream, self._stream = self._stream, None
        if stream is None or not stream.is_spent:
            self.abort()
        if stream is not None:
            stream.close()

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(data)
            return
        if self._waiter is None:  # bytes nobody asked for: a 408, or nonsense
            self.abort()
            return
        try:
            reply = self._reader.feed(data)
        except ProtocolBroken as error:
            self._fail(error)
            return
        if reply is not None:
            self._finish(reply)

    def _finish(self, reply: Reply) -> None:
        waiter, self._waiter = self._waiter, None
        if not self._reader.reusable:
            self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def _fail(self, error: TransportError) -> None:
        waiter, self._waiter = self._waiter, None
        self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def expire(self) -> None:
        self._fail(DeadlineExceeded(f"{self._home.where} did not answer in time"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        self._home.forget(self)
        if self._stream is not None:
            self._stream.lost(exc)
            self._stream.close()
        if self._waiter is not None:
            reply = self._reader.end_of_stream() if exc is None else None
            if reply is not None:
                self._finish(reply)
            else:
                self._fail(lost(self._home.where))
        self._reader.close()

    @property
    def is_stale(self) -> bool:
        """It has served before, and closed without a byte of this answer."""
        answer = self._stream or self._reader
        return self.was_used and answer.is_untouched

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class LiveStream:
    """An answer that is read as it comes, once `begun` has been awaited."""

    def __init__(self, transport: asyncio.Transport, home: Home) -> None:
        #: done when its head is there, or never will be
        self._begun: asyncio.Future[None] = home.loop.create_future()
        self.status = 0
        self._head = Reply(0, b"")
        self._transport = transport
        self._home = home
        self._reader = PieceReader()
        self._size = 0
        self._is_whole = False
        self._is_paused = False
        self._error: TransportError | None = None
        self._news: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_spent(self) -> bool:
        """Its end has come, and the connection may live on."""
        return self._is_whole and self._reader.reusable and not self._is_paused

    @property
    def is_untouched(self) -> bool:
        """Nothing of the answer has arrived."""
        return self._reader.is_untouched

    # --- what the connection tells ---------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        if self._is_whole:  # bytes nobody asked for
            self._reader.reusable = False
            return
        try:
            end = self._reader.feed(data)
        except ProtocolBroken as error:
            self.fail(error)
            return
        self._is_whole = end is not None
        if not self.status and not self._reader.in_head:
            self._head = self._reader.head()
            self.status = self._head.status
            if not self._begun.done():
                self._begun.set_result(None)
        self._size = self._reader.size
        if self._size > PIECES_BYTES_MAX and not self._is_whole and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def lost(self, exc: Exception | None) -> None:
        if self._is_whole:
            return
        if exc is None and self._reader.end_of_stream() is not None:
            self._is_whole = True
            self._wake()
            return
        self.fail(lost(self._home.where))

    def fail(self, error: TransportError) -> None:
        """What has arrived can still be read; then this is raised."""
        if self._error is None and not self._is_whole:
            self._error = error
        if not self._begun.done():
            self._begun.set_result(None)
        self._wake()

    def close(self) -> None:
        """Nothing more arrives; what has can still be read."""
        self._reader.close()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # --- for readers -----------------------------------------------------------------------------

    def until(self, deadline_s: float, expired: Callable[[], None]) -> None:
        """It ends by then; `expired` is told if it does so for that reason."""

        def expire() -> None:
            if not self._is_whole and self._error is None:
                expired()
                self.fail(DeadlineExceeded(f"{self._home.where} did not answer in time"))

        self._timer = self._home.loop.call_at(deadline_s, expire)

    def leave(self) -> None:
        """Nobody reads on."""
        if self._timer is not None:
            self._timer.cancel()

    async def begun(self) -> None:
        """Its head is there. Raises TransportError."""
        await self._begun
        if not self.status and self._error is not None:
            raise _anew(self._error)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Everything there is, as soon as there is something. Raises TransportError."""
        while True:
            piece = self._reader.take()
            if piece:
                self._size = 0
                if self._is_paused:
                    self._is_paused = False
                    self._transport.resume_reading()
                yield piece
            elif self._is_whole:
                return
            elif self._error is not None:
                raise _anew(self._error)
            else:
                self._news = self._home.loop.create_future()
                await self._news

    async def read_all(self) -> bytes:
        """The body of an error, its start if it is long."""
        body = b""
        async for piece in self.chunks():
            body += piece
            if len(body) >= ERROR_BYTES_MAX:
                break
        return body[:ERROR_BYTES_MAX]

    def header(self, name: str) -> str | None:
        return self._head.header(name)


def _anew(error: TransportError) -> TransportError:
    """Not itself: it would know those who were waiting, and they the stream, which knows it."""
    return type(error)(*error.args)


def lost(where: str) -> ConnectionLost:
    """In the middle of an answer, or before it."""
    return ConnectionLost(f"the connection to {where} broke before the answer was complete")
