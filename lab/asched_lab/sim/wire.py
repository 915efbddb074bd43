"""The network between a simulated process and the server's handlers: requests arrive late or never.

Everything above it is production's code: lanes, retries, watches, the lease. It replaces sockets,
TLS and the HTTP parsers. The network runs in the world's time: it goes on while a process is
stopped.

A stream is the embedded server's own watch with its frames, bookmarks and end, in order within a
kind. It lags as a watch cache does: its events are old, and its bookmarks claim no more than it has
sent. Each stream has its own delay.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec
import orjson

from asched.core.framework.effects import Bind, PodRef
from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, TransportError
from asched.kube.kubeconfig import Login
from asched.kube.session import ConnectionOptions, Session
from asched.kube.transport import (
    HEADER_TIMEOUT_S,
    Reply,
    StreamingTransport,
    WireRequest,
    no_fence,
    observe_nothing,
)
from asched_lab.apiserver.auth import ADMIN
from asched_lab.apiserver.call import Call, refusal
from asched_lab.apiserver.call import Reply as ServerReply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.faults import CONFLICT, GONE, OVERLOADED
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.routing import route
from asched_lab.apiserver.watching import BOOKMARK_BEFORE_END_S, INITIAL_END, Watch
from asched_lab.sim.clock import VirtualClock
from asched_lab.sim.faults import (
    ActiveFaults,
    BrokenWatches,
    Conflicts,
    DuplicateSights,
    ExpiredWatches,
    LateWrites,
    LostAnswers,
    Overload,
    ServerErrors,
    SilentWatches,
    SlowAnswers,
    StaleWatch,
    SwallowedEvents,
    Unreachable,
)


class _Target(msgspec.Struct):
    name: str


class _Binding(msgspec.Struct):
    metadata: PodRef
    target: _Target


def ask(ctx: Context, request: WireRequest) -> ServerReply | Watch:
    """Let the server answer a request at once."""
    path, query = _read(request.path)
    headers = {"content-type": request.content_type, "accept": request.accept}
    call = Call(request.method, path, dict(query), headers, request.body or b"", ADMIN)
    try:
        return route(ctx, call)
    except ApiError as error:
        return refusal(error)


@lru_cache(maxsize=4096)  # idle streams repeat the same requests
def _read(target: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The path and the query of a request."""
    path, _, query = target.partition("?")
    return unquote(path), tuple(parse_qsl(query, keep_blank_values=True))


def send(ctx: Context, request: WireRequest) -> Reply:
    """The same for requests that are not watches."""
    reply = ask(ctx, request)
    assert isinstance(reply, ServerReply)
    head = b"".join(b"\r\n%s: %s" % (k.encode(), v.encode()) for k, v in reply.headers.items())
    return Reply(reply.status, reply.body, head)


def bind_of(request: WireRequest) -> Bind:
    """The binding in a request."""
    body = msgspec.json.decode(request.body or b"", type=_Binding)
    return Bind(pod=body.metadata, node=body.target.name)


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
        if self._is_closed or self._is_mute or not self._wire.when_sent(self._deliver):
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
        if self._is_closed or self._is_mute or not self._wire.when_sent(self._end):
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


#: Share of the longest delay within which half of a dead process's requests arrive.
EARLY: Final = 0.03
#: Longest one-way time in the network of a healthy cluster.
WAY_S_MAX: Final = 0.01

#: (binding, whether it came late): a binding that the server has just accepted.
OnBound = Callable[[Bind, bool], None]


class Travel:
    """An open request, and the future that its process waits for."""

    __slots__ = ("heard", "request")

    def __init__(self, request: WireRequest, heard: "asyncio.Future[Outcome]") -> None:
        self.request = request
        self.heard = heard


