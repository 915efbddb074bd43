"""A server's connections: limited before TLS begins, with deadlines, one request at a time each.

    accepted ─> admitted? ─> first bytes ─TLS─> head ─> page ─> idle ─> head ─> ...
                          └──────── HEAD_S ────────┘         └ IDLE_S ┘

A new connection is accepted as long as another one is idle: of the address with the most
connections the one that has been idle longest is closed. It is refused only if all are being
answered. The closed one gets no TLS shutdown. Connections of addresses that probe (`turns.py`) are
counted by themselves, so that no other client's take their place.

Bounds  `Limits`: connections in all and by address, seconds for TLS and head together, idle seconds
        between requests and for reading an answer, seconds for unread rests of a body; bytes of a
        head (`request.py`). Addresses that probe may have another PROBER_SHARE of the connections.
        At least two of three file descriptors are reserved for the API client and files.
        ACCEPTS_MAX connections are accepted at a time.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from email.utils import formatdate
from http import HTTPStatus
from operator import attrgetter
from time import monotonic
from typing import Any, Final

import msgspec

from asched.kube.tasks import ended
from asched.serve.client_stream import ClientStream
from asched.serve.health import ROOTS
from asched.serve.options import CannotServeError
from asched.serve.pages import Page, text
from asched.serve.request import BadRequestError, HttpRequest, read_request
from asched.serve.turns import FairSelector

log = logging.getLogger("asched.serve")

CONNECTIONS_MAX: Final = 256
PEER_CONNECTIONS_MAX: Final = 64
#: One of this many file descriptors may be a client's connection.
DESCRIPTORS_SHARE: Final = 4
#: Connections of addresses that probe, for each one of all others.
PROBER_SHARE: Final = 0.25
HEAD_S: Final = 10.0
#: As upstream: how long an idle connection is kept.
IDLE_S: Final = 90.0
#: How long the unneeded rest of a body is read, so that the client gets the answer.
LINGER_S: Final = 1.0
SHUTDOWN_S: Final = 5.0
ACCEPTS_MAX: Final = 16
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
    """A client's connection. It is busy while its page is being made, and has a deadline until its
    first bytes arrive.
    """

    def __init__(self, sock: socket.socket, peer: str, *, is_prober: bool = False) -> None:
        self.sock = sock
        self.stream = ClientStream(sock)
        self.deadline: asyncio.TimerHandle | None = None
        self.descriptor = sock.fileno()
        self.peer = peer
        self.is_prober = is_prober
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
        in_all = self.limits.in_all or connections_max()
        #: Connections at a time, by whether their address probes.
        self._in_all = {False: in_all, True: max(int(in_all * PROBER_SHARE), 1)}
        self._handle = handle
        self._context = context
        self._turns = turns
        self._connections: set[_Connection] = set()
        self._count = {False: 0, True: 0}
        self._by_peer: Counter[str] = Counter()
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def open(self, listening: Sequence[socket.socket]) -> int:
        """Accept from these sockets, which the server then owns; returns the port
        number.
        """
        self._listening = list(listening)
        for sock in self._listening:
            if self._turns is not None:
                self._turns.listen(sock.fileno())
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)
        number: int = self._listening[0].getsockname()[1]
        return number

    async def close(self) -> None:
        """Finish requests in progress, then close."""
        self._is_closing = True
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            if self._turns is not None:
                self._turns.leave(listening.fileno())
            listening.close()
        self._listening.clear()
        for connection in tuple(self._connections):
            if connection.deadline is not None:
                self._drop(connection)
            elif not connection.is_busy:
                connection.stream.end()
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks, timeout=SHUTDOWN_S)
            await ended(unfinished)

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
            peer = str(address[0])
            is_prober = self._turns is not None and self._turns.is_prober(peer)
            connection = _Connection(sock, peer, is_prober=is_prober)
            if self._admits(connection):
                loop.add_reader(sock, self._begin, connection)
                connection.deadline = loop.call_later(self.limits.head_s, self._drop, connection)
            else:
                sock.close()

    def _begin(self, connection: _Connection) -> None:
        """The first bytes have arrived, or the end."""
        self._stop_waiting(connection)
        self._spawn(self._enter(connection))

    def _drop(self, connection: _Connection) -> None:
        """Close a connection of which no byte was read."""
        self._stop_waiting(connection)
        self._forget(connection)
        connection.stream.close()

    def _stop_waiting(self, connection: _Connection) -> None:
        assert connection.deadline is not None
        connection.deadline.cancel()
        connection.deadline = None
        asyncio.get_running_loop().remove_reader(connection.sock)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _admits(self, connection: _Connection) -> bool:
        """Whether the connection fits, if necessary after closing an idle one."""
        own = self._by_peer[connection.peer]
        is_crowd = own >= self.limits.by_peer
        count = self._count[connection.is_prober]
        if is_crowd or count >= self._in_all[connection.is_prober]:
            log.warning(
                "Too many connections; the longest idle one is closed",
                extra={
                    "cause": "connections",
                    "peer": connection.peer,
                    "ofPeer": own,
                    "inAll": count,
                },
            )
            waiting = [
                other
                for other in self._connections
                if not other.is_busy
                and (
                    other.peer == connection.peer
                    if is_crowd
                    else other.is_prober == connection.is_prober
                )
            ]
            if not waiting:
                return False
            most = max([self._by_peer[other.peer] for other in waiting])
            crowd = [other for other in waiting if self._by_peer[other.peer] == most]
            oldest = min(crowd, key=attrgetter("since_s"))
            if oldest.deadline is not None:
                self._drop(oldest)
            else:
                self._forget(oldest)
                oldest.stream.end()
        self._connections.add(connection)
        self._count[connection.is_prober] += 1
        self._by_peer[connection.peer] += 1
        if self._turns is not None:
            self._turns.join(connection.descriptor, connection.peer)
        return True

    def _forget(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._count[connection.is_prober] -= 1
        self._by_peer[connection.peer] -= 1
        if not self._by_peer[connection.peer]:
            del self._by_peer[connection.peer]
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
            async with asyncio.timeout(connection.since_s + self.limits.head_s - monotonic()):
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
            if self._turns is not None and (is_probe(request) or page.status < 400):
                self._turns.answered(connection.peer, is_probe=is_probe(request))
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


def is_probe(request: HttpRequest) -> bool:
    """Whether the request is for a health page."""
    return request.path.split("/")[1:2] in [[root] for root in ROOTS]


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


#: As many as are accepted in the time that a probe waits.
BACKLOG: Final = 512


async def listen(
    host: str, port: int, *, cure: str, reuse_port: bool = False
) -> list[socket.socket]:
    """Listening sockets. Raises CannotServeError, whose message ends with `cure`."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return _listen(found, reuse_port=reuse_port)
    except OSError as error:
        why = f"cannot listen on {host}:{port}: {error.strerror}; {cure}"
        raise CannotServeError(why) from error


def _listen(found: Iterable[tuple[Any, ...]], *, reuse_port: bool) -> list[socket.socket]:
    """A socket for each address that this machine has. Raises OSError."""
    listening: list[socket.socket] = []
    error_found = OSError(errno.EADDRNOTAVAIL, "no such address")
    for family, _, _, _, address in found:
        try:
            sock = socket.create_server(
                address[:2], family=family, backlog=BACKLOG, reuse_port=reuse_port
            )
        except OSError as error:
            error_found = error
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                continue  # for instance no IPv6
            for other in listening:
                other.close()
            raise
        sock.setblocking(False)
        listening.append(sock)
    if not listening:
        raise error_found
    return listening
