"""Requests and answers as values, and the small interface behind which HTTP happens.

`fast.py` implements it (keep-alive connections over httptools), because aiohttp costs 79 µs of CPU
per request where 17 µs suffice; simulations have another. What stands here is common to both: the
token is checked before each request, a 401 leads to one forced reload of the credentials and one
repetition (nothing was done by a request that was not let in), and each exchange is reported to the
observer once.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Final, NamedTuple, Protocol

from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectFailed

JSON: Final = "application/json"
#: A request without a deadline of its own; kube-apiserver itself gives up after 60 s.
REQUEST_TIMEOUT_S: Final = 60.0
#: TCP, TLS and name resolution together; what Go's default transport allows for dialling.
CONNECT_TIMEOUT_S: Final = 30.0
#: Until the header of a stream's answer. Priority and fairness may hold a request back for 15 s.
HEADER_TIMEOUT_S: Final = 20.0
#: Of an error's body so much is read where an answer is read as it comes.
ERROR_BYTES_MAX: Final = 1 << 20
#: Rare answers may be long. Generous: lists are read as they come.
ANSWER_BYTES_MAX: Final = 2 << 30
#: The code under which rest_client_requests_total counts requests without an answer, as in
#: client-go.
NO_CODE: Final = "<error>"


class Exchange(NamedTuple):
    """One request and what came of it, for those who count. Of a stream only the start is known:
    as in client-go it has neither a duration nor sizes.
    """

    method: str
    host: str
    code: str  # status code or NO_CODE
    duration_s: float | None = None
    sent: int | None = None  # bytes of the body
    received: int | None = None  # bytes of the body; None without an answer


#: Told of each exchange once.
Observer = Callable[[Exchange], None]


def observe_nothing(_exchange: Exchange) -> None:
    """The observer of those who do not measure."""


def nobody_minds() -> None:
    """Of a transport that is the only one on its way."""


def no_fence() -> bool:
    """For those who may send whatever they like."""
    return True


class Reply:
    """A complete answer. Headers stay bytes until somebody asks for one."""

    __slots__ = ("body", "head", "status")

    def __init__(self, status: int, body: bytes, head: bytes = b"") -> None:
        self.status = status
        self.body = body
        self.head = head

    def header(self, name: str) -> str | None:
        """The value of a header, or None; the name in any case."""
        wanted = name.lower()
        for line in self.head.split(b"\r\n")[1:]:
            key, colon, value = line.partition(b":")
            if colon and key.decode("latin-1").lower() == wanted:
                return value.decode("latin-1").strip()
        return None

    def __repr__(self) -> str:
        return f"Reply({self.status}, {self.body[:200]!r})"


class Stream(Protocol):
    """An answer that is read as it comes."""

    status: int

    def chunks(self) -> AsyncIterator[bytes]:
        """Pieces as they arrive. Raises TransportError if the stream breaks; ends when it ends."""

    async def read_all(self) -> bytes:
        """The body of an error, its start if it is long."""

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
        """One request, with its query in the path, and its whole answer within `timeout_s`."""
        credentials = self._credentials
        credentials.keep_fresh()
        started_s = monotonic()
        reply = None
        try:
            used = credentials.authorization
            reply = await self._exchange(method, path, body, content_type, accept, timeout_s)
            if reply.status == 401:
                end_s = started_s + timeout_s
                if await credentials.reload(used, end_s - monotonic()):
                    left_s = max(end_s - monotonic(), 0.0)
                    reply = await self._exchange(method, path, body, content_type, accept, left_s)
            return reply
        finally:
            code, received = NO_CODE, None
            if reply is not None:
                code, received = str(reply.status), len(reply.body)
            sent, took_s = len(body) if body is not None else 0, monotonic() - started_s
            self._observe(Exchange(method, credentials.host, code, took_s, sent, received))

    async def prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """Get ready for a first request that must not wait for a connection, if there is anything
        to be got ready. Raises TransportError.
        """

    def _look_at_fence(self) -> None:
        """Connections and tokens may have been waited for since somebody looked."""
        if not self._may_send():
            raise ConnectFailed("held back: somebody else may act by now")

    @abstractmethod
    async def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        accept: str,
        timeout_s: float,
    ) -> Reply:
        """Send once, receive once. Raises TransportError."""

    @abstractmethod
    async def close(self) -> None:
        """Give up all connections."""


class StreamingTransport(Transport):
    """A transport that can also read an answer while it comes."""

    @abstractmethod
    def stream(self, path: str, *, timeout_s: float) -> AbstractAsyncContextManager[Stream]:
        """GET whose answer is read piece by piece; `timeout_s` bounds the whole of it,
        HEADER_TIMEOUT_S its beginning.
        """
