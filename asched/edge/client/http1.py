"""Reading one HTTP/1.1 response from pieces of bytes: what API servers use of RFC 9112.

A response ends after Content-Length bytes, after the last chunk, or with the connection; 204, 304
and the answer to HEAD have no body; 1xx answers are skipped. What comes after the end belongs to
nobody, because requests are never pipelined: the connection is then given up.
"""

from enum import Enum
from typing import Final

from asched.edge.client.errors import ProtocolBroken
from asched.edge.client.transport import Reply

#: Go's own client reads 1 MiB of header; a server that sends more is no API server.
HEAD_BYTES_MAX: Final = 1 << 20
#: An object is at most 1.5 MiB in etcd; lists go over the other transport. Generous.
BODY_BYTES_MAX: Final = 64 << 20


class _Stage(Enum):
    HEAD = 1
    FIXED = 2
    CHUNKED = 3
    UNTIL_CLOSE = 4


class ResponseReader:
    """Feed it bytes until it returns a Reply. `reusable`: may the connection live on?"""

    __slots__ = (
        "_chunks",
        "_got",
        "_head",
        "_need",
        "_no_body",
        "_pending",
        "_stage",
        "_status",
        "reusable",
    )

    def __init__(self) -> None:
        self.begin(no_body=False)

    def begin(self, *, no_body: bool) -> None:
        """Get ready for the answer to the next request."""
        self._stage = _Stage.HEAD
        self._no_body = no_body
        self._pending = bytearray()
        self._chunks: list[bytes] = []
        self._got = 0
        self._need = 0
        self._status = 0
        self._head = b""
        self.reusable = True

    def feed(self, data: bytes) -> Reply | None:
        """Take what arrived. Raises ProtocolBroken."""
        if self._stage is _Stage.HEAD:
            rest = self._read_head(data)
            if rest is None:
                return None
            data = rest
        if self._stage is _Stage.FIXED:
            self._chunks.append(data)
            self._got += len(data)
            if self._got < self._need:
                return None
            if self._got > self._need:
                self.reusable = False
            return self._finish(b"".join(self._chunks)[: self._need])
        if self._stage is _Stage.CHUNKED:
            return self._read_chunks(data)
        self._collect(data)
        return None

    def end_of_stream(self) -> Reply | None:
        """The peer has closed: a Reply if that was the end of the body, else None."""
        if self._stage is not _Stage.UNTIL_CLOSE:
            return None
        return self._finish(b"".join(self._chunks))

    @property
    def is_untouched(self) -> bool:
        """Nothing of the answer has arrived yet."""
        return self._stage is _Stage.HEAD and not self._pending

    def _finish(self, body: bytes) -> Reply:
        return Reply(self._status, body, self._head)

    def _collect(self, data: bytes) -> None:
        self._got += len(data)
        if self._got > BODY_BYTES_MAX:
            raise ProtocolBroken(f"the answer is larger than {BODY_BYTES_MAX} bytes")
        self._chunks.append(data)

    def _read_head(self, data: bytes) -> bytes | None:
        """Read status line and headers; returns what follows them, or None while incomplete."""
        while True:
            if self._pending:
                self._pending += data
                data = bytes(self._pending)
                self._pending = bytearray()
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > HEAD_BYTES_MAX:
                    raise ProtocolBroken("the header of the answer has no end")
                self._pending += data
                return None
            head, data = data[: end + 2], data[end + 4 :]
            if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
                raise ProtocolBroken(f"the answer is not HTTP/1: {head[:40]!r}")
            self._status = int(head[9:12])
            if self._status >= 200 or self._status == 101:
                break
        self._head = head
        self._choose_framing(head)
        return data

    def _choose_framing(self, head: bytes) -> None:
        lowered = head.lower()
        connection = header(lowered, b"connection")
        if connection == b"close" or (head[7:8] == b"0" and connection != b"keep-alive"):
            self.reusable = False
        if self._no_body or self._status in {204, 304}:
            self._stage = _Stage.FIXED
            return
        if b"chunked" in (header(lowered, b"transfer-encoding") or b""):
            self._stage = _Stage.CHUNKED
            return
        length = header(lowered, b"content-length")
        if length is None:
            self._stage = _Stage.UNTIL_CLOSE
            self.reusable = False
            return
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            raise ProtocolBroken(f"impossible Content-Length {length[:40]!r}")
        self._stage = _Stage.FIXED
        self._need = int(length)

    def _read_chunks(self, data: bytes) -> Reply | None:
        pending = self._pending
        pending += data
        start = 0
        while True:
            line_end = pending.find(b"\r\n", start)
            if line_end < 0:
                break
            size_text = bytes(pending[start:line_end]).split(b";", 1)[0].strip()
            try:
                size = int(size_text, 16)
            except ValueError:
                raise ProtocolBroken(f"impossible chunk size {size_text[:40]!r}") from None
            if size == 0:
                return self._read_trailers(start, line_end)
            chunk_end = line_end + 2 + size
            if len(pending) < chunk_end + 2:
                break
            self._collect(bytes(pending[line_end + 2 : chunk_end]))
            start = chunk_end + 2
        del pending[:start]
        return None

    def _read_trailers(self, start: int, line_end: int) -> Reply | None:
        """The last chunk's size line stands at `start`; trailers end with an empty line."""
        pending = self._pending
        end = pending.find(b"\r\n\r\n", line_end)
        if end < 0:
            del pending[:start]
            return None
        if len(pending) > end + 4:
            self.reusable = False
        return self._finish(b"".join(self._chunks))


def header(lowered_head: bytes, name: bytes) -> bytes | None:
    """The value of a header in a lower-cased head, stripped; None if absent."""
    at = lowered_head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    return lowered_head[start : lowered_head.find(b"\r\n", start)].strip()
