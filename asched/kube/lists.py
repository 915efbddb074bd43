"""List all objects of one kind: as a streaming list, or in pages.

Both are parsed while they arrive. A caller that takes parts gets them as they arrive; then neither
bytes nor objects are stored as a whole.

    {"kind":"PodList","apiVersion":"v1","metadata":{...},"items":[{"metadata":{...},...},{...},...]}
    └──────────────────────── head ─────────────────────────────┘└── part ──┘└── part ──┘└─ rest ─┘

A part ends between two objects, found by the text between them, which cannot occur within a string,
where quotation marks are escaped. It may occur deeper, in an array inside of an object; then the
part is not JSON, and everything is kept until the end, as for a server that formats its lists in
another way.

Bounds  a part has PART objects, or PART_BYTES and one object of a body, unless it cannot be split.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from asched.core.cluster.facts import Fact, Listed
from asched.core.model.kinds import POD, Kind
from asched.core.model.meta import Record
from asched.kube import codec
from asched.kube.codec import KindCodec, ListPage, WatchLine
from asched.kube.errors import (
    ApiStatus,
    Expired,
    Forbidden,
    NoStreaming,
    NotFound,
    Relist,
    TooManyRequests,
    TransportError,
    Unauthorized,
    api_error,
    read_status,
)
from asched.kube.reading import LineReader, object_key
from asched.kube.transport import Stream, StreamingTransport

PART_BYTES: Final = 1 << 20
_ITEMS: Final = b'"items":['
_BETWEEN: Final = b'},{"metadata":{'


class ListParser:
    """Feed it received bytes, then take the rest with `end`."""

    def __init__(self, codec: KindCodec) -> None:
        self._codec = codec
        self._head = b""
        self._kept = bytearray()
        self._looked = 0
        self._is_whole = False

    def feed(self, piece: bytes) -> list[Record]:
        """The complete objects, once there are many."""
        kept = self._kept
        kept += piece
        if self._is_whole or len(kept) - self._looked < PART_BYTES:
            return []
        self._looked = len(kept)
        if not self._head:
            start = kept.find(_ITEMS) + len(_ITEMS)
            if start < len(_ITEMS):
                return []
            self._head = bytes(kept[:start])
            del kept[:start]
        cut = kept.rfind(_BETWEEN)
        if cut < 0:
            return []
        objects = self._codec.array(b"[" + kept[: cut + 1] + b"]")
        if objects is None:
            self._is_whole = True
            return []
        del kept[: cut + 2]
        self._looked = len(kept)
        return objects

    def end(self) -> ListPage:
        """The remaining objects, with the list's version. Raises ProtocolBroken."""
        return self._codec.page(self._head + self._kept)


#: Objects per page; client-go's and kubectl's figure. A server ignores it for version 0.
PAGE_SIZE: Final = 500
#: A page of 500 large objects from a busy server; kube-apiserver itself gives up after 60 s.
PAGE_TIMEOUT_S: Final = 65.0
#: A server that streams initial events begins within seconds; one that ignores the option never
#: ends them.
INITIAL_SILENCE_S: Final = 10.0
#: Objects per part. A guess: some 10 ms of work for the core.
PART: Final = 512
#: A stream that begins with an ERROR ends with it, and its connection is reused for the list.
ERROR_END_S: Final = 0.2
#: Any version that the server has in memory; "" means the newest.
ANY_VERSION: Final = "0"


class Everything(NamedTuple):
    """A complete list, or the rest of it after this number of parts, and the later lines of the
    same stream.
    """

    objects: tuple[Record, ...]
    version: str
    rest: list[WatchLine]
    parts: int = 0


#: (objects, number of the part from 0)
TakePart = Callable[[tuple[Record, ...], int], None]


def parts_to(put: Callable[[Fact], None], kind: Kind) -> TakePart | None:
    """Hand on the first list of pods in parts: no decision is made before its end."""
    if kind is not POD:
        return None
    return lambda objects, part: put(Listed(kind, objects, part, has_more=True))


class _Parts:
    """Objects by key until they are handed on."""

    def __init__(self, take: TakePart | None) -> None:
        self._take = take
        self.objects: dict[str, Record] = {}
        self.count = 0

    def add(self, objects: Iterable[Record]) -> None:
        """Add objects; a newer version of an object replaces the older one, or follows it."""
        for obj in objects:
            self.objects[object_key(obj)] = obj
        if self._take is not None and len(self.objects) >= PART:
            self._take(tuple(self.objects.values()), self.count)
            self.objects.clear()
            self.count += 1

    def drop(self, obj: Record) -> None:
        """An object was deleted. Raises Relist if it was handed on before."""
        if self.objects.pop(object_key(obj), None) is None and self.count:
            raise Relist("", "an object was deleted during the list")


