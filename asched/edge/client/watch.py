"""One stream of one kind, from its first list to the end of the process.

The story, as client-go's reflector lives it:

1. First everything there is. A server that can (WatchList) streams it: ADDED for each object, then
   a bookmark that says "that was all", and the same stream goes on with what happens next. A server
   that cannot says so (4xx, or an ERROR inside a 200, or it stays silent): then this round lists in
   pages. Either way the state hears one `Listed`; what it does not contain is gone.
2. Then what changes. Each line moves the version on; bookmarks move it where nothing of interest
   happens.
3. A stream that ends is opened again from the last version: at once if it had lived, after a pause
   if the server is away. Nothing is lost, because the server keeps what happened since.
4. Unless it has forgotten that version (410, as a status or as an ERROR event): back to 1. The same
   when versions run backwards (a server restored from a backup), and when streams die as soon as
   they live.
5. Nobody may look (403), or the resource does not exist (404): `on_failure` hears of it, the
   reflector keeps trying. A resource that does not exist counts as an empty kind, so that the gate
   opens.

Facts are handed over as they are parsed, all whole lines of a piece at once, in order.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from asched.core.model.kinds import POD, Kind
from asched.core.model.meta import Record
from asched.core.state.facts import Fact, Gone, Listed, Seen
from asched.edge.client import codec
from asched.edge.client.backoff import Backoff
from asched.edge.client.codec import KindCodec, Sight
from asched.edge.client.errors import (
    ApiError,
    ClientError,
    DeadlineExceeded,
    Expired,
    Forbidden,
    NotFound,
    ProtocolBroken,
    Status,
    TooManyRequests,
    TransportError,
    Unauthorized,
    api_error,
    read_status,
)
from asched.edge.client.originals import Originals
from asched.edge.client.reading import (
    LineReader,
    explain_failure,
    log_malformed,
    object_key,
    runs_backwards,
)
from asched.edge.client.transport import Stream, StreamingTransport
from asched.edge.client.turns import NoStreaming, Relist

log = logging.getLogger(__name__)

#: Objects per page; client-go's and kubectl's figure. Served from memory (version 0) it is not
#: honoured.
PAGE_SIZE: Final = 500
#: A page of 500 large objects from a busy server; kube-apiserver gives up after 60 s.
PAGE_TIMEOUT_S: Final = 90.0
#: Streams are asked to live 5 to 10 minutes, so that a restarted server gets them back in portions.
STREAM_S_MIN: Final = 300.0
#: What a stream may live beyond its timeout before it is taken for dead.
STREAM_SLACK_S: Final = 30.0
#: A server that streams initial events begins within seconds; one that ignores the option never
#: ends them.
INITIAL_SILENCE_S: Final = 10.0
#: A stream that ends sooner and without a word is a failure (client-go: very short watch).
SHORT_STREAM_S: Final = 1.0
#: How often a resource that does not exist is asked for again.
ABSENT_RETRY_S: Final = 300.0
#: Whatever the server has in memory will do; "" is the newest instead.
ANY_VERSION: Final = "0"
#: Pods that are through do not take part; kube-scheduler asks with the same words.
POD_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(slots=True)
class ReflectorOptions:
    """What the host hands in; the defaults are production's."""

    field_selector: str = ""
    label_selector: str = ""
    #: Try streaming lists first.
    streaming: bool = True
    rng: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic


