"""A port, and who may stay in it: connections are counted before TLS begins, and none may dawdle.

    accepted ─> admitted? ─TLS─> head ─> page ─> idle ─> head ─> ...
                            └── HEAD_S ──┘       └ IDLE_S ┘

The kubelet's probe decides whether this process lives, and it comes through the same port as
everybody else. So nobody is turned away while somebody else's connection merely waits: of the peer
with the most connections the one that waited longest is closed. Only where all are being answered
the new one goes. What is closed is aborted: no goodbye of TLS is waited for.

Bounds  `Limits`: connections in all and by peer, seconds for TLS and head together, seconds of
        silence between requests, seconds for unread rests of a body. Of the process's descriptors
        three of four are kept back for the API client and files.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, cast

import msgspec
from aiohttp import web

log = logging.getLogger("asched.serve")

CONNECTIONS_MAX: Final = 256
PEER_CONNECTIONS_MAX: Final = 64
#: One in so many descriptors may be a connection of somebody who asks.
DESCRIPTORS_SHARE: Final = 4
HEAD_S: Final = 10.0
#: As upstream: how long a silent connection is kept.
IDLE_S: Final = 90.0
#: How long the rest of a body that nobody wants is read, so that the answer is not lost.
LINGER_S: Final = 1.0
HEAD_BYTES_MAX: Final = 64 * 1024
SHUTDOWN_S: Final = 5.0
#: After a failure to accept, which as a rule is a lack of descriptors.
ACCEPT_AGAIN_S: Final = 1.0

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def connections_max() -> int:
    """How many connections the process can afford."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(min(CONNECTIONS_MAX, soft // DESCRIPTORS_SHARE), 1)


class Limits(msgspec.Struct, frozen=True):
    """`in_all` 0: what `connections_max` says."""

    in_all: int = 0
    by_peer: int = PEER_CONNECTIONS_MAX
    head_s: float = HEAD_S
    idle_s: float = IDLE_S
    linger_s: float = LINGER_S


class Guest:
    """One connection, and how long it may still keep us waiting."""

    def __init__(self, door: "Door", sock: socket.socket, peer: str) -> None:
        self.peer = peer
        self.transport: asyncio.Transport | None = None
        self.is_busy = False
        self.is_idle = False
        #: Since when it has kept us waiting.
        self.since_s = 0.0
        self._door = door
        self._sock = sock
        self._deadline: asyncio.TimerHandle | None = None
        self._waits(door.limits.head_s)

    def heard(self) -> None:
        """Bytes came: the head of a request, if none is being answered."""
        if self.is_idle:
            self.is_idle = False
            self._waits(self._door.limits.head_s)

    def asked(self) -> None:
        """A request's head is whole."""
        self.is_busy, self.is_idle = True, False
        self._forgive()

    def answered(self) -> None:
        """The page is made; now it is read, and the next request may come."""
        self.is_busy, self.is_idle = False, True
        self._waits(self._door.limits.idle_s)

    def close(self) -> None:
        """At once, whatever it is doing."""
        self.left()
        if self.transport is not None:
            self.transport.abort()
            return
        with suppress(OSError):  # in the middle of the handshake, which ends by this
            self._sock.shutdown(socket.SHUT_RDWR)

    def left(self) -> None:
        """Nothing is waited for any more."""
        self._forgive()
        self._door.forget(self)

    def _waits(self, seconds: float) -> None:
        self._forgive()
        self.since_s = monotonic()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.close)

    def _forgive(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Talk(web.RequestHandler):
    """HTTP of one connection; a stranger's broken request is no error of ours."""

    def __init__(self, guest: Guest, server: web.Server, **settings: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **settings)
        self.guest = guest

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.guest.transport = cast("asyncio.Transport", transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.guest.heard()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.guest.left()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        _quiet("A request could not be read", self.guest.peer, exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        response = web.Response(status=status, text=f"{status} {message or 'Bad Request'}\n")
        response.force_close()
        return response


class Door:
    """Listens, lets in, and hands whole requests to `handle`. Plain HTTP without a `context`."""

    def __init__(
        self, handle: Handle, context: ssl.SSLContext | None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._in_all = self.limits.in_all or connections_max()
        self._handle = handle
        self._context = context
        self._guests: set[Guest] = set()
        self._by_peer: Counter[str] = Counter()
        self._pages = web.Server(self._answer)
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, listening: Sequence[socket.socket]) -> int:
        """Let them in who come by these sockets (`listening.py`), which are ours from now on; the
        port's number.
        """
        self._listening = list(listening)
        for one in self._listening:
            self._spawn(self._accept(one))
        number: int = self._listening[0].getsockname()[1]
        return number

    async def close(self) -> None:
        """Finish what is under way, then close."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._listening:
            listening.close()
        self._listening.clear()
        for guest in [guest for guest in self._guests if not guest.is_busy]:
            guest.close()
        self._pages.pre_shutdown()
        await self._pages.shutdown(SHUTDOWN_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- connections -----------------------------------------------------------------------------

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # gone before it came in
            except OSError as error:
                log.warning("No connection can be accepted", extra={"err": error})
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            guest = Guest(self, sock, str(address[0]))
            if self._admits(guest):
                self._spawn(self._enter(guest, sock))
            else:
                guest.left()
                sock.close()

    def _admits(self, guest: Guest) -> bool:
        """Whether there is room, or somebody who only waits has made some."""
        own = self._by_peer[guest.peer]
        is_crowd = own >= self.limits.by_peer
        if is_crowd or len(self._guests) >= self._in_all:
            log.warning(
                "Too many connections; who has waited longest is closed",
                extra={
                    "cause": "connections",
                    "peer": guest.peer,
                    "ofPeer": own,
                    "inAll": len(self._guests),
                },
            )
            waiting = [
                other
                for other in self._guests
                if not other.is_busy and (other.peer == guest.peer or not is_crowd)
            ]
            if not waiting:
                return False
            min(waiting, key=lambda other: (-self._by_peer[other.peer], other.since_s)).close()
        self._guests.add(guest)
        self._by_peer[guest.peer] += 1
        return True

    def forget(self, guest: Guest) -> None:
        """It holds no place any more."""
        if guest in self._guests:
            self._guests.remove(guest)
            self._by_peer -= Counter({guest.peer: 1})

    async def _enter(self, guest: Guest, sock: socket.socket) -> None:
        """Shake hands; from then on HTTP has the connection."""
        talk = _Talk(
            guest,
            self._pages,
            logger=log,
            access_log=None,
            keepalive_timeout=self.limits.idle_s,
            lingering_time=self.limits.linger_s,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
        )
        is_tls = self._context is not None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: talk,
                sock,
                ssl=self._context,
                ssl_handshake_timeout=self.limits.head_s if is_tls else None,
                ssl_shutdown_timeout=self.limits.linger_s if is_tls else None,
            )
        except (OSError, EOFError) as error:
            _quiet("TLS handshake error", guest.peer, error)
            guest.close()

    # --- requests --------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        talk = request.protocol
        assert isinstance(talk, _Talk)
        talk.guest.asked()
        try:
            # Requests that came in one piece take turns, and end with their connection.
            await asyncio.sleep(0)
            return await self._handle(request)
        finally:
            talk.guest.answered()


def _quiet(message: str, peer: str, error: BaseException | None) -> None:
    log.info(message, extra={"v": 4, "peer": peer, "err": error})
