"""Parse HTTP/1.1 responses from received bytes, with httptools (llhttp).

A response ends where its framing says, or with the connection if it has none; 1xx responses are
skipped. Bytes after the end are invalid, because requests are never pipelined: the connection is
then closed. HEAD is not supported: its responses announce bodies that never come.
"""

from math import inf
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from asched.kube.errors import ProtocolBroken
from asched.kube.transport import Reply

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
        good, since no collector of garbage looks at what is old (`host/memory.py`).
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
