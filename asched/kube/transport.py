"""The interface of HTTP transports, with requests and answers as values.

`fast.py` implements it (keep-alive connections over httptools), because aiohttp costs 79 µs of CPU
per request where 17 µs suffice; simulations have another implementation. Common to both: the token
is checked before each request, a 401 leads to one forced reload of the credentials and one retry
(the server did not carry out an unauthenticated request), and each exchange is passed to the
observer once.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Final, NamedTuple, Protocol

from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectFailed, api_error

JSON: Final = "application/json"
#: Servers that do not know the parameter ignore it.
WITHOUT_MANAGED_FIELDS: Final = f"{JSON};drop=metadata.managedFields"
#: Timeout of a request by default; kube-apiserver itself gives up after 60 s.
REQUEST_TIMEOUT_S: Final = 60.0
#: TCP, TLS and name resolution together; what Go's default transport allows for dialling.
CONNECT_TIMEOUT_S: Final = 30.0
#: Until the header of a streamed answer. Priority and fairness may delay a request by 15 s.
HEADER_TIMEOUT_S: Final = 20.0
#: The body of an error is read up to this size for streamed answers.
ERROR_BYTES_MAX: Final = 1 << 20
#: Limit of rare answers. Generous: lists are streamed.
ANSWER_BYTES_MAX: Final = 2 << 30
#: The code under which rest_client_requests_total counts requests without an answer, as in
#: client-go.
NO_CODE: Final = "<error>"


class WireRequest(NamedTuple):
    """A request as it is sent, with its query in the path."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON


class Exchange(NamedTuple):
    """One request and its result, for metrics. A stream is measured at its start only: as in
    client-go it has neither a duration nor sizes.
    """

    method: str
    host: str
    code: str  # status code or NO_CODE
    duration_s: float | None = None
    sent: int | None = None  # bytes of the body
    received: int | None = None  # bytes of the body; None without an answer


#: Called once per exchange.
Observer = Callable[[Exchange], None]


def observe_nothing(_exchange: Exchange) -> None:
    """Ignore the exchange."""


def no_fence() -> bool:
    """For clients without leader election: always send."""
    return True


class Reply:
    """A complete answer. Headers stay bytes until one is read."""

    __slots__ = ("body", "head", "status")

    def __init__(self, status: int, body: bytes, head: bytes = b"") -> None:
        self.status = status
        self.body = body
        self.head = head

    def header(self, name: str) -> str | None:
        """The value of a header, or None; names are case-insensitive."""
        wanted = name.lower()
        for line in self.head.split(b"\r\n")[1:]:
            key, colon, value = line.partition(b":")
            if colon and key.decode("latin-1").lower() == wanted:
                return value.decode("latin-1").strip()
        return None

    def __repr__(self) -> str:
        return f"Reply({self.status}, {self.body[:200]!r})"


def successful(reply: Reply) -> bytes:
    """The body of a successful answer. Raises ApiError for any other."""
    if not 200 <= reply.status < 300:
        raise api_error(reply.status, reply.body, reply.header("Retry-After"))
    return reply.body


class Stream(Protocol):
    """A streamed answer."""

    status: int

    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive. Raises TransportError if the stream breaks."""

    async def read_all(self) -> bytes:
        """The body of an error, truncated if long."""

    def header(self, name: str) -> str | None: ...


class Transport(ABC):
    """HTTP to one server. `request` raises TransportError; every status code is an answer."""

    def __init__(
        self, credentials: Credentials, observe: Observer, may_send: Callable[[], bool]
    ) -> None:
        self._credentials = credentials
        self._observe = observe
        self._may_send = may_send

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Reply:
        """One request and its whole answer, within `timeout_s`."""
        credentials, wire_request = (
            self._credentials,
            WireRequest(method, path, body, content_type, accept),
        )
        credentials.keep_fresh()
        started_s = monotonic()
        reply = None
        try:
            used = credentials.authorization
            reply = await self._exchange(wire_request, timeout_s)
            if reply.status == 401:
                end_s = started_s + timeout_s
                if await credentials.reload(used, end_s - monotonic()):
                    remaining_s = max(end_s - monotonic(), 0.0)
                    reply = await self._exchange(wire_request, remaining_s)
            return reply
        finally:
            code, received = NO_CODE, None
            if reply is not None:
                code, received = str(reply.status), len(reply.body)
            sent, took_s = len(body) if body is not None else 0, monotonic() - started_s
            self._observe(Exchange(method, credentials.host, code, took_s, sent, received))

    async def prepare(self) -> None:  # noqa: B027 - optional
        """Open a connection for the first request in advance, if supported. Raises
        TransportError.
        """

    def _check_fence(self) -> None:
        """Check the lease again: waits for connections and tokens may have taken long."""
        if not self._may_send():
            raise ConnectFailed("not sent: another replica may be leading by now")

    @abstractmethod
    async def _exchange(self, request: WireRequest, timeout_s: float) -> Reply:
        """Send once, receive once. Raises TransportError."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""


class StreamingTransport(Transport):
    @abstractmethod
    def stream(self, path: str, *, timeout_s: float) -> AbstractAsyncContextManager[Stream]:
        """GET with a streamed answer; `timeout_s` bounds the whole of it, HEADER_TIMEOUT_S its
        beginning.
        """