class Wire:
    """The network of one process. After `cut` it receives nothing."""

    def __init__(
        self, ctx: Context, clock: VirtualClock, active_faults: ActiveFaults, on_bound: OnBound
    ) -> None:
        self.ctx = ctx
        self.clock = clock
        self.active_faults = active_faults
        self._on_bound = on_bound
        self._rng = random.Random(active_faults.rng.random())
        self._numbers = count()
        self._travelling: dict[int, Travel] = {}
        self._late: list[WireRequest] = []  # requests after their timeout
        #: When a request for a path was lost last, or its answer.
        self.lost_s: dict[str, float] = {}
        #: Bindings that arrived after their timeout.
        self.late_bindings = 0
        #: Open watches, by number.
        self.streams: dict[int, Stream] = {}
        self._is_cut = False
        #: Until when nothing passes: to the server, and from it.
        self._to_server_s = self._from_server_s = 0.0

    def cut(self, late_s_max: float = 0.0) -> None:
        """The process dies: sent requests arrive or not, and no answer is received.

        They arrive at once, or, if `late_s_max` is given, at any time within that; half of them
        early, while a successor may be catching up.
        """
        for travel in self._travelling.values():
            if travel.request.method == "GET" or self._rng.random() < 0.5:
                continue
            if late_s_max:
                longest_s = self._rng.choice((late_s_max, late_s_max * EARLY))
                self._carry_out_after(self._rng.uniform(0.0, longest_s), travel.request)
            else:
                self._carry_out(travel.request, late=False)
        self.close()

    def close(self) -> None:
        """Nothing is received and nothing arrives any more."""
        self._is_cut = True
        self._travelling.clear()
        for stream in tuple(self.streams.values()):
            stream.close()

    def cut_off(self, seconds: float, *, to_server: bool = True, from_server: bool = True) -> None:
        """No traffic passes for this time, in these directions."""
        until_s = self.clock.now_s() + seconds
        if to_server:
            self._to_server_s = until_s
        if from_server:
            self._from_server_s = until_s

    @property
    def passes_since_s(self) -> float:
        """Since when, or from when on, traffic passes in both directions and the server answers."""
        return max(self._to_server_s, self._from_server_s, self.active_faults.frozen_until_s)

    def when_sent(self, call: Callable[[], None]) -> bool:
        """Whether the server sends events and they pass; if not, the call is made when they do."""
        return self._is_past(max(self._from_server_s, self.active_faults.frozen_until_s), call)

    def _is_past(self, until_s: float, call: Callable[[], None]) -> bool:
        wait_s = until_s - self.clock.now_s()
        if wait_s > 0.0:
            self.clock.after(wait_s, call)
        return wait_s <= 0.0

    async def carry(self, request: WireRequest, timeout_s: float) -> "Reply | Stream":
        """Send one request and return its answer. Raises TransportError."""
        heard: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        travel, number = Travel(request, heard), next(self._numbers)
        if self.active_faults.strikes(Unreachable):
            self._after_a_way(lambda: self._hear(travel, ConnectFailed("connection refused")))
        else:
            self._travelling[number] = travel
            self._after_a_way(lambda: self._arrive(number))
        try:
            async with asyncio.timeout(timeout_s):
                outcome = await heard
        except TimeoutError:
            raise DeadlineExceeded("the server did not answer in time") from None
        if isinstance(outcome, TransportError):
            raise outcome
        return outcome

    def _after_a_way(self, call: Callable[[], None]) -> None:
        """Call after one way through the network, unless the process has died by then."""
        way_s = self._rng.uniform(0.0, WAY_S_MAX)
        way_s += self.active_faults.seconds(SlowAnswers, "seconds_max")
        self.clock.after(way_s, lambda: None if self._is_cut else call())

    def _arrive(self, number: int) -> None:
        if number not in self._travelling:
            return
        if not self._is_past(self._to_server_s, lambda: self._arrive(number)):
            return
        travel = self._travelling.pop(number)
        if travel.heard.done() and not self._is_cut:
            return  # the connection was closed, and everything on it is lost
        frozen_s = self.active_faults.frozen_until_s - self.clock.now_s()
        if frozen_s > 0.0:
            self._late.append(travel.request)
            frozen_s += self._rng.uniform(0.0, WAY_S_MAX)
            self.clock.after(frozen_s, lambda: self._thaw(travel))
        else:
            self._handle(travel)

    def _thaw(self, travel: Travel) -> None:
        """The server continues with a request, whether or not the sender still waits."""
        if travel.request not in self._late:  # carried out meanwhile
            return
        self._late.remove(travel.request)
        if travel.request.method != "GET" or not (travel.heard.done() or self._is_cut):
            self._handle(travel)

    def _handle(self, travel: Travel) -> None:
        outcome = self._fate(travel.request)
        if isinstance(outcome, TransportError):
            path = travel.request.path.partition("?")[0]
            self.lost_s[path] = self.clock.now_s()
        self._after_a_way(lambda: self._hear(travel, outcome))

    def _hear(self, travel: Travel, outcome: "Outcome") -> None:
        if not self._is_past(self._from_server_s, lambda: self._hear(travel, outcome)):
            return
        if travel.heard.done() or self._is_cut:
            if isinstance(outcome, Stream):
                outcome.close()
        else:
            travel.heard.set_result(outcome)

    def _fate(self, request: WireRequest) -> "Outcome":
        active_faults, is_write = self.active_faults, request.method != "GET"
        if (overload := _unspared(active_faults.strikes(Overload), request)) is not None:
            return Reply(429, OVERLOADED.encode(), b"\r\nRetry-After: %d" % overload.retry_after_s)
        if is_write and _unspared(active_faults.strikes(Conflicts), request) is not None:
            return Reply(409, CONFLICT.encode())
        if (errors := _unspared(active_faults.strikes(ServerErrors), request)) is not None:
            if is_write and self._rng.random() < errors.applied_share:
                self._carry_out(request, late=False)
            return Reply(500, b"etcdserver: request timed out")
        if (lost := active_faults.strikes(LostAnswers)) is not None:
            if is_write and self._rng.random() < lost.applied_share:
                self._carry_out(request, late=False)
            return ConnectionLost("the connection broke")
        if is_write and active_faults.strikes(LateWrites) is not None:
            late_s = active_faults.seconds(LateWrites, "late_s_max")
            self._carry_out_after(late_s, request)
            return ConnectionLost("the connection broke")
        return self._carry_out(request, late=False)

    def open_bindings(self) -> Iterator[Bind]:
        """Bindings under way of pods without a node: each may still be carried out."""
        sent = [travel.request for travel in self._travelling.values() if not travel.heard.done()]
        for request in (*sent, *self._late):
            if _is_binding(request) and not self._is_placed(request):
                yield bind_of(request)

    def _is_placed(self, binding: WireRequest) -> bool:
        *_, namespace, _, name, _ = binding.path.partition("?")[0].split("/")
        record = self.ctx.get(PODS, namespace, name)
        return record is None or bool(record.obj["spec"].get("nodeName"))

    def _carry_out_after(self, late_s: float, request: WireRequest) -> None:
        self._late.append(request)
        self.clock.after(late_s, lambda: self._arrive_late(request))

    def _arrive_late(self, request: WireRequest) -> None:
        if request in self._late:
            self._late.remove(request)
            self._carry_out(request, late=True)

    def hurry(self) -> None:
        """Let what a dead process had sent arrive now."""
        for request in tuple(self._late):
            self._arrive_late(request)

    def _carry_out(self, request: WireRequest, *, late: bool) -> "Reply | Stream":
        if request.method == "GET":
            found = begun(self.ctx, request, self.active_faults)
            if isinstance(found, Reply):
                return found
            if found is not None:
                return self._follow(*found)
        reply = send(self.ctx, request)
        if _is_binding(request):
            self.late_bindings += late
            if reply.status < 300:
                self._on_bound(bind_of(request), late)
        return reply

    def _follow(self, first: list[bytes], watch: Watch) -> Stream:
        number = next(self._numbers)
        stream = Stream(self, watch, first, lambda: self.streams.pop(number, None))
        self.streams[number] = stream
        return stream


