"""List and watch one kind until the process ends.

The steps follow client-go's reflector:

1. List everything. A server with streaming lists (WatchList) sends ADDED for each object, then a
   bookmark that ends the list, and continues the stream as a watch. A server without them refuses
   (4xx, an ERROR inside a 200, or no line at all): then this list is read in pages. In both cases
   the state gets one `Listed`; objects that it does not contain are gone.
2. Watch. Each line advances the version; bookmarks advance it where nothing relevant happens.
3. A stream that ends is opened again from the last version: at once if it delivered, after a pause
   if the server is down or refuses. Nothing is lost, because the server keeps recent changes.
4. If the server no longer has that version (410, as a status or as an ERROR event), go back to 1
   after a pause that grows with lists only and that all kinds share. The same applies when streams
   end as soon as they begin.
5. Streams are short: the server sends a bookmark and ends them within STREAM_S, so that a stream
   that delivers nothing and does not end is detected. `Doubt` checks streams that end without a
   line, as those of idle kinds do where etcd sends no progress notifications. A stream that does
   not deliver a change of our own within OWED_S is replaced at once.
6. Decreasing versions and broken streams lead to a check whether the server still has the same
   history. If not (HistoryChanged), `run` ends: all cached state is invalid.
7. A kind that was listed once is never taken as empty because the server answers 404; only a kind
   outside the core group that is missing in the server's discovery is absent. Of kinds in several
   versions the newest served version is used; if it disappears, another one replaces it.

Facts are handed over as they are parsed, all complete lines of a read at once, in order.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.model.kinds import NAMESPACE, POD, Kind
from asched.core.model.meta import Record, runs_backwards
from asched.kube import codec
from asched.kube.codec import KindCodec, WatchLine
from asched.kube.doubt import Doubt
from asched.kube.errors import (
    ApiError,
    ApiStatus,
    ClientError,
    DeadlineExceeded,
    Expired,
    Forbidden,
    HistoryChanged,
    NoStreaming,
    NotFound,
    ProtocolBroken,
    Relist,
    ServerFailed,
    TooManyRequests,
    TransportError,
    Unauthorized,
    api_error,
)
from asched.kube.history import History
from asched.kube.kind_versions import served_version, versions_of
from asched.kube.lists import ANY_VERSION, Everything, Lister, parts_to
from asched.kube.pace import (
    LIST_STREAM_S,
    STREAM_SLACK_S,
    ListPacer,
    Pauses,
    ReflectorOptions,
    stream_s,
)
from asched.kube.raw_objects import RawObjects
from asched.kube.reading import LineReader, log_failure, log_malformed, log_no_streaming
from asched.kube.transport import StreamingTransport

log = logging.getLogger(__name__)

#: A stream that ends sooner and without a line is a failure (client-go: very short watch).
SHORT_STREAM_S: Final = 1.0
#: A stream that delivers nothing for so long after the answer to a write of ours is replaced. A
#: guess: the changes of a write arrive within milliseconds.
OWED_S: Final = 5.0
#: How often a resource that does not exist is requested again.
ABSENT_RETRY_S: Final = 30.0
#: Every API server serves kinds of this group, even if it denies them while it starts.
CORE: Final = "v1"
#: Answers of a restarting server to a watch: the version may still be valid.
TRY_AGAIN: Final = (
    TransportError,
    TooManyRequests,
    ServerFailed,
    Unauthorized,
    Forbidden,
    NotFound,
)
#: Completed pods are not watched, as in kube-scheduler.
POD_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Reflector:
    """Keeps the state of one kind current. `run` never returns (cancel it), unless it raises
    HistoryChanged.

    `put` gets each fact. `synced` is set when the first complete list has been handed over.
    `on_failure(kind, error)` is called for every failed list or refused watch; the host decides
    whether the failure of a kind ends the start-up.
    """

    def __init__(
        self,
        kind: Kind,
        transport: StreamingTransport,
        put: Callable[[Fact], None],
        *,
        options: ReflectorOptions | None = None,
        on_failure: Callable[[Kind, ClientError], None] = lambda _kind, _error: None,
        raw_objects: RawObjects | None = None,
        history: History | None = None,
        pacer: ListPacer | None = None,
    ) -> None:
        self.kind = kind
        #: The version of the kind that the server has.
        self.served_kind = kind
        self.synced = asyncio.Event()
        #: The server does not serve this kind; treated as empty.
        self.is_absent = False
        self.list_count = 0
        self.watch_count = 0
        self.transport = transport
        self.put = put
        self._on_failure = on_failure
        self.options = options or ReflectorOptions(
            field_selector=POD_FIELD_SELECTOR if kind is POD else ""
        )
        self._raw_objects = raw_objects
        self.codec = KindCodec(kind, log_malformed, raw_objects)
        self._pacer = pacer or ListPacer(self.options.clock)
        self._pauses = Pauses(self.options, self._pacer)
        self._history = history or History(transport)
        self._history.follow(kind, lambda: self.version)
        self.doubt = Doubt(kind, self._history, self.options.clock)
        self._lister = self._make_lister()
        #: of the newest object or bookmark that was handed over; "" before the first list
        self.version = ""
        #: Ends a stream that does not deliver what it owes.
        self._limit: asyncio.Timeout | None = None
        #: The connection broke: another server may answer next.
        self._is_shaken = False
        self._complained = ""

    @property
    def last_complete_s(self) -> float | None:
        """When the streams were last known to be complete, by `clock`."""
        return self.doubt.last_complete_s

    @property
    def malformed_count(self) -> int:
        """Malformed objects received so far, repetitions included."""
        return self.codec.malformed_count

    def expect(self, version: str) -> None:
        """The answer to a write has this version: the stream owes a line, unless it is as far."""
        limit = self._limit
        if limit is None or limit.when() is not None or not runs_backwards(version, self.version):
            return
        limit.reschedule(asyncio.get_running_loop().time() + OWED_S)

    async def run(self, *, newest: bool = False) -> None:
        """List and watch repeatedly; after a cancellation, continue from the last version.
        `newest`: begin with the newest state, which the server's cache may not have.

        `want` is what the next list has to be: "" the newest state, ANY_VERSION whatever the server
        has in its cache, or not older than this version.
        """
        want = "" if newest else self.version or ANY_VERSION
        while True:
            try:
                await self._once(want)
            except Relist as wanted:
                log.info("%s: listing again: %s", self.kind.plural, wanted)
                want = wanted.version
                await self._pauses.before_list()
            except (ApiError, TransportError) as error:
                want = await self._after_failure(error, want)
            except HistoryChanged as error:
                self._on_failure(self.kind, error)
                raise

    async def _once(self, want: str) -> None:
        """Step 1, then 2 and 3 until a new list is needed."""
        if self.version:
            await self._history.check()
            self._is_shaken = False
        else:
            await self._learn_version()
        if self.options.streaming:
            try:
                await self._stream_list(want)
            except NoStreaming as refused:
                log_no_streaming(refused)
                await self._listed(await self._lister.pages(want), want)
        else:
            await self._listed(await self._lister.pages(want), want)
        while True:
            await self._watch()

    # --- step 1: list ----------------------------------------------------------------------------

    async def _stream_list(self, want: str) -> None:
        """Read initial events up to the bookmark that ends them, then watch for a while."""
        query = {
            "watch": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        if want not in {"", ANY_VERSION}:
            query["resourceVersion"] = want
        async with self.transport.stream(
            self._path(query, LIST_STREAM_S), timeout_s=LIST_STREAM_S + STREAM_SLACK_S
        ) as stream:
            reading = LineReader(stream, self.codec)
            found = await self._lister.initial(stream, reading)
            await self._listed(found, want)
            seconds = stream_s(self.options, is_probe=self.doubt.is_open)
            self.doubt.is_open = True  # until it delivers something
            self._deliver(found.rest)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._follow(reading)

    async def _listed(self, everything: Everything, want: str) -> None:
        """Hand over a list, unless it is older than the known state and not the newest."""
        if runs_backwards(self.version, everything.version):
            await self._history.check()
            if want:
                raise Relist("", f"the list is of {everything.version}, older than {self.version}")
        self._history.listed(self.kind, everything.objects)
        self.doubt.listed(everything.objects)
        self.is_absent = False
        self._take_as_all(everything.objects, everything.version, everything.parts)

    def _take_as_all(self, objects: tuple[Record, ...], version: str, parts: int = 0) -> None:
        self.list_count += 1
        self._pacer.answered()
        self.version = version
        self._complained = ""
        # the last part: `parts` of them were put while the list arrived
        self.put(Listed(self.served_kind, objects, parts))
        self.synced.set()

    # --- steps 2 and 3: watch --------------------------------------------------------------------

    async def _watch(self) -> None:
        """Read one stream from the last version to its end."""
        seconds, is_probe = stream_s(self.options, is_probe=self.doubt.is_open), self.doubt.is_open
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
        }
        started_s = self.options.clock()
        try:
            if self._is_shaken:
                await self._history.check()
            async with self.transport.stream(
                self._path(query, seconds), timeout_s=seconds + STREAM_SLACK_S
            ) as stream:
                if stream.status != 200:
                    raise api_error(
                        stream.status, await stream.read_all(), stream.header("Retry-After")
                    )
                self._is_shaken = False
                self._pacer.answered()
                has_delivered = await self._follow(LineReader(stream, self.codec), started_s)
            if not has_delivered:
                await self.doubt.compare(self.version, was_probe=is_probe)
            elif self.kind is NAMESPACE:  # one kind checks for all
                await self._history.check()
        except Expired as error:
            raise Relist(self.version, str(error)) from error
        except TRY_AGAIN as error:
            if not isinstance(error, TooManyRequests):  # a busy server has answered
                self._shaken()
            if isinstance(error, NotFound) and await self._learn_version():
                raise Relist(
                    ANY_VERSION, f"it is served as {self.served_kind.group_version}"
                ) from error
            self._complain(error)
            self._on_failure(self.kind, error)
            await self._pauses.after(error)

    async def _follow(self, reading: LineReader, started_s: float | None = None) -> bool:
        """Read a live stream to its end; returns whether its completeness needs no check. A break
        is a normal end, but raised if it came at once: a list would break, too.
        """
        self.watch_count += 1
        self._complained = ""
        has_delivered, broke = False, list[TransportError]()
        try:
            async with asyncio.timeout(None) as limit:
                self._limit = limit
                while (events := await reading.next()) is not None:
                    if limit.when() is not None:
                        limit.reschedule(None)
                    has_delivered = has_delivered or bool(events)
                    self._deliver(events)
        except TimeoutError:
            self.doubt.fell_silent(f"did not show a change of this scheduler within {OWED_S:.0f} s")
            return False
        except ProtocolBroken as error:  # a repetition would fail in the same way
            raise Relist(self.version, str(error)) from error
        except DeadlineExceeded:
            self.doubt.fell_silent("did not end in its time")
            return False
        except TransportError as error:
            broke.append(error.with_traceback(None))  # else a cycle with this frame
            self._shaken()
            log.debug("%s: the stream broke: %s", self.kind.plural, error)
        finally:
            self._limit = None
        if has_delivered or started_s is None:  # initial events prove that the stream works
            return True
        if self.options.clock() - started_s >= SHORT_STREAM_S:
            return bool(broke)  # the next stream continues from here
        raise broke.pop() if broke else Relist(self.version, "the stream ended at once")

    def _shaken(self) -> None:
        """The connection broke. The next stream is a probe, so that it soon delivers: otherwise a
        kind whose streams keep breaking would be taken for silent.
        """
        self._is_shaken = self.doubt.is_open = True

    def _deliver(self, events: list[WatchLine]) -> None:
        """Hand over the events of a read."""
        if not events:
            return
        self.doubt.delivered()
        put, kind = self.put, self.served_kind
        for event in events:
            if event.type == codec.ERROR:
                raise self._stream_error(event.status or ApiStatus())
            if runs_backwards(self.version, event.version):
                raise Relist("", f"versions run backwards ({self.version}, then {event.version})")
            if event.version:
                self.version = event.version
            if event.obj is None:
                continue
            put(Gone(kind, event.obj) if event.type == codec.DELETED else Seen(kind, event.obj))

    def _stream_error(self, status: ApiStatus) -> Exception:
        if status.code == 429:
            wait_s = status.details.retry_after_seconds if status.details is not None else 0
            return TooManyRequests(429, status.message, status.reason, retry_after_s=wait_s or None)
        why = f"the server ended the stream: {status.message or status.reason or status.code}"
        return Relist(self.version, why)

    # --- steps 4 and 7: failures -----------------------------------------------------------------

    async def _after_failure(self, error: ApiError | TransportError, want: str) -> str:
        """Report the failure and wait; returns the version for the next list."""
        if isinstance(error, NotFound):
            try:
                if await self._learn_version():
                    return ANY_VERSION
            except (ApiError, TransportError) as failure:
                error = failure
        if isinstance(error, NotFound) and await self._never_was():
            log.log(
                logging.DEBUG if self.is_absent else logging.INFO,
                "the server does not serve %s (%s); treated as empty",
                self.kind.plural,
                self.kind.group_version,
            )
            if not self.is_absent:
                self.is_absent = True
                self._take_as_all((), "")
            await self.options.sleep(ABSENT_RETRY_S)
            return ANY_VERSION
        self._complain(error)
        self._on_failure(self.kind, error)
        await self._pauses.after(error)
        return self.version or want

    async def _never_was(self) -> bool:
        if self.kind.group_version == CORE or (self.list_count and not self.is_absent):
            return False
        try:
            return await served_version(self.transport, self.kind) is None
        except (ApiError, TransportError):
            return False

    async def _learn_version(self) -> bool:
        """Find the version of the kind that the server has; returns whether it has changed. If the
        server has none, cached objects stay in use. Raises ApiError or TransportError before the
        first list.
        """
        if len(versions_of(self.kind)) == 1:
            return False
        try:
            served = await served_version(self.transport, self.kind)
        except (ApiError, TransportError):
            if self.version:
                return False
            raise
        if served is None or served is self.served_kind:
            return False
        self.served_kind, self.version = served, ""
        self.codec = KindCodec(served, log_malformed, self._raw_objects)
        self._lister = self._make_lister()
        self._history.follow(self.kind, lambda: self.version, served)
        return True

    def _make_lister(self) -> Lister:
        parts = parts_to(self.put, self.kind)
        return Lister(self.transport, self.codec, self._path, self.doubt.listening, parts)

    def _complain(self, error: ApiError | TransportError) -> None:
        """Log a failure once until it changes."""
        self._complained = log_failure(self.served_kind, error, self._complained)

    def _path(self, query: dict[str, str], stream_s: float | None = None) -> str:
        query = dict(query)
        if self.options.field_selector:
            query["fieldSelector"] = self.options.field_selector
        if self.options.label_selector:
            query["labelSelector"] = self.options.label_selector
        if stream_s is not None:
            query["timeoutSeconds"] = str(int(stream_s))
        return f"{self.served_kind.path}?{urlencode(query)}"
