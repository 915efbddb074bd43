"""A server's connections: limited before TLS begins, with deadlines, one request at a time each.

    accepted ─> admitted? ─> first bytes ─TLS─> head ─> page ─> idle ─> head ─> ...
                          └──────── HEAD_S ────────┘         └ IDLE_S ┘

The kubelet's probe decides whether this process is restarted, and uses the same port as all other
clients. A new connection is therefore accepted as long as another one is idle: of the address with
the most connections the one that has been idle longest is closed. It is refused only if all are
being answered. The closed one gets no TLS shutdown.

Bounds  `Limits`: connections in all and by address, seconds for TLS and head together, idle seconds
        between requests and for reading an answer, seconds for unread rests of a body; bytes of a
        head (`request.py`). Three of four file descriptors are reserved for the API client and
        files. ACCEPTS_MAX connections are accepted at a time.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from email.utils import formatdate
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

import msgspec

from asched.serve.pages import Page, text
from asched.serve.request import BadRequestError, HttpRequest, read_request
from asched.serve.stream import ClientStream
from asched.serve.turns import FairSelector

log = logging.getLogger("asched.serve")

CONNECTIONS_MAX: Final = 256
PEER_CONNECTIONS_MAX: Final = 64
#: One of this many file descriptors may be a client's connection.
DESCRIPTORS_SHARE: Final = 4
HEAD_S: Final = 10.0
#: As upstream: how long an idle connection is kept.
IDLE_S: Final = 90.0
#: How long the unneeded rest of a body is read, so that the client gets the answer.
LINGER_S: Final = 1.0
SHUTDOWN_S: Final = 5.0
ACCEPTS_MAX: Final = 64
#: After a failure to accept, usually for lack of file descriptors.
ACCEPT_AGAIN_S: Final = 1.0

Handle = Callable[[HttpRequest], Awaitable[Page]]


def connections_max() -> int:
    """How many connections the process can afford."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(min(CONNECTIONS_MAX, soft // DESCRIPTORS_SHARE), 1)


class Limits(msgspec.Struct, frozen=True):
    """`in_all` 0 means `connections_max()`."""

    in_all: int = 0
    by_peer: int = PEER_CONNECTIONS_MAX
    head_s: float = HEAD_S
    idle_s: float = IDLE_S
    linger_s: float = LINGER_S


class _Connection:
    """A client's connection. It is busy while its page is being made."""

    def __init__(self, sock: socket.socket, peer: str) -> None:
        self.stream = ClientStream(sock)
        self.descriptor = sock.fileno()
        self.peer = peer
        self.is_busy = False
        #: When it became idle.
        self.since_s = monotonic()


class ConnectionServer:
    """Accepts connections and answers requests with the pages of `handle`. Plain HTTP without a
    `context`. With `turns`, the selector of its loop, clients are served in turn.
    """

    def __init__(
        self,
        handle: Handle,
        context: ssl.SSLContext | None,
        limits: Limits | None = None,
        turns: FairSelector | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._in_all = self.limits.in_all or connections_max()
        self._handle = handle
        self._context = context
        self._turns = turns
        self._connections: set[_Connection] = set()
        self._by_peer: Counter[str] = Counter()
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def open(self, listening: Sequence[socket.socket]) -> int:
        """Accept from these sockets (`listening.py`), which the server then owns; returns the port
        number.
        """
        self._listening = list(listening)
        for sock in self._listening:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)
        number: int = self._listening[0].getsockname()[1]
        return number

    async def close(self) -> None:
        """Finish requests in progress, then close."""
        self._is_closing = True
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._listening.clear()
        for connection in [
            connection for connection in self._connections if not connection.is_busy
        ]:
            connection.stream.end()
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks, timeout=SHUTDOWN_S)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    # --- connections -----------------------------------------------------------------------------

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTS_MAX):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # closed before it was accepted
            except OSError as error:
                log.warning("No connection can be accepted", extra={"err": error})
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_AGAIN_S, self._accept_again, listening)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(sock, str(address[0]))
            if self._admits(connection):
                self._spawn(self._enter(connection))
            else:
                sock.close()

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _admits(self, connection: _Connection) -> bool:
        """Whether the connection fits, if necessary after closing an idle one."""
        own = self._by_peer[connection.peer]
        is_crowd = own >= self.limits.by_peer
        if is_crowd or len(self._connections) >= self._in_all:
            log.warning(
                "Too many connections; the longest idle one is closed",
                extra={
                    "cause": "connections",
                    "peer": connection.peer,
                    "ofPeer": own,
                    "inAll": len(self._connections),
                },
            )
            waiting = [
                other
                for other in self._connections
                if not other.is_busy and (other.peer == connection.peer or not is_crowd)
            ]
            if not waiting:
                return False
            oldest = min(waiting, key=lambda other: (-self._by_peer[other.peer], other.since_s))
            self._forget(oldest)
            oldest.stream.end()
        self._connections.add(connection)
        self._by_peer[connection.peer] += 1
        if self._turns is not None:
            self._turns.join(connection.descriptor, connection.peer)
        return True

    def _forget(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._by_peer -= Counter({connection.peer: 1})
        if self._turns is not None:
            self._turns.leave(connection.descriptor)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _enter(self, connection: _Connection) -> None:
        """Do the handshake, then answer requests until the connection ends."""
        stream = connection.stream
        try:
            async with asyncio.timeout(self.limits.head_s):
                await stream.begin(self._context)
            await self._serve_requests(connection, stream)
        except (OSError, EOFError) as error:
            _quiet("A connection broke off", connection.peer, error)
        finally:
            self._forget(connection)
            stream.close()

    async def _serve_requests(self, connection: _Connection, stream: ClientStream) -> None:
        """Answer requests one after the other. Raises OSError, including TimeoutError."""
        began_s, first = connection.since_s, b""
        while True:
            try:
                async with asyncio.timeout(began_s + self.limits.head_s - monotonic()):
                    request = await read_request(stream, first)
            except BadRequestError as error:
                _quiet("A request could not be read", connection.peer, error)
                page = text(f"{error}\n", error.status, nosniff=True)
                async with asyncio.timeout(self.limits.linger_s):
                    await _send(stream, page, closes=True)
                    await stream.finish()
                return
            connection.is_busy = True
            try:
                page = await self._handle(request)
            finally:
                connection.is_busy, connection.since_s = False, monotonic()
            keeps = request.keeps_alive and request.is_read and not self._is_closing
            async with asyncio.timeout(self.limits.idle_s):
                await _send(stream, page, closes=not keeps, has_body=request.method != "HEAD")
                first = await stream.read(1) if keeps else b""
            if not keeps:
                async with asyncio.timeout(self.limits.linger_s):
                    await stream.finish()
            if not first:
                return
            began_s = monotonic()


async def _send(stream: ClientStream, page: Page, *, closes: bool, has_body: bool = True) -> None:
    headers = {
        "Content-Length": str(len(page.body)),
        "Date": formatdate(usegmt=True),
        "Server": "asched",
        **({"Content-Type": page.content_type} if page.content_type else {}),
        **({"Connection": "close"} if closes else {}),
        **page.headers,
    }
    lines = [f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode()
    await stream.send(head + page.body if has_body else head)


def _quiet(message: str, peer: str, error: BaseException | None) -> None:
    log.info(message, extra={"v": 4, "peer": peer, "err": error})
