"""Everything there is of one kind: as a streaming list, or in pages."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from asched.core.model.kinds import Kind
from asched.core.model.meta import Record
from asched.edge.client import codec
from asched.edge.client.codec import KindCodec, Sight
from asched.edge.client.errors import (
    Expired,
    Forbidden,
    NotFound,
    Status,
    TooManyRequests,
    Unauthorized,
    api_error,
    read_status,
)
from asched.edge.client.reading import LineReader, object_key
from asched.edge.client.transport import Stream, Transport
from asched.edge.client.turns import NoStreaming, Relist

#: Objects per page; client-go's and kubectl's figure. Served from memory (version 0) it is not
#: honoured.
PAGE_SIZE: Final = 500
#: A page of 500 large objects from a busy server; kube-apiserver itself gives up after 60 s.
PAGE_TIMEOUT_S: Final = 65.0
#: A server that streams initial events begins within seconds; one that ignores the option never
#: ends them.
INITIAL_SILENCE_S: Final = 10.0
#: Whatever the server has in memory will do; "" is the newest instead.
ANY_VERSION: Final = "0"


class Everything(NamedTuple):
    """A complete list, and what the same stream told after it."""

    objects: tuple[Record, ...]
    version: str
    rest: list[Sight]


class Lister:
    """Lists one kind. `path` makes a path of a query, `heard` is called for each sign of life."""

    def __init__(
        self,
        kind: Kind,
        transport: Transport,
        kind_codec: KindCodec,
        path: Callable[[dict[str, str]], str],
        heard: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._transport = transport
        self._codec = kind_codec
        self._path = path
        self._heard = heard

    # --- a streaming list ------------------------------------------------------------------------

    async def initial(self, stream: Stream, reading: LineReader) -> Everything:
        """Initial events up to the bookmark that ends them. Raises Relist, NoStreaming, ApiError or
        TransportError.
        """
        if stream.status != 200:
            raise await self._refused(stream)
        objects: dict[str, Any] = {}
        while True:
            sights = await self._sights(reading)
            for at, sight in enumerate(sights):
                if sight.type == codec.ERROR:
                    raise _initial_error(sight.status or Status())
                if sight.type == codec.BOOKMARK:
                    if codec.is_initial_end(sight):
                        return Everything(tuple(objects.values()), sight.version, sights[at + 1 :])
                elif sight.obj is not None:
                    key = object_key(sight.obj)
                    if sight.type == codec.DELETED:
                        objects.pop(key, None)
                    else:
                        objects[key] = sight.obj

    async def _sights(self, reading: LineReader) -> list[Sight]:
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
        """A list in pages. While one is parsed the next is already on its way."""
        query = {"resourceVersion": want} if want else {}
        if want in {"", ANY_VERSION}:  # with another one a limit would mean exactly that version
            query["limit"] = str(PAGE_SIZE)
        objects: list[Record] = []
        body = await self._get_page(query)
        while True:
            token = codec.peek_continue(body)
            if not token:
                page = self._codec.page(body)
                objects.extend(page.objects)
                return Everything(tuple(objects), page.version, [])
            following = asyncio.ensure_future(
                self._get_page({"limit": str(PAGE_SIZE), "continue": token})
            )
            try:
                await asyncio.sleep(0)  # the request leaves before the parser takes the processor
                objects.extend(self._codec.page(body).objects)
                body = await following
            finally:
                following.cancel()

    async def _get_page(self, query: dict[str, str]) -> bytes:
        reply = await self._transport.request("GET", self._path(query), timeout_s=PAGE_TIMEOUT_S)
        if reply.status == 200:
            self._heard()
            return reply.body
        error = api_error(reply.status, reply.body, reply.header("Retry-After"))
        status = read_status(reply.body)
        if isinstance(error, Expired) or (status is not None and status.is_too_large_version):
            # An expired continue token too: its fresh one would mix pages of two moments.
            raise Relist("", str(error))
        raise error


def _initial_error(status: Status) -> Exception:
    """An ERROR among the initial events: a server may promise streaming lists in vain."""
    if status.code == 410 or status.is_too_large_version:
        return Relist("", status.message)
    if status.code == 429:
        return TooManyRequests(429, status.message, status.reason)
    return NoStreaming(status.message or "an ERROR event without a message")
