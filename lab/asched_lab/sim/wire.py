"""The network between a simulated process and the server's handlers: requests arrive late or never.

Everything above it is production's code: lanes, retries, watches, the lease. It replaces sockets,
TLS and the HTTP parsers. The network runs in the world's time: it goes on while a process is
stopped.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final, TypeVar

from asched.core.framework.effects import Bind
from asched.kube.credentials import Credentials
from asched.kube.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, TransportError
from asched.kube.kubeconfig import Login
from asched.kube.session import ConnectionOptions, Session
from asched.kube.transport import (
    HEADER_TIMEOUT_S,
    Reply,
    StreamingTransport,
    no_fence,
    observe_nothing,
)
from asched.kube.writes import WireRequest
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.faults import CONFLICT, OVERLOADED
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.watching import Watch
from asched_lab.sim.clock import VirtualClock
from asched_lab.sim.faults import (
    ActiveFaults,
    Conflicts,
    LateWrites,
    LostAnswers,
    Overload,
    ServerErrors,
    SlowAnswers,
    Unreachable,
)
from asched_lab.sim.requests import bind_of, send
from asched_lab.sim.streams import Body, Stream, begun

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
        #: Open watches, by number.
        self.streams: dict[int, Stream] = {}
        self._is_cut = False
        self._cut_off_until_s = 0.0

    def cut(self, late_s_max: float = 0.0) -> None:
        """The process dies: sent requests arrive or not, and no answer is received.

        They arrive at once, or, if `late_s_max` is given, at any time within that.
        """
        for travel in self._travelling.values():
            if travel.request.method == "GET" or self._rng.random() < 0.5:
                continue
            if late_s_max:
                late_s = self._rng.uniform(0.0, late_s_max)
                self._carry_out_after(late_s, travel.request)
            else:
                self._carry_out(travel.request, late=False)
        self.close()

    def close(self) -> None:
        """Nothing is received and nothing arrives any more."""
        self._is_cut = True
        self._travelling.clear()
        for stream in tuple(self.streams.values()):
            stream.close()

    def cut_off(self, seconds: float) -> None:
        """No traffic passes for this time, in either direction."""
        self._cut_off_until_s = self.clock.now_s() + seconds

    def when_through(self, call: Callable[[], None]) -> bool:
        """Whether traffic passes; if not, the call is made when it does."""
        wait_s = self._cut_off_until_s - self.clock.now_s()
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
        if not self.when_through(lambda: self._arrive(number)):
            return
        travel = self._travelling.pop(number)
        if travel.heard.done() and not self._is_cut:
            return  # the connection was closed, and everything on it is lost
        outcome = self._fate(travel.request)
        self._after_a_way(lambda: self._hear(travel, outcome))

    def _hear(self, travel: Travel, outcome: "Outcome") -> None:
        if not self.when_through(lambda: self._hear(travel, outcome)):
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

    @property
    def bindings(self) -> int:
        """Open bindings of pods without a node: each may still be carried out."""
        sent = [travel.request for travel in self._travelling.values() if not travel.heard.done()]
        return sum(
            _is_binding(request) and not self._is_placed(request)
            for request in (*sent, *self._late)
        )

    def _is_placed(self, binding: WireRequest) -> bool:
        *_, namespace, _, name, _ = binding.path.partition("?")[0].split("/")
        record = self.ctx.get(PODS, namespace, name)
        return record is None or bool(record.obj["spec"].get("nodeName"))

    def _carry_out_after(self, late_s: float, request: WireRequest) -> None:
        def arrive() -> None:
            self._late.remove(request)
            self._carry_out(request, late=True)

        self._late.append(request)
        self.clock.after(late_s, arrive)

    def _carry_out(self, request: WireRequest, *, late: bool) -> "Reply | Stream":
        if request.method == "GET":
            found = begun(self.ctx, request, self.active_faults)
            if isinstance(found, Reply):
                return found
            if found is not None:
                return self._follow(*found)
        reply = send(self.ctx, request)
        if reply.status < 300 and _is_binding(request):
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

    async def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        accept: str,
        timeout_s: float,
    ) -> Reply:
        request = WireRequest(method, path, body, content_type, accept)
        self._look_at_fence()
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
    return None if fault is not None and fault.spares and fault.spares in request.path else fault


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
