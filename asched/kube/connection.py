"""One keep-alive connection of `fast.py`: one request at a time, answers whole or streamed.

A response ends where its framing says, or with the connection if it has none; 1xx responses are
skipped. Bytes after the end are invalid, because requests are never pipelined: the connection is
then closed. HEAD is not supported: its responses announce bodies that never come.

Bounds  PIECES_BYTES_MAX (and one read more) of a stream are buffered; then the peer has to wait.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any, Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from asched.kube.errors import ConnectionLost, DeadlineExceeded, ProtocolBroken, TransportError
from asched.kube.transport import ERROR_BYTES_MAX, Reply

#: Limit of the bytes before the body, 1xx responses included. Go's client reads 1 MiB of header; an
#: API server never sends more.
HEAD_BYTES_MAX: Final = 1 << 20
#: Limit of the body on the wire, chunk sizes and trailers included. Generous: an object has at most
#: 1.5 MiB in etcd, and lists are streamed.
BODY_BYTES_MAX: Final = 64 << 20
_HEAD_END: Final = b"\r\n\r\n"


class ResponseReader:
    """Feed it bytes until it returns a Reply. `reusable`: whether the connection can be reused.

    `bytes_max` limits a body on the wire. The methods `on_...` are called by the parser.
    """

    __slots__ = (
        "_body",
        "_bytes_max",
        "_got",
        "_head",
        "_interim",
        "_is_whole",
        "_parser",
        "_status",
        "in_head",
        "reusable",
    )

    def __init__(self, bytes_max: float = BODY_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._parser: Any = HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Prepare for the response to the next request."""
        self._head: list[bytes] = []
        self._body: bytes | bytearray = b""
        self._got = 0
        self._status = 0
        self._interim = 0
        self.in_head = True
        self._is_whole = False
        self.reusable = True

    def feed(self, data: bytes) -> Reply | None:
        """Parse received bytes. Raises ProtocolBroken."""
        self._got += len(data)
        if self.in_head:
            self._head.append(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.reusable = False
            if not self._is_whole:  # else the invalid bytes came after the end
                raise ProtocolBroken(f"the answer is not HTTP/1.1: {error}") from None
        if self._is_whole:
            return self._reply()
        if self._got > (HEAD_BYTES_MAX if self.in_head else self._bytes_max):
            what = "header of the answer" if self.in_head else "answer"
            raise ProtocolBroken(f"the {what} has no end within {self._got} bytes")
        return None

    def close(self) -> None:
        """Nothing more arrives. The parser knows us, and we it: who is old by then would stay for
        good, since no garbage collection visits old objects (`host/memory.py`).
        """
        self._parser = None

    def end_of_stream(self) -> Reply | None:
        """The peer has closed: a Reply if that was the end of the body, else None."""
        self.reusable = False
        if self.in_head:
            return None
        reply = self._reply()
        is_framed = reply.header("Content-Length") or reply.header("Transfer-Encoding")
        return None if is_framed else reply

    @property
    def is_untouched(self) -> bool:
        """Nothing of the answer has arrived yet."""
        return not self._got

    def _reply(self) -> Reply:
        head = b"".join(self._head).split(_HEAD_END, self._interim + 1)[self._interim]
        return Reply(self._status, bytes(self._body), head)

    def on_message_begin(self) -> None:
        if self._is_whole:
            self.reusable = False

    def on_headers_complete(self) -> None:
        if not self._is_whole:
            self._status = self._parser.get_status_code()
            self.in_head = self._status < 200

    def on_body(self, data: bytes) -> None:
        if self._is_whole:
            return
        if not self._body:
            self._body = data  # mostly all of it
            return
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += data

    def on_message_complete(self) -> None:
        if self.in_head:
            self._interim += 1
        elif not self._is_whole:
            self._is_whole = True
            self.reusable = self._parser.should_keep_alive()


class PieceReader(ResponseReader):
    """Of one response whose body is taken as it comes, however long it is."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        super().__init__(inf)
        self._pieces: list[bytes] = []
        #: Bytes of the body that wait to be taken.
        self.size = 0

    def head(self) -> Reply:
        """Status and headers, once they are whole."""
        reply = self._reply()
        self._head, self._interim = [reply.head, _HEAD_END], 0  # the rest may be long
        return reply

    def take(self) -> bytes:
        """What has arrived of the body since."""
        pieces, self._pieces, self.size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def on_body(self, data: bytes) -> None:
        if not self._is_whole:
            self._pieces.append(data)
            self.size += len(data)


#: client-go pings a silent HTTP/2 connection after 30 s; here TCP keep-alive detects dead peers.
KEEPALIVE_IDLE_S: Final = 30
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3


def set_keepalive(made: socket.socket) -> None:
    """Enable TCP keep-alive; options that a platform lacks are left out."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def connect_problem(error: BaseException, cure: str = "check the kubeconfig's CA") -> str:
    """Why a connection failed, for a user; `cure` is the advice for untrusted certificates."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message}); {cure}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed ({cause.reason or cause})"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return f"unknown host ({cause.strerror})"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__


PIECES_BYTES_MAX: Final = 1 << 20


class Home(Protocol):
    """The pool that owns the connections."""

    loop: asyncio.AbstractEventLoop
    where: str
    answer_bytes_max: int

    def forget(self, connection: "Connection") -> None:
        """A connection has closed."""


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
        # uvloop's transports do not derive from asyncio's classes.
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
        """Write a request whose answer is streamed, until `end_stream`."""
        assert self._transport is not None
        assert self._waiter is None, "requests are never pipelined"
        self._stream = LiveStream(self._transport, self._home)
        self._transport.write(data)
        return self._stream

    def end_stream(self) -> None:
        """End reading. Unless the answer was complete the connection is aborted: an orderly TLS
        shutdown would wait for the peer and might outlast the loop.
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
        if self._waiter is None:  # bytes without a request: a 408, or invalid
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
        """A reused connection that closed before any byte of this answer."""
        answer = self._stream or self._reader
        return self.was_used and answer.is_untouched

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class LiveStream:
    """A streamed answer, ready once `begun` has been awaited."""

    def __init__(self, transport: asyncio.Transport, home: Home) -> None:
        #: done when the head has arrived or the stream has failed
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
        self._arrived: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_spent(self) -> bool:
        """The answer is complete and the connection can be reused."""
        return self._is_whole and self._reader.reusable and not self._is_paused

    @property
    def is_untouched(self) -> bool:
        """No byte of the answer has arrived."""
        return self._reader.is_untouched

    # --- called by the connection ----------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        if self._is_whole:  # bytes after the end of the answer
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
        """Raise this error to the reader once the received bytes are read."""
        if self._error is None and not self._is_whole:
            self._error = error
        if not self._begun.done():
            self._begun.set_result(None)
        self._wake()

    def close(self) -> None:
        """The peer has closed; received bytes can still be read."""
        self._reader.close()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # --- called by readers -----------------------------------------------------------------------

    def until(self, deadline_s: float, expired: Callable[[], None]) -> None:
        """End the stream at the deadline; `expired` is called then."""

        def expire() -> None:
            if not self._is_whole and self._error is None:
                expired()
                self.fail(DeadlineExceeded(f"{self._home.where} did not answer in time"))

        self._timer = self._home.loop.call_at(deadline_s, expire)

    def leave(self) -> None:
        """Stop reading."""
        if self._timer is not None:
            self._timer.cancel()

    async def begun(self) -> None:
        """Wait for the head. Raises TransportError."""
        await self._begun
        if not self.status and self._error is not None:
            raise _anew(self._error)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Received bytes as they arrive. Raises TransportError."""
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
                self._arrived = self._home.loop.create_future()
                await self._arrived

    async def read_all(self) -> bytes:
        """The body of an error, truncated if long."""
        body = b""
        async for piece in self.chunks():
            body += piece
            if len(body) >= ERROR_BYTES_MAX:
                break
        return body[:ERROR_BYTES_MAX]

    def header(self, name: str) -> str | None:
        return self._head.header(name)


def _anew(error: TransportError) -> TransportError:
    """A copy: the original refers to the waiting frames and through them to the stream."""
    return type(error)(*error.args)


def lost(where: str) -> ConnectionLost:
    """The error for a connection that broke before the answer was complete."""
    return ConnectionLost(f"the connection to {where} broke before the answer was complete")