class Reflector:
    """Keeps the state informed about one kind. `run` never returns; cancel it.

    `put` gets each fact. `synced` is set when the first complete list has been handed over.
    `on_failure(kind, error)` hears of every failed list or refused watch; the host decides whether
    a kind is so important that start-up ends.
    """

    def __init__(
        self,
        kind: Kind,
        transport: StreamingTransport,
        put: Callable[[Fact], None],
        *,
        options: ReflectorOptions | None = None,
        on_failure: Callable[[Kind, ClientError], None] = lambda _kind, _error: None,
        originals: Originals | None = None,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self.list_count = 0
        self.watch_count = 0
        #: When anything was last heard, by `clock`: how stale this kind may be.
        self.heard_s: float | None = None
        self._transport = transport
        self._put = put
        self._on_failure = on_failure
        self._options = options or ReflectorOptions(
            field_selector=POD_FIELD_SELECTOR if kind is POD else ""
        )
        self._codec = KindCodec(kind, log_malformed, originals)
        self._backoff = Backoff(self._options.rng, self._options.clock)
        self._version = ""
        self._complained = ""

    @property
    def malformed_count(self) -> int:
        """Malformed objects met so far, repetitions included."""
        return self._codec.malformed_count

    async def run(self) -> None:
        """Live through the story, again and again; after a cancellation, from where it was."""
        want = self._version or ANY_VERSION
        while True:
            try:
                await self._once(want)
            except Relist as turn:
                log.info("%s: listing again: %s", self.kind.plural, turn)
                want = turn.version
                if turn.pause:
                    await self._pause()
            except (ApiError, TransportError) as error:
                want = await self._after_failure(error, want)

    async def _once(self, want: str) -> None:
        """Chapter 1, then 2 and 3 until something sends us back."""
        if self._options.streaming:
            try:
                await self._stream_list(want)
            except NoStreaming as refused:
                log.info("%s: no streaming list (%s), listing in pages", self.kind.plural, refused)
                await self._page_list(want)
        else:
            await self._page_list(want)
        while True:
            await self._watch()

    # --- chapter 1: everything there is ----------------------------------------------------------

    async def _stream_list(self, want: str) -> None:
        """Initial events up to the bookmark that ends them, then the live stream, until it ends."""
        query = {
            "watch": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        if want not in {"", ANY_VERSION}:
            query["resourceVersion"] = want
        seconds = self._stream_seconds()
        async with self._transport.stream(
            self._path(query, seconds), timeout_s=seconds + STREAM_SLACK_S
        ) as stream:
            if stream.status != 200:
                raise await self._streaming_refused(stream)
            reading = LineReader(stream, self._codec)
            objects: dict[str, Any] = {}
            done = False
            while not done:
                sights = await self._initial_sights(reading)
                for at, sight in enumerate(sights):
                    if sight.type == codec.ERROR:
                        self._raise_initial_error(sight.status or Status())
                    if sight.type == codec.BOOKMARK:
                        if codec.is_initial_end(sight):
                            self._listed(tuple(objects.values()), sight.version)
                            done = True
                            self._deliver(sights[at + 1 :])
                            break
                    elif sight.obj is not None:
                        key = object_key(sight.obj)
                        if sight.type == codec.DELETED:
                            objects.pop(key, None)
                        else:
                            objects[key] = sight.obj
            await self._follow(reading)

    async def _initial_sights(self, reading: LineReader) -> list[Sight]:
        try:
            async with asyncio.timeout(INITIAL_SILENCE_S):
                sights = await reading.next()
        except TimeoutError:
            raise NoStreaming("silence before the end of the initial events") from None
        if sights is None:
            raise NoStreaming("the stream ended before the initial events did")
        return sights

    async def _streaming_refused(self, stream: Stream) -> Exception:
        """What a non-200 answer to a streaming list means."""
        error = api_error(stream.status, await stream.read_all(), stream.header("Retry-After"))
        if isinstance(error, Expired):
            return Relist("", str(error))
        if isinstance(error, TooManyRequests | Unauthorized | Forbidden | NotFound):
            return error
        return NoStreaming(str(error))

    def _raise_initial_error(self, status: Status) -> None:
        """An ERROR among the initial events: a server may promise streaming lists in vain."""
        if status.code == 410 or status.is_too_large_version:
            raise Relist("", status.message)
        if status.code == 429:
            raise TooManyRequests(429, status.message, status.reason)
        raise NoStreaming(status.message or "an ERROR event without a message")

    async def _page_list(self, want: str) -> None:
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
                break
            following = asyncio.ensure_future(
                self._get_page({"limit": str(PAGE_SIZE), "continue": token})
            )
            try:
                await asyncio.sleep(0)  # the request leaves before the parser takes the processor
                objects.extend(self._codec.page(body).objects)
                body = await following
            finally:
                following.cancel()
        self._listed(tuple(objects), page.version)

    async def _get_page(self, query: dict[str, str]) -> bytes:
        path = self._path(query)
        reply = await self._transport.request("GET", path, timeout_s=PAGE_TIMEOUT_S)
        if reply.status == 200:
            return reply.body
        error = api_error(reply.status, reply.body, reply.header("Retry-After"))
        status = read_status(reply.body)
        if isinstance(error, Expired) or (status is not None and status.is_too_large_version):
            # An expired continue token too: its fresh one would mix pages of two moments.
            raise Relist("", str(error), pause="resourceVersion" not in query)
        raise error

    def _listed(self, objects: tuple[Record, ...], version: str) -> None:
        self.list_count += 1
        self._version = version
        self.heard_s = self._options.clock()
        self._complained = ""
        self._put(Listed(self.kind, objects))
        self.synced.set()

    # --- chapters 2 and 3: what changes ----------------------------------------------------------

    async def _watch(self) -> None:
        """One stream from the last version to its end."""
        seconds = self._stream_seconds()
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
        }
        started_s = self._options.clock()
        try:
            async with self._transport.stream(
                self._path(query, seconds), timeout_s=seconds + STREAM_SLACK_S
            ) as stream:
                if stream.status != 200:
                    raise api_error(
                        stream.status, await stream.read_all(), stream.header("Retry-After")
                    )
                await self._follow(LineReader(stream, self._codec), started_s)
        except Expired as error:
            raise Relist(self._version, str(error)) from error
        except (TransportError, TooManyRequests) as error:
            self._complain(error)
            self._on_failure(self.kind, error)
            await self._pause(getattr(error, "retry_after_s", None))

    async def _follow(self, reading: LineReader, started_s: float | None = None) -> None:
        """Read a live stream to its end. A broken connection is an end like any other."""
        self.watch_count += 1
        self._complained = ""
        heard = False
        try:
            while (sights := await reading.next()) is not None:
                heard = heard or bool(sights)
                self._deliver(sights)
        except ProtocolBroken as error:  # asked again, the server would say the same again
            raise Relist(self._version, str(error), pause=True) from error
        except DeadlineExceeded:
            log.info("%s: the stream outlived its time, opening another", self.kind.plural)
        except TransportError as error:
            log.debug("%s: the stream broke: %s", self.kind.plural, error)
        if heard or started_s is None:  # initial events are a sign of life, too
            return
        if self._options.clock() - started_s < SHORT_STREAM_S:
            raise Relist(self._version, "the stream ended as soon as it began", pause=True)

    def _deliver(self, sights: list[Sight]) -> None:
        """Hand over what a piece of the stream contained."""
        if not sights:
            return
        self.heard_s = self._options.clock()
        put = self._put
        kind = self.kind
        for sight in sights:
            if sight.type == codec.ERROR:
                raise self._stream_error(sight.status or Status())
            if runs_backwards(self._version, sight.version):
                raise Relist("", f"versions run backwards ({self._version}, then {sight.version})")
            if sight.version:
                self._version = sight.version
            if sight.obj is None:
                continue
            put(Gone(kind, sight.obj) if sight.type == codec.DELETED else Seen(kind, sight.obj))

    def _stream_error(self, status: Status) -> Exception:
        if status.code == 429:
            wait_s = status.details.retry_after_seconds if status.details is not None else 0
            return TooManyRequests(429, status.message, status.reason, retry_after_s=wait_s or None)
        why = f"the server ended the stream: {status.message or status.reason or status.code}"
        return Relist(self._version, why, pause=status.code != 410)

    # --- chapter 5: what goes wrong --------------------------------------------------------------

    async def _after_failure(self, error: ApiError | TransportError, want: str) -> str:
        """Tell, wait; returns the version that the next list should show."""
        self._complain(error)
        self._on_failure(self.kind, error)
        if isinstance(error, NotFound):
            if not self.synced.is_set() or self._version:
                self._listed((), "")
            await self._options.sleep(ABSENT_RETRY_S)
            return ANY_VERSION
        await self._pause(getattr(error, "retry_after_s", None))
        return self._version or want

    def _complain(self, error: ApiError | TransportError) -> None:
        """Say what is wrong once, until something else is."""
        text = explain_failure(self.kind, error)
        if text != self._complained:
            self._complained = text
            level = logging.INFO if isinstance(error, NotFound) else logging.WARNING
            log.log(level, "%s", text)

    async def _pause(self, at_least_s: float | None = None) -> None:
        await self._options.sleep(max(self._backoff.next_s(), at_least_s or 0.0))

    def _stream_seconds(self) -> int:
        return int(STREAM_S_MIN * (1.0 + self._options.rng.random()))

    def _path(self, query: dict[str, str], stream_s: int | None = None) -> str:
        query = dict(query)
        if self._options.field_selector:
            query["fieldSelector"] = self._options.field_selector
        if self._options.label_selector:
            query["labelSelector"] = self._options.label_selector
        if stream_s is not None:
            query["timeoutSeconds"] = str(stream_s)
        return f"{self.kind.path}?{urlencode(query)}"