Outcome = Reply | Stream | TransportError


def _is_binding(request: WireRequest) -> bool:
    return request.path.partition("?")[0].endswith("/binding")


class Connection(StreamingTransport):
    """A transport over a wire. As in production the fence is checked when a request leaves."""

    def __init__(
        self,
        wire: Wire,
        credentials: Credentials,
        may_send: Callable[[], bool] = no_fence,
        on_leave: Callable[[WireRequest], None] = lambda _: None,
    ) -> None:
        super().__init__(credentials, observe_nothing, may_send)
        self._wire = wire
        self._on_leave = on_leave

    async def _exchange(self, request: WireRequest, timeout_s: float) -> Reply:
        self._check_fence()
        self._on_leave(request)
        reply = await self._wire.carry(request, timeout_s)
        assert isinstance(reply, Reply), "a watch is asked for as a stream"
        return reply

    @asynccontextmanager
    async def stream(self, path: str, *, timeout_s: float) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + timeout_s
        answer = await self._wire.carry(WireRequest("GET", path, None), HEADER_TIMEOUT_S)
        if isinstance(answer, Reply):
            yield Body(answer)
            return
        answer.opened(end_s)
        try:
            yield answer
        finally:
            answer.close()

    async def close(self) -> None:
        """There is nothing to close."""


S = TypeVar("S", Overload, Conflicts, ServerErrors)


def _unspared(fault: S | None, request: WireRequest) -> S | None:
    """The fault, unless it spares such requests."""
    if fault is None or (fault.spares and fault.spares in request.path):
        return None
    return fault if fault.only in request.path else None


class WireSession(Session):
    """A session whose connections are all one wire's."""

    def __init__(
        self, wire: Wire, credentials: Credentials, on_leave: Callable[[WireRequest], None]
    ) -> None:
        self._wire = wire
        self._on_leave = on_leave
        super().__init__(credentials, ConnectionOptions(), observe_nothing)

    @classmethod
    async def begun(cls, wire: Wire, on_leave: Callable[[WireRequest], None]) -> "WireSession":
        """A session with credentials that are never used; `on_leave` receives the requests of its
        lanes.
        """
        credentials = Credentials(lambda: Login(server="http://simulated"))
        await credentials.renew()
        return cls(wire, credentials, on_leave)

    def _streaming(self) -> StreamingTransport:
        return Connection(self._wire, self.credentials)

    def pool(
        self,
        limit: int,  # noqa: ARG002 - there is room for all
        *,
        purpose: str = "",
        may_send: Callable[[], bool] = no_fence,
    ) -> StreamingTransport:
        if purpose:  # the pool of the lease
            return Connection(self._wire, self.credentials)
        return Connection(self._wire, self.credentials, may_send, self._on_leave)
