"""HTTP/1.1 to an API server: a pool of keep-alive connections, through a proxy if configured
(`proxies.py`).

A request is one write; its answer is read whole or streamed; requests are never pipelined. The kind
of failure decides what happens to a binding, so two cases are distinguished: nothing was written
(ConnectFailed: refused, no TLS, no free connection in time) and something was (ConnectionLost,
DeadlineExceeded, ProtocolBroken: the server may have acted). A reused connection that breaks before
any byte of an answer was probably closed by the server while the request was sent: reads are
repeated once on a new connection, writes are not, because the server may have received them.

Bounds  `limit` connections, streams included, OPENING_MAX of them opened at a time if there is a
        limit; an idle connection is closed after IDLE_S_MAX, before servers and load balancers do
        so; `answer_bytes_max` of a whole answer.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Final

from asched.kube.connection import BODY_BYTES_MAX, Connection, LiveStream, connect_problem
from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from asched.kube.proxies import Proxy, open_tunnel, verification
from asched.kube.transport import (
    CONNECT_TIMEOUT_S,
    HEADER_TIMEOUT_S,
    JSON,
    Exchange,
    Observer,
    Reply,
    StreamingTransport,
    WireRequest,
    no_fence,
    observe_nothing,
)

#: Cloud load balancers close idle connections after 60 s and more; Go's default client after 90 s.
IDLE_S_MAX: Final = 50.0
#: A TLS handshake costs both sides as much as a request: requests of a burst wait for the
#: connections being opened, or a freed one, rather than open one each.
OPENING_MAX: Final = 8
#: Closing waits for the transports to close, so that none outlasts the loop.
CLOSE_S_MAX: Final = 1.0


class FastTransport(StreamingTransport):
    """HTTP/1.1 over at most `limit` connections. `distrusted` is called when a device on the
    network path may have dropped idle connections.
    """

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str,
        *,
        limit: float,
        observe: Observer = observe_nothing,
        may_send: Callable[[], bool] = no_fence,
        answer_bytes_max: int = BODY_BYTES_MAX,
        distrusted: Callable[[], None] = lambda: None,
        headers: Mapping[str, str] | None = None,
        stream_accept: str = JSON,
    ) -> None:
        """`headers` are sent with every request, `stream_accept` with streamed ones."""
        super().__init__(credentials, observe, may_send)
        self._own_headers = headers or {}
        self._stream_accept = stream_accept
        self.loop = asyncio.get_running_loop()
        self.where = credentials.url
        self.answer_bytes_max = answer_bytes_max
        self._distrusted = distrusted
        self._limit = limit
        self._user_agent = user_agent
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._opening = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._heads: dict[tuple[str, str], bytes] = {}
        self._heads_for: tuple[str | None, int] | None = None
        self._prefix = b""

    @property
    def connection_count(self) -> int:
        return len(self._open)

    async def _exchange(self, request: WireRequest, timeout_s: float) -> Reply:
        assert request.method != "HEAD", "the parser would wait for the body of the answer"
        deadline_s = self.loop.time() + timeout_s
        data = self._encode(request)
        connection = await self._acquire(deadline_s)
        try:
            return await self._run(connection, data, deadline_s)
        except ConnectionLost:
            if request.method != "GET" or not connection.is_stale:
                raise
        fresh = await self._acquire(deadline_s, fresh=True)
        return await self._run(fresh, data, deadline_s)

    async def _run(self, connection: Connection, data: bytes, deadline_s: float) -> Reply:
        timer = self.loop.call_at(deadline_s, self._expire, connection, self.loop.time())
        try:
            self._check_fence()  # no await between this and the first byte
            reply = await connection.send(data)
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            timer.cancel()
            self._release(connection)
        return reply

    async def prepare(self) -> None:
        self._release(await self._connect(self.loop.time() + CONNECT_TIMEOUT_S))

    def _expire(self, connection: Connection, sent_s: float) -> None:
        """Fail the request, and close connections without an answer since it was sent: the network
        has probably dropped them, too.
        """
        connection.expire()
        self.distrust(sent_s)
        self._distrusted()

    def distrust(self, last_complete_s: float) -> None:
        """Close idle connections that received nothing since then."""
        for idle in tuple(self._idle):
            if idle.idle_since_s <= last_complete_s:
                idle.abort()

    # --- streamed answers ------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, path: str, *, timeout_s: float) -> AsyncIterator[LiveStream]:
        credentials = self._credentials
        credentials.keep_fresh()
        used = credentials.authorization
        connection, live = await self._begin(path)
        if live.status == 401 and await credentials.reload(used, CONNECT_TIMEOUT_S):
            self._leave(connection, live)
            connection, live = await self._begin(path)
        self._observe(Exchange("GET", credentials.host, str(live.status)))
        live.until(self.loop.time() + timeout_s, self._distrust_all)
        try:
            yield live
        finally:
            self._leave(connection, live)

    async def _begin(self, path: str) -> tuple[Connection, LiveStream]:
        """Send the request and read the head of the answer. Raises TransportError."""
        deadline_s = self.loop.time() + HEADER_TIMEOUT_S
        data = self._encode(WireRequest("GET", path, accept=self._stream_accept))
        connection = await self._acquire(deadline_s)
        try:
            return connection, await self._headed(connection, data, deadline_s)
        except ConnectionLost:
            if not connection.is_stale:
                raise
        fresh = await self._acquire(deadline_s, fresh=True)
        return fresh, await self._headed(fresh, data, deadline_s)

    async def _headed(self, connection: Connection, data: bytes, deadline_s: float) -> LiveStream:
        live = connection.stream(data)
        try:
            async with asyncio.timeout_at(deadline_s):
                await live.begun()
        except TimeoutError:
            self._distrust_all()
            connection.abort()
            raise DeadlineExceeded(f"{self.where} did not answer in time") from None
        except BaseException:
            connection.abort()
            raise
        return live

    def _leave(self, connection: Connection, live: LiveStream) -> None:
        live.leave()
        connection.end_stream()
        self._release(connection)

    def _distrust_all(self) -> None:
        """Close idle connections here and in other pools: a device on the network path that dropped
        one connection has probably dropped them, too.
        """
        self.distrust(self.loop.time())
        self._distrusted()

    # --- requests --------------------------------------------------------------------------------

    def _encode(self, request: WireRequest) -> bytes:
        """The whole request as bytes; everything but path and length is cached."""
        credentials = self._credentials
        heads_for = (credentials.authorization, credentials.generation)
        if heads_for != self._heads_for:
            self._heads_for = heads_for
            # A proxy of plain HTTP needs the absolute URL.
            is_proxied = credentials.proxy is not None and not credentials.is_tls
            self._prefix = (
                f"{credentials.url if is_proxied else ''}{credentials.base_path}".encode()
            )
            self._heads.clear()
        method, path, body, content_type, accept = request
        start = f"{method} ".encode() + self._prefix + path.encode() + b" HTTP/1.1\r\n"
        if body is None:
            return start + self._head("", accept) + b"\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        return start + self._head(content_type, accept) + length + body

    def _head(self, content_type: str, accept: str) -> bytes:
        head = self._heads.get((content_type, accept))
        if head is None:
            lines = [f"Host: {self._credentials.host}", f"User-Agent: {self._user_agent}"]
            lines.append(f"Accept: {accept}")
            own = self._own_headers.items()
            lines += [f"{name}: {value}" for name, value in (*self._credentials.headers, *own)]
            if self._credentials.proxy is not None and not self._credentials.is_tls:
                lines += Proxy.of(self._credentials.proxy).headers
            if content_type:
                lines.append(f"Content-Type: {content_type}")
            head = "".join(f"{line}\r\n" for line in lines).encode()
            self._heads[content_type, accept] = head
        return head

    # --- connections -----------------------------------------------------------------------------

    async def _acquire(self, deadline_s: float, *, fresh: bool = False) -> Connection:
        """An open connection. Raises ConnectFailed; nothing has been written then."""
        while True:
            connection = None if fresh else self._take_idle()
            if connection is not None:
                return connection
            if self._may_open():
                return await self._connect(deadline_s)
            if fresh and self._idle:
                self._idle.pop(0).abort()
            await self._wait_for_turn(deadline_s)

    def _may_open(self) -> bool:
        if self._limit == inf:
            return True
        return self._opening < OPENING_MAX and len(self._open) + self._opening < self._limit

    def _take_idle(self) -> Connection | None:
        """The most recently used connection, the least likely to have been closed."""
        oldest_s = self.loop.time() - IDLE_S_MAX
        while self._idle:
            connection = self._idle.pop()
            if (
                connection.is_open
                and connection.idle_since_s >= oldest_s
                and connection.generation == self._credentials.generation
            ):
                return connection
            connection.abort()
        return None

    async def _wait_for_turn(self, deadline_s: float) -> None:
        turn = self.loop.create_future()
        self._waiters.append(turn)
        try:
            async with asyncio.timeout_at(deadline_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # pass a turn that came too late on
                self._wake_one()
            if isinstance(error, TimeoutError):
                raise ConnectFailed(f"no connection to {self.where} became free in time") from None
            raise

    async def _connect(self, deadline_s: float) -> Connection:
        credentials = self._credentials
        proxy = Proxy.of(credentials.proxy) if credentials.proxy is not None else None
        where = self.where if proxy is None else f"{self.where} through the proxy {proxy.name}"
        self._opening += 1
        try:
            deadline_s = min(deadline_s, self.loop.time() + CONNECT_TIMEOUT_S)
            async with asyncio.timeout_at(deadline_s):
                connection = await self._open_connection(proxy)
        except TimeoutError:
            raise ConnectFailed(f"cannot reach {where}: no connection in time") from None
        except OSError as error:  # includes ssl.SSLError
            raise ConnectFailed(f"cannot reach {where}: {connect_problem(error)}") from error
        finally:
            self._opening -= 1
            self._wake_one()
        if not connection.is_open:
            raise ConnectFailed(f"{self.where} closed the connection at once")
        connection.generation = credentials.generation
        self._open.add(connection)
        return connection

    async def _open_connection(self, proxy: Proxy | None) -> Connection:
        """Raises OSError."""
        credentials, connection = self._credentials, Connection(self)
        tls = credentials.tls()
        server_name = (credentials.server_name or credentials.hostname) if tls else None
        if proxy is None:
            await self.loop.create_connection(
                lambda: connection,
                credentials.hostname,
                credentials.port,
                ssl=tls,
                server_hostname=server_name,
            )
        elif tls is None:
            context, name = verification(proxy, None)
            await self.loop.create_connection(
                lambda: connection, proxy.host, proxy.port, ssl=context, server_hostname=name
            )
        else:
            tunnel = await open_tunnel(proxy, credentials.host, tls)
            try:
                transport = await self.loop.start_tls(
                    tunnel, connection, tls, server_hostname=server_name
                )
            except BaseException:
                tunnel.abort()
                raise
            if transport is not None:  # else it has closed meanwhile
                connection.connection_made(transport)
        return connection

    def _release(self, connection: Connection) -> None:
        connection.was_used = True
        if connection.is_open:
            connection.idle_since_s = self.loop.time()
            self._idle.append(connection)
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def forget(self, connection: Connection) -> None:
        """Called by a connection that has closed."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._wake_one()

    async def close(self) -> None:
        self._idle.clear()
        closing = list(self._open)
        for connection in closing:
            connection.abort()
        if closing:
            await asyncio.wait([connection.closed for connection in closing], timeout=CLOSE_S_MAX)