class Lister:
    """Lists one kind. `path` makes a path of a query, `on_bytes` is called whenever bytes arrive.
    `take` gets parts of the first list as they arrive, unless whole objects are stored.
    """

    def __init__(
        self,
        transport: StreamingTransport,
        kind_codec: KindCodec,
        path: Callable[[dict[str, str]], str],
        on_bytes: Callable[[], None],
        take: TakePart | None = None,
    ) -> None:
        self._take = take
        self._transport = transport
        self._codec = kind_codec
        self._path = path
        self._on_bytes = on_bytes

    def _parts(self) -> _Parts:
        return _Parts(None if self._codec.keeps_raw_objects else self._take)

    def _complete(self, parts: _Parts, version: str, rest: list[WatchLine]) -> Everything:
        self._take = None
        return Everything(tuple(parts.objects.values()), version, rest, parts.count)

    # --- a streaming list ------------------------------------------------------------------------

    async def initial(self, stream: Stream, reading: LineReader) -> Everything:
        """Initial events up to the bookmark that ends them. Raises Relist, NoStreaming, ApiError or
        TransportError.
        """
        if stream.status != 200:
            raise await self._refused(stream)
        parts = self._parts()
        while True:
            events = await self._read_events(reading)
            for at, event in enumerate(events):
                if event.type == codec.ERROR:
                    await _ended(reading)
                    raise _initial_error(event.status or ApiStatus())
                if event.type == codec.BOOKMARK:
                    if codec.is_initial_end(event):
                        return self._complete(parts, event.version, events[at + 1 :])
                elif event.obj is not None:
                    if event.type == codec.DELETED:
                        parts.drop(event.obj)
                    else:
                        parts.add((event.obj,))

    async def _read_events(self, reading: LineReader) -> list[WatchLine]:
        try:
            async with asyncio.timeout(INITIAL_SILENCE_S):
                events = await reading.next()
        except TimeoutError:
            raise NoStreaming("silence before the end of the initial events") from None
        if events is None:
            raise NoStreaming("the stream ended before the initial events did")
        self._on_bytes()
        return events

    async def _refused(self, stream: Stream) -> Exception:
        """The error for a non-200 answer to a streaming list."""
        error = api_error(stream.status, await stream.read_all(), stream.header("Retry-After"))
        if isinstance(error, Expired):
            return Relist("", str(error))
        if isinstance(error, TooManyRequests | Unauthorized | Forbidden | NotFound):
            return error
        return NoStreaming(str(error))

    # --- pages -----------------------------------------------------------------------------------

    async def pages(self, want: str) -> Everything:
        """A list in pages, of which the first may be complete. Each further page is parsed while
        the next one is requested.
        """
        query = {"resourceVersion": want} if want else {}
        if want in {"", ANY_VERSION}:  # otherwise a limit means exactly that version
            query["limit"] = str(PAGE_SIZE)
        parts = self._parts()
        page = await self._first_page(query, parts)
        token = page.continue_token
        body = await self._get_page(token) if token else b""
        while token:
            token = codec.peek_continue(body)
            following = asyncio.ensure_future(self._get_page(token)) if token else None
            try:
                await asyncio.sleep(0)  # send the request before the parser runs
                page = self._codec.page(body)
                parts.add(page.objects)
                body = await following if following is not None else b""
            finally:
                if following is not None:
                    following.cancel()
        return self._complete(parts, page.version, [])

    async def _first_page(self, query: dict[str, str], parts: _Parts) -> ListPage:
        """Add the objects to the parts. Served from memory, the page is the whole list."""
        path = self._path(query)
        async with self._transport.stream(path, timeout_s=PAGE_TIMEOUT_S) as stream:
            if stream.status != 200:
                body = await stream.read_all()
                raise _refused(stream.status, body, stream.header("Retry-After"))
            parser = ListParser(self._codec)
            async for piece in stream.chunks():
                self._on_bytes()
                if objects := parser.feed(piece):
                    parts.add(objects)
        page = parser.end()
        parts.add(page.objects)
        return page

    async def _get_page(self, token: str) -> bytes:
        path = self._path({"limit": str(PAGE_SIZE), "continue": token})
        reply = await self._transport.request("GET", path, timeout_s=PAGE_TIMEOUT_S)
        if reply.status == 200:
            self._on_bytes()
            return reply.body
        raise _refused(reply.status, reply.body, reply.header("Retry-After"))


async def _ended(reading: LineReader) -> None:
    """Read to the end, if it comes in time."""
    with suppress(TimeoutError, TransportError):
        async with asyncio.timeout(ERROR_END_S):
            while await reading.next() is not None:
                pass


def _initial_error(status: ApiStatus) -> Exception:
    """The error for an ERROR among the initial events: a server may support streaming in part."""
    if status.code == 410 or status.is_too_large_version:
        return Relist("", status.message)
    if status.code == 429:
        return TooManyRequests(429, status.message, status.reason)
    return NoStreaming(status.message or "an ERROR event without a message")


def _refused(status: int, body: bytes, retry_after: str | None) -> Exception:
    """The error for a non-200 answer to a page."""
    error = api_error(status, body, retry_after)
    status_object = read_status(body)
    if isinstance(error, Expired) or (
        status_object is not None and status_object.is_too_large_version
    ):
        # An expired continue token, too: its fresh one would mix pages of two versions.
        return Relist("", str(error))
    return error
