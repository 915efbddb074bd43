"""Watch streams on a wire: late, broken, expired, repeated; always in order within a kind.

A stream is the embedded server's own watch with its frames, bookmarks and end. It lags as a watch
cache does: its events are old, and its bookmarks claim no more than it has sent. Events of
different kinds are not ordered, since each stream has its own delay.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

import orjson

from asched.kube.errors import ConnectionLost, DeadlineExceeded
from asched.kube.transport import Reply
from asched.kube.writes import WireRequest
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.faults import GONE
from asched_lab.apiserver.watching import BOOKMARK_BEFORE_END_S, INITIAL_END, Watch
from asched_lab.sim.faults import (
    ActiveFaults,
    BrokenWatches,
    DuplicateSights,
    ExpiredWatches,
    SilentWatches,
    StaleWatch,
    SwallowedEvents,
)
from asched_lab.sim.requests import ask, send

if TYPE_CHECKING:
    from asched_lab.sim.wire import Wire

#: Share of frames after which a stream's delay changes.
LAG_CHANGES: Final = 0.05
#: Share of breaks at a moment without an event.
BREAKS_IDLE: Final = 0.5
#: Share of compacted versions that are reported by the status of the answer.
BY_STATUS: Final = 0.5
#: The parameter that requests initial events.
INITIAL: Final = ("sendInitialEvents", "resourceVersionMatch")


def begun(
    ctx: Context, request: WireRequest, active_faults: ActiveFaults
) -> tuple[list[bytes], Watch] | Reply | None:
    """The watch that a request opens, with its initial events; a refusal; None if it opens none.

    While faults are in force, a list that need not be the newest is not always the newest. A
    compacted version is reported by an event, as API servers do, or by the status of the answer, as
    proxies do.
    """
    path, _, text = request.path.partition("?")
    if "watch=true" not in text:
        return None
    query = dict(parse_qsl(text)) if "sendInitialEvents" in text else {}
    version = query.get("resourceVersion", "")
    if version and active_faults.is_on:
        version = str(active_faults.rng.randint(int(version), ctx.store.revision))
        first = _listed_at(ctx, path, query, version)
        since = {key: value for key, value in query.items() if key not in INITIAL}
        since["resourceVersion"] = version
        watch = ask(ctx, WireRequest("GET", f"{path}?{urlencode(since)}", None))
        if first and isinstance(watch, Watch):
            return first, watch
    watch = ask(ctx, request)
    if isinstance(watch, Watch) and watch.ended and active_faults.rng.random() < BY_STATUS:
        return Reply(410, GONE.encode())
    return ([], watch) if isinstance(watch, Watch) else None


def _listed_at(ctx: Context, path: str, query: dict[str, str], version: str) -> list[bytes]:
    """Initial events of a past moment; none if the server has compacted it."""
    parameters = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    if "fieldSelector" in query:
        parameters["fieldSelector"] = query["fieldSelector"]
    reply = send(ctx, WireRequest("GET", f"{path}?{urlencode(parameters)}", None))
    if reply.status != 200:
        return []
    objects = orjson.loads(reply.body)["items"]
    end = {"metadata": {"resourceVersion": version, "annotations": INITIAL_END}}
    events = [{"type": "ADDED", "object": obj} for obj in objects]
    return [orjson.dumps(event) + b"\n" for event in (*events, {"type": "BOOKMARK", "object": end})]


def _version_of(frame: bytes) -> int:
    return int(orjson.loads(frame)["object"]["metadata"]["resourceVersion"])


class Body:
    """An answer that is not a watch, read in pieces."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.header = reply.header

    async def read_all(self) -> bytes:
        return self._reply.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._reply.body


