"""Read a watch: split lines, check versions, explain failures."""

import logging
from typing import Any, Final

from asched.core.model.kinds import Kind
from asched.kube.codec import KindCodec, WatchLine
from asched.kube.errors import (
    ApiError,
    ConnectFailed,
    Forbidden,
    NotFound,
    ProtocolBroken,
    TransportError,
    Unauthorized,
)
from asched.kube.transport import Stream

log = logging.getLogger(__name__)


#: An object has at most 1.5 MiB in etcd by default; even a raised limit is far below this.
LINE_BYTES_MAX: Final = 64 << 20


class LineSplitter:
    """Splits a stream of bytes into lines; an incomplete line waits for the rest."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends. Raises ProtocolBroken."""
        if b"\n" not in data:
            self._rest += data
            if len(self._rest) > LINE_BYTES_MAX:
                raise ProtocolBroken(f"a line of the stream has no end within {LINE_BYTES_MAX} B")
            return []
        if self._rest:
            self._rest += data
            data = bytes(self._rest)
            self._rest.clear()
        lines = data.split(b"\n")
        self._rest += lines.pop()
        return lines


class LineReader:
    """Decoded lines of a stream; None at its end."""

    def __init__(self, stream: Stream, kind_codec: KindCodec) -> None:
        self._chunks = stream.chunks()
        self._codec = kind_codec
        self._splitter = LineSplitter()

    async def next(self) -> list[WatchLine] | None:
        """All complete lines of the next read; may be empty."""
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            return None
        lines = self._splitter.feed(chunk)
        return list(self._codec.events(lines)) if lines else []


def explain_failure(kind: Kind, error: ApiError | TransportError) -> str:
    """One line for the log and for start-up: the failure and its fix."""
    if isinstance(error, Forbidden):
        group = kind.group_version.rpartition("/")[0]
        return (
            f"cannot list or watch {kind.plural}: forbidden; grant the verbs list and watch on "
            f'resource "{kind.plural}" in API group "{group}" (the server says: {error.message})'
        )
    if isinstance(error, NotFound):
        return (
            f"the server says that it does not serve {kind.plural} ({kind.group_version});"
            " cached objects stay in use"
        )
    if isinstance(error, Unauthorized):
        return f"cannot list {kind.plural}: the credentials are not accepted ({error.message})"
    return f"cannot list {kind.plural}: {error}"


def log_failure(kind: Kind, error: ApiError | TransportError, logged: str) -> str:
    """Log a failure unless it was `logged` last; returns the failure now logged.

    A failure to reach the server or to authenticate concerns all kinds and is logged as one.
    """
    text = explain_failure(kind, error)
    if text == logged:
        return logged
    if isinstance(error, ConnectFailed | Unauthorized):
        whole = f"cannot follow the cluster: {error}"
        log.warning("%s", whole, extra={"cause": whole})
    else:
        log.warning("%s", text)
    return text


def log_no_streaming(refused: Exception) -> None:
    """Log once for all kinds: the server supports no streaming lists."""
    extra = {"cause": f"no streaming lists: {refused}"}
    log.info("no streaming lists (%s), listing in pages", refused, extra=extra)


def object_key(obj: Any) -> str:
    """`namespace/name` of any record."""
    key: str = obj.metadata.key
    return key


def log_malformed(kind: Kind, name: str, why: str) -> None:
    """Log a malformed object."""
    log.warning("%s %s is malformed and is ignored: %s", kind.name, name, why)
