"""HTTP/1.1 requests that arrive on a connection: heads of limited size, parsed by httptools, and
bodies on demand.

A body needs a Content-Length. Pipelining is not supported: bytes after a request end the connection
after its answer, so that one read never becomes thousands of requests.

Bounds  HEAD_BYTES_MAX per head, LINE_BYTES_MAX per line, QUERY_FIELDS_MAX per query.
Source  RFC 9112
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from asched.serve.client_stream import PIECE_BYTES, ClientStream

#: A token has 1 to 2 KiB; a front proxy sends one header for each group of the user.
HEAD_BYTES_MAX: Final = 64 * 1024
#: aiohttp's default for a request line and for a header.
LINE_BYTES_MAX: Final = 8190
QUERY_FIELDS_MAX: Final = 100
_HEAD_END: Final = b"\r\n\r\n"
#: The origin of an absolute target, which is removed.
_ORIGIN: Final = re.compile(r"^https?://[^/?]*", re.IGNORECASE)


class BadRequestError(Exception):
    """The bytes are not an acceptable request; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpRequest:
    """A request whose head has arrived. Header names are in lower case."""

    def __init__(self, head: "_HeadParser", stream: ClientStream, first: bytes) -> None:
        self.method = head.method
        self.headers: Sequence[tuple[str, str]] = head.headers
        target, _, query = _ORIGIN.sub("", head.target).partition("?")
        #: Decoded; does not begin with "/" if the target is not a path (CONNECT, "OPTIONS *").
        self.path = unquote(target or "/")
        self._query = query
        self.content_length = head.content_length
        #: Whether the client may send another request on the connection.
        self.keeps_alive = head.keeps_alive
        self._expects_continue = self.header("expect").lower() == "100-continue"
        self._stream = stream
        self._unread = first[: self.content_length]
        self._due = self.content_length

    def header(self, name: str) -> str:
        """The values of a header, joined; empty without one."""
        return ",".join(value for key, value in self.headers if key == name)

    def query(self) -> Mapping[str, tuple[str, ...]]:
        """Each name of the query with its values. Raises BadRequestError."""
        try:
            fields = parse_qsl(self._query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
        except ValueError:
            raise BadRequestError(400, "too many fields in the query") from None
        found: dict[str, tuple[str, ...]] = {}
        for name, value in fields:
            found[name] = (*found.get(name, ()), value)
        return found

    @property
    def is_read(self) -> bool:
        """Whether the whole body was read."""
        return not self._due

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises ConnectionError if it is incomplete."""
        if self._due and not self._unread and self._expects_continue:
            await self._stream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        while self._due:
            piece = self._unread or await self._stream.read(min(self._due, PIECE_BYTES))
            self._unread = b""
            if not piece:
                raise ConnectionError("the body broke off")
            self._due -= len(piece)
            yield piece

    @property
    def certificate(self) -> bytes:
        """The client's certificate (DER); empty without one."""
        return self._stream.certificate


async def read_request(stream: ClientStream, first: bytes = b"") -> HttpRequest:
    """Read a request's head, of which `first` has arrived. Raises BadRequestError, or
    ConnectionError if the head is incomplete.
    """
    got, sought = bytearray(first), 0
    while (end := got.find(_HEAD_END, sought)) < 0:
        if len(got) > HEAD_BYTES_MAX:
            raise BadRequestError(431, f"the request's head has more than {HEAD_BYTES_MAX} bytes")
        sought = max(len(got) - len(_HEAD_END) + 1, 0)
        piece = await stream.read(HEAD_BYTES_MAX + 1 - len(got))
        if not piece:
            raise ConnectionError("the head broke off")
        got += piece
    end += len(_HEAD_END)
    head, rest = bytes(got[:end]), bytes(got[end:])
    if max(map(len, head.split(b"\r\n"))) > LINE_BYTES_MAX:
        raise BadRequestError(431, f"a line of the head has more than {LINE_BYTES_MAX} bytes")
    parsed = _HeadParser(head)
    parsed.keeps_alive &= len(rest) <= parsed.content_length
    return HttpRequest(parsed, stream, rest)


class _HeadParser:
    """A parsed head. The parser calls the methods `on_...`. Raises BadRequestError."""

    def __init__(self, head: bytes) -> None:
        self.target = ""
        self.headers: list[tuple[str, str]] = []
        self.keeps_alive = False
        self._parser: Any = HttpRequestParser(self)
        parser = self._parser
        try:
            parser.feed_data(head)
        except HttpParserUpgrade:
            pass  # upgrades are not supported: ignored
        except HttpParserError as error:
            raise BadRequestError(400, f"the request is not HTTP/1.1: {error}") from None
        version = parser.get_http_version()
        if not self.target or version not in ("1.0", "1.1"):
            raise BadRequestError(400, "the request is not HTTP/1.1")
        self.method: str = parser.get_method().decode()
        self._parser = None  # break the reference cycle; collections are rare
        values = [value for name, value in self.headers if name == "content-length"]
        self.content_length = int(values[0]) if values else 0
        if any(name == "transfer-encoding" for name, _ in self.headers):
            raise BadRequestError(411, "a body needs a Content-Length")

    def on_headers_complete(self) -> None:
        self.keeps_alive = bool(self._parser.should_keep_alive())

    def on_url(self, part: bytes) -> None:
        self.target += part.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append(
            (name.decode("latin-1").lower(), value.decode(errors="replace").strip())
        )