class Stream:
    """One watch between the server and one process. The world delivers; the process reads."""

    status = 200

    def __init__(
        self, wire: "Wire", watch: Watch, first: list[bytes], on_close: Callable[[], object]
    ) -> None:
        self._wire = wire
        self._clock = wire.clock
        self._active_faults = wire.active_faults
        self._watch = watch
        self._on_close = on_close
        #: (due time, piece): not sent yet, and sent but not read.
        self._coming: deque[tuple[float, bytes]] = deque()
        self._arrived: list[bytes] = []
        #: The last piece that was sent, and the version before the first.
        self._last_frame = b""
        self._began = watch.options.version or wire.ctx.store.revision
        self._last_due_s = self._clock.now_s()
        self._is_over = self._is_broken = self._is_closed = False
        self._is_mute = self._is_expired = self._breaks_then = False
        self._is_silent = self._active_faults.strikes(SilentWatches) is not None
        self._awake: asyncio.Future[None] | None = None
        self._end_s = 0.0
        self._lag_s = 0.0
        for frame in (*first, *watch.take()):
            self._coming.append((self._clock.now_s(), frame))
        self._lag_s = self._active_faults.seconds(StaleWatch, "lag_s_max")
        watch.wake = self._take
        self._clock.after(0.0, self._deliver)
        if watch.lasting_s > BOOKMARK_BEFORE_END_S:
            self._clock.after(watch.lasting_s - BOOKMARK_BEFORE_END_S, self._bookmark)
        self._clock.after(watch.lasting_s, self._end)
        self._plan(BrokenWatches, self._break_now_or_then)
        self._plan(ExpiredWatches, self.expire)

    @property
    def is_behind(self) -> bool:
        """Whether an event is still on its way."""
        return bool(self._coming or self._arrived)

    # --- the reader's side -----------------------------------------------------------------------

    def opened(self, end_s: float) -> None:
        """A reader is attached, until the loop's `end_s` at most."""
        self._end_s = end_s

    def header(self, _name: str) -> str | None:
        return None

    async def read_all(self) -> bytes:
        raise AssertionError("a watch has no end to wait for")

    def chunks(self) -> "Stream":
        return self

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> bytes:
        while not self._arrived:
            if self._is_broken:
                raise ConnectionLost("the connection broke")
            if self._is_over:
                raise StopAsyncIteration
            self._awake = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(self._end_s):
                    await self._awake
            except TimeoutError:
                raise DeadlineExceeded("the stream did not end in its time") from None
        piece = b"".join(self._arrived)
        self._arrived.clear()
        return piece

    def close(self) -> None:
        """The reader is gone."""
        if not self._is_closed:
            self._is_closed = True
            self._watch.wake = lambda: None
            self._watch.end()
            self._coming.clear()
            self._on_close()

    # --- the server's side -----------------------------------------------------------------------

    def _take(self) -> None:
        """Give each new frame its time of arrival; none overtakes another."""
        if self._breaks_then:
            self.break_()
            return
        if self._active_faults.rng.random() < LAG_CHANGES:
            self._lag_s = self._active_faults.seconds(StaleWatch, "lag_s_max")
        lag_s = self._lag_s if self._active_faults.is_on else 0.0
        due_s = self._last_due_s = max(self._last_due_s, self._clock.now_s() + lag_s)
        for frame in self._watch.take():
            self._coming.append((due_s, frame))
        self._clock.after(due_s - self._clock.now_s(), self._deliver)

    def _deliver(self) -> None:
        if self._is_closed or self._is_mute or not self._wire.when_through(self._deliver):
            return
        while self._coming and self._coming[0][0] <= self._clock.now_s():
            frame = self._coming.popleft()[1]
            if self._is_silent and not self._is_expired:
                continue
            self._last_frame = frame
            if self._active_faults.strikes(SwallowedEvents):
                continue
            self._arrived.append(frame)
            if self._active_faults.strikes(DuplicateSights):
                self._arrived.append(frame)
        self._wake()

    def mute(self) -> None:
        """Stop sending, even the end of the stream, without an error."""
        self._is_mute = True

    def hush(self) -> None:
        """Stop sending, except the end of the stream."""
        self._is_silent = True

    def _wake(self) -> None:
        if self._awake is not None and not self._awake.done():
            self._awake.set_result(None)

    def _bookmark(self) -> None:
        """A bookmark at the version up to which this stream has sent everything."""
        is_over = self._is_closed or self._is_mute or self._is_expired
        if is_over or self._is_silent or not self._watch.options.bookmarks:
            return
        version = self._wire.ctx.store.revision
        if self._coming:
            version = _version_of(self._coming[0][1]) - 1
        if version > (_version_of(self._last_frame) if self._last_frame else self._began):
            event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}
            self._coming.appendleft((self._clock.now_s(), orjson.dumps(event) + b"\n"))
            self._deliver()

    def _end(self) -> None:
        """The timeout: the next stream sends the remaining events."""
        if self._is_closed or self._is_mute or not self._wire.when_through(self._end):
            return
        self._watch.wake = lambda: None
        self._watch.end()
        self._coming.clear()
        self._is_over = True
        self._wake()

    # --- faults ----------------------------------------------------------------------------------

    def _plan(self, kind: type[BrokenWatches | ExpiredWatches], strike: Callable[[], None]) -> None:
        """Strike at a random time, if the fault is still in force then."""
        fault = self._active_faults.find(kind)
        if fault is not None:
            due_s = self._active_faults.rng.uniform(0.0, 2 * fault.every_s)
            self._clock.after(due_s, lambda: strike() if self._active_faults.find(kind) else None)

    def _break_now_or_then(self) -> None:
        """Break while idle, or before the next frame: the next stream has to send that."""
        if self._active_faults.rng.random() < BREAKS_IDLE:
            self.break_()
        else:
            self._breaks_then = True

    def break_(self) -> None:
        if not self._is_closed:
            self._is_broken = True
            self._end()

    def expire(self) -> None:
        """The server has compacted the version of this stream."""
        if not self._is_closed and not self._is_over:
            self._watch.wake = lambda: None
            self._is_expired = True
            self._watch.expire()
            self._coming.clear()
            self._coming.append((self._clock.now_s(), self._watch.take()[-1]))
            self._deliver()
            self._end()
