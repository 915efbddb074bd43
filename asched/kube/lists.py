"""Everything there is of one kind: as a streaming list, or in pages.

Either is read as it comes. Where the caller takes a list in parts, they are handed on as they come,
too: then neither its bytes nor its objects are ever kept as a whole.

Bounds  PART objects, or a MiB of a body, make a part.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from asched.core.model.kinds import POD, Kind
from asched.core.model.meta import Record
from asched.core.state.facts import Fact, Listed
from asched.kube import codec
from asched.kube.codec import KindCodec, ListPage, WatchLine
from asched.kube.errors import (
    ApiStatus,
    Expired,
    Forbidden,
    NotFound,
    TooManyRequests,
    TransportError,
    Unauthorized,
    api_error,
    read_status,
)
from asched.kube.list_parser import ListParser
from asched.kube.reading import LineReader, object_key
from asched.kube.transport import Stream, StreamingTransport
from asched.kube.turns import NoStreaming, Relist

#: Objects per page; client-go's and kubectl's figure. Served from memory (version 0) it is not
#: honoured.
PAGE_SIZE: Final = 500
#: A page of 500 large objects from a busy server; kube-apiserver itself gives up after 60 s.
PAGE_TIMEOUT_S: Final = 65.0
#: A server that streams initial events begins within seconds; one that ignores the option never
#: ends them.
INITIAL_SILENCE_S: Final = 10.0
#: Objects that are handed on together. A guess: some 10 ms of deciding work.
PART: Final = 512
#: A stream that begins with an ERROR ends with it, and its connection serves the list that follows.
ERROR_END_S: Final = 0.2
#: Whatever the server has in memory will do; "" is the newest instead.
ANY_VERSION: Final = "0"


class Everything(NamedTuple):
    """A complete list, or what was left of it after so many parts, and what the same stream told
    after it.
    """

    objects: tuple[Record, ...]
    version: str
    rest: list[WatchLine]
    parts: int = 0


#: (objects, number of the part from 0)
TakePart = Callable[[tuple[Record, ...], int], None]


def parts_to(put: Callable[[Fact], None], kind: Kind) -> TakePart | None:
    """Hand on the first list of pods as it comes: nothing is decided before its end."""
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
        """A newer version of an object takes the place of the older one, or comes after it."""
        for obj in objects:
            self.objects[object_key(obj)] = obj
        if self._take is not None and len(self.objects) >= PART:
            self._take(tuple(self.objects.values()), self.count)
            self.objects.clear()
            self.count += 1

    def drop(self, obj: Record) -> None:
        """It is gone. Raises Relist if that comes too late."""
        if self.objects.pop(object_key(obj), None) is None and self.count:
            raise Relist("", "an object went while it was listed")


class Lister:
    """Lists one kind. `path` makes a path of a query, `heard` is called for each sign of life.

    `take` is handed parts of the first list as they come, unless objects are kept whole.
    """

    def __init__(
        self,
        transport: StreamingTransport,
        kind_codec: KindCodec,
        path: Callable[[dict[str, str]], str],
        heard: Callable[[], None],
        take: TakePart | None = None,
    ) -> None:
        self._take = take
        self._transport = transport
        self._codec = kind_codec
        self._path = path
        self._heard = heard

    def _parts(self) -> _Parts:
        return _Parts(None if self._codec.keeps_originals else self._take)

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
            sights = await self._sights(reading)
            for at, sight in enumerate(sights):
                if sight.type == codec.ERROR:
                    await _ended(reading)
                    raise _initial_error(sight.status or ApiStatus())
                if sight.type == codec.BOOKMARK:
                    if codec.is_initial_end(sight):
                        return self._complete(parts, sight.version, sights[at + 1 :])
                elif sight.obj is not None:
                    if sight.type == codec.DELETED:
                        parts.drop(sight.obj)
                    else:
                        parts.add((sight.obj,))

    async def _sights(self, reading: LineReader) -> list[WatchLine]:
        try:
            async with asyncio.timeout(INITIAL_SILENCE_S):
                sights = await reading.next()
        except TimeoutError:
            raise NoStreaming("silence before the end of the initial events") from None
        if sights is None:
            raise NoStreaming("the stream ended before the initial events did")
        self._heard()
        return sights

    async def _refused(self, stream: Stream) -> Exception:
        """What a non-200 answer to a streaming list means."""
        error = api_error(stream.status, await stream.read_all(), stream.header("Retry-After"))
        if isinstance(error, Expired):
            return Relist("", str(error))
        if isinstance(error, TooManyRequests | Unauthorized | Forbidden | NotFound):
            return error
        return NoStreaming(str(error))

    # --- pages -----------------------------------------------------------------------------------

    async def pages(self, want: str) -> Everything:
        """A list in pages, the first of which may be all of it. Of others one is parsed while the
        next is already on its way.
        """
        query = {"resourceVersion": want} if want else {}
        if want in {"", ANY_VERSION}:  # with another one a limit would mean exactly that version
            query["limit"] = str(PAGE_SIZE)
        parts = self._parts()
        page = await self._first_page(query, parts)
        token = page.continue_token
        body = await self._get_page(token) if token else b""
        while token:
            token = codec.peek_continue(body)
            following = asyncio.ensure_future(self._get_page(token)) if token else None
            try:
                await asyncio.sleep(0)  # the request leaves before the parser takes the processor
                page = self._codec.page(body)
                parts.add(page.objects)
                body = await following if following is not None else b""
            finally:
                if following is not None:
                    following.cancel()
        return self._complete(parts, page.version, [])

    async def _first_page(self, query: dict[str, str], parts: _Parts) -> ListPage:
        """Its objects are among the parts. Served from memory, it is the whole list."""
        path = self._path(query)
        async with self._transport.stream(path, timeout_s=PAGE_TIMEOUT_S) as stream:
            if stream.status != 200:
                body = await stream.read_all()
                raise _refused(stream.status, body, stream.header("Retry-After"))
            parser = ListParser(self._codec)
            async for piece in stream.chunks():
                self._heard()
                if objects := parser.feed(piece):
                    parts.add(objects)
        page = parser.end()
        parts.add(page.objects)
        return page

    async def _get_page(self, token: str) -> bytes:
        path = self._path({"limit": str(PAGE_SIZE), "continue": token})
        reply = await self._transport.request("GET", path, timeout_s=PAGE_TIMEOUT_S)
        if reply.status == 200:
            self._heard()
            return reply.body
        raise _refused(reply.status, reply.body, reply.header("Retry-After"))


async def _ended(reading: LineReader) -> None:
    """Read on to the end, if it comes."""
    with suppress(TimeoutError, TransportError):
        async with asyncio.timeout(ERROR_END_S):
            while await reading.next() is not None:
                pass


def _initial_error(status: ApiStatus) -> Exception:
    """An ERROR among the initial events: a server may promise streaming lists in vain."""
    if status.code == 410 or status.is_too_large_version:
        return Relist("", status.message)
    if status.code == 429:
        return TooManyRequests(429, status.message, status.reason)
    return NoStreaming(status.message or "an ERROR event without a message")


def _refused(status: int, body: bytes, retry_after: str | None) -> Exception:
    """What a non-200 answer to a page means."""
    error = api_error(status, body, retry_after)
    told = read_status(body)
    if isinstance(error, Expired) or (told is not None and told.is_too_large_version):
        # An expired continue token too: its fresh one would mix pages of two moments.
        return Relist("", str(error))
    return error
