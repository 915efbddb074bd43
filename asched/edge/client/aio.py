"""The transport behind a proxy: aiohttp, with its errors turned into ours.

Bounds  as many connections as there are streams and rare requests (the callers' tasks bound them);
        a stream ends at its deadline; keep-alive probes find a dead peer after about a minute; of
        an error's body ERROR_BYTES_MAX are read, of others ANSWER_BYTES_MAX.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from yarl import URL

from asched.edge.client.credentials import Credentials
from asched.edge.client.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    ProtocolBroken,
    TransportError,
)
from asched.edge.client.sockets import connect_problem, keepalive_socket
from asched.edge.client.transport import (
    ANSWER_BYTES_MAX,
    CONNECT_TIMEOUT_S,
    ERROR_BYTES_MAX,
    HEADER_TIMEOUT_S,
    JSON,
    Exchange,
    Observer,
    Reply,
    StreamingTransport,
    no_fence,
    nobody_minds,
    observe_nothing,
)

#: New connections are made at most so often because of deadlines, and so many sets of older ones
#: are left to end: requests under way on them have 20 s at least.
RETIRE_EVERY_S: Final = 5.0
RETIRED_MAX: Final = 4


class AioStream:
    """A running answer of aiohttp."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        where: str,
        on_error: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        self._response = response
        self._on_error = on_error
        self._where = where
        self.status = response.status

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self._on_error(error)
            raise _translate(error, self._where) from error

    async def read_all(self) -> bytes:
        try:
            return (await _read(self._response, ERROR_BYTES_MAX))[:ERROR_BYTES_MAX]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _translate(error, self._where) from error

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)


class AioTransport(StreamingTransport):
    """HTTP/1.1 through aiohttp."""

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str,
        observe: Observer = observe_nothing,
        may_send: Callable[[], bool] = no_fence,
        headers: Mapping[str, str] | None = None,
        distrusted: Callable[[], None] = nobody_minds,
    ) -> None:
        """`headers` go with every request. `distrusted`: called when idle connections may have been
        forgotten on the way.
        """
        super().__init__(credentials, observe, may_send)
        self._distrusted = distrusted
        self._headers = {"User-Agent": user_agent, "Accept": JSON, **(headers or {})}
        self._session = self._fresh()
        #: Sessions given up at a deadline: what runs on them may end there.
        self._retired: list[aiohttp.ClientSession] = []
        self._fresh_s = -RETIRE_EVERY_S

    def _fresh(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=keepalive_socket),
            headers=self._headers,
            # No compression, as kube-scheduler: on a good network it costs more than it saves.
            skip_auto_headers=("Accept-Encoding",),
            read_bufsize=1 << 20,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def _distrust(self, error: BaseException) -> None:
        """After a deadline use new connections only: whatever swallowed one answer, a box on the
        way that has forgotten us, say, has probably done so to the idle ones, too.
        """
        now_s = asyncio.get_running_loop().time()
        if not isinstance(error, TimeoutError) or now_s < self._fresh_s + RETIRE_EVERY_S:
            return
        self._fresh_s = now_s
        self._distrusted()
        self._retired.append(self._session)
        self._session = self._fresh()
        while len(self._retired) > RETIRED_MAX:
            await self._retired.pop(0).close()

    async def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        accept: str,
        timeout_s: float,
    ) -> Reply:
        self._look_at_fence()  # aiohttp may still open a connection after it
        timeout = aiohttp.ClientTimeout(
            total=timeout_s, sock_connect=min(timeout_s, CONNECT_TIMEOUT_S)
        )
        headers = {"Content-Type": content_type} if body is not None else {}
        if accept != JSON:
            headers["Accept"] = accept
        arguments = self._arguments(headers, timeout)
        try:
            async with self._session.request(
                method, self._url(path), data=body, **arguments
            ) as response:
                content = await _read(response, ANSWER_BYTES_MAX)
                if len(content) > ANSWER_BYTES_MAX:
                    response.close()
                    raise ProtocolBroken(f"the answer has no end within {ANSWER_BYTES_MAX} bytes")
                head = b"\r\n" + b"\r\n".join(
                    name + b": " + value for name, value in response.raw_headers
                )
                return Reply(response.status, content, head)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self._distrust(error)
            raise _translate(error, self._credentials.url) from error

    @asynccontextmanager
    async def stream(self, path: str, *, timeout_s: float) -> AsyncIterator[AioStream]:
        credentials = self._credentials
        credentials.keep_fresh()
        used = credentials.authorization
        response = await self._open(path, timeout_s)
        if response.status == 401 and await credentials.reload(used, CONNECT_TIMEOUT_S):
            response.release()
            response = await self._open(path, timeout_s)
        self._observe(Exchange("GET", credentials.host, str(response.status)))
        try:
            yield AioStream(response, credentials.url, self._distrust)
        finally:
            connection = response.connection
            if connection is not None and connection.transport is not None:
                # A polite end of TLS waits for a peer that may be silent, and outlives the loop.
                connection.transport.abort()
            response.close()

    async def _open(self, path: str, timeout_s: float) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(HEADER_TIMEOUT_S):
                return await self._session.request(
                    "GET", self._url(path), **self._arguments({}, timeout)
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self._distrust(error)
            raise _translate(error, self._credentials.url) from error

    def _url(self, path: str) -> URL:
        return URL(f"{self._credentials.url}{self._credentials.base_path}{path}", encoded=True)

    def _arguments(self, headers: dict[str, str], timeout: aiohttp.ClientTimeout) -> dict[str, Any]:
        credentials = self._credentials
        arguments: dict[str, Any] = {
            "headers": [*headers.items(), *credentials.headers],
            "timeout": timeout,
            "allow_redirects": False,
        }
        tls = credentials.tls()
        if tls is not None:
            arguments["ssl"] = tls
            if credentials.server_name:
                arguments["server_hostname"] = credentials.server_name
        if credentials.proxy:
            arguments["proxy"] = credentials.proxy
        return arguments

    async def close(self) -> None:
        for session in (*self._retired, self._session):
            await session.close()


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, or where it is longer, a little more than `limit` of it."""
    pieces: list[bytes] = []
    count = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        count += len(piece)
        if count > limit:
            break
    return b"".join(pieces)


def _translate(error: BaseException, where: str) -> TransportError:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectFailed(f"cannot reach {where}: no connection within {CONNECT_TIMEOUT_S:g} s")
    if isinstance(error, TimeoutError):
        return DeadlineExceeded(f"{where} did not answer in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ConnectFailed(f"cannot reach {where}: {connect_problem(error)}")
    if isinstance(error, aiohttp.ClientResponseError):
        return ProtocolBroken(f"{where} sent no valid HTTP: {error}")
    return ConnectionLost(f"the connection to {where} broke: {str(error) or type(error).__name__}")
