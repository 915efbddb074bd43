"""Watch streams of a simulation: late, broken, expired, repeated; in order within a kind, always.

Lists and watches are the embedded server's own bytes, read by production's codec. Between kinds
nothing is in order: each stream has its own delay.
"""

from collections import deque
from collections.abc import Callable

from asched.core.model.kinds import POD, Kind
from asched.core.state.facts import Fact, Gone, Listed, Seen
from asched.edge.client import codec
from asched.edge.client.codec import KindCodec
from asched.edge.client.watch import POD_FIELD_SELECTOR
from asched.edge.client.writes import Request
from asched.lab.apiserver.auth import ADMIN
from asched.lab.apiserver.call import Call
from asched.lab.apiserver.context import Context
from asched.lab.apiserver.routing import route
from asched.lab.apiserver.watching import Watch
from asched.lab.sim.clock import VirtualClock
from asched.lab.sim.faults import (
    BrokenWatches,
    DuplicateSights,
    ExpiredWatches,
    StaleWatch,
    Troubles,
)
from asched.lab.sim.wire import send


class Stream:
    """One kind's way from the server to one process. `put` gets each fact; ends with `close`."""

    def __init__(
        self,
        kind: Kind,
        ctx: Context,
        clock: VirtualClock,
        troubles: Troubles,
        put: Callable[[Fact], None],
    ) -> None:
        self.kind = kind
        self._ctx = ctx
        self._clock = clock
        self._troubles = troubles
        self._put = put
        self._codec = KindCodec(kind, _must_be_well_formed)
        self._query = {"fieldSelector": POD_FIELD_SELECTOR} if kind is POD else {}
        self._version = 0
        self._lag_s = 0.0
        self._last_due_s = 0.0
        self._frames: deque[tuple[float, bytes]] = deque()
        self._watch: Watch | None = None
        self._is_closed = False
        self._stalled_until_s = 0.0
        self._relist()
        self._plan(BrokenWatches, self._break)
        self._plan(ExpiredWatches, self._expire)

    def close(self) -> None:
        self._is_closed = True
        self._end_watch()

    def stall(self, seconds: float) -> None:
        """Nothing is delivered for so long."""
        self._stalled_until_s = self._clock.now_s() + seconds
        self._clock.after(seconds, self._deliver)

    @property
    def is_behind(self) -> bool:
        """Whether something is still on its way."""
        return bool(self._frames) or self._watch is None

    # --- lists and watches -----------------------------------------------------------------------

    def _relist(self) -> None:
        query = dict(self._query)
        newest = self._ctx.store.revision
        if self._version and self._troubles.is_on:
            version = self._troubles.rng.randint(self._version, newest)
            query |= {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
        reply = send(self._ctx, Request("GET", self.kind.path, None), query)
        assert reply.status == 200, reply
        page = self._codec.page(reply.body)
        self._version = int(page.version)
        self._put(Listed(self.kind, tuple(page.objects)))
        self._open()

    def _open(self) -> None:
        query = {**self._query, "watch": "true", "resourceVersion": str(self._version)}
        watch = route(self._ctx, Call("GET", self.kind.path, query, {}, b"", ADMIN))
        assert isinstance(watch, Watch)
        self._watch = watch
        self._lag_s = self._troubles.seconds(StaleWatch, "lag_s_max")
        watch.wake = self._take
        self._take()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.wake = lambda: None
            self._watch.end()
            self._watch = None
        self._frames.clear()

    # --- frames ----------------------------------------------------------------------------------

    def _take(self) -> None:
        """Give each new frame its time of arrival; none overtakes another."""
        assert self._watch is not None
        if self._troubles.rng.random() < 0.05:
            self._lag_s = self._troubles.seconds(StaleWatch, "lag_s_max")
        lag_s = self._lag_s if self._troubles.is_on else 0.0
        due_s = max(self._last_due_s, self._clock.now_s() + lag_s)
        self._last_due_s = due_s
        for frame in self._watch.take():
            self._frames.append((due_s, frame))
        self._clock.after(due_s - self._clock.now_s(), self._deliver)

    def _deliver(self) -> None:
        if self._clock.now_s() < self._stalled_until_s:
            return
        while self._frames and self._frames[0][0] <= self._clock.now_s():
            frame = self._frames.popleft()[1]
            for sight in self._codec.sights([frame]):
                assert sight.type != codec.ERROR, sight
                self._version = max(self._version, int(sight.version))
                if sight.obj is None:
                    continue
                gone = sight.type == codec.DELETED
                fact = (Gone if gone else Seen)(self.kind, sight.obj)
                self._put(fact)
                if self._troubles.strikes(DuplicateSights):
                    self._put(fact)

    # --- trouble ---------------------------------------------------------------------------------

    def _plan(self, kind: type[BrokenWatches | ExpiredWatches], strike: Callable[[], None]) -> None:
        """Strike again and again, at random times, while the fault is in force."""
        fault = self._troubles.find(kind)
        if fault is None:
            return

        def due() -> None:
            if not self._is_closed and self._troubles.is_on:
                strike()
                self._plan(kind, strike)

        self._clock.after(self._troubles.rng.uniform(0.0, 2 * fault.every_s), due)

    def _break(self) -> None:
        if self._watch is not None:
            self._end_watch()
            self._clock.after(self._troubles.rng.uniform(0.0, 2.0), self._reopen)

    def _reopen(self) -> None:
        if self._clock.now_s() < self._stalled_until_s:
            self._clock.after(self._stalled_until_s - self._clock.now_s(), self._reopen)
        elif self._watch is None and not self._is_closed:
            self._open()

    def _expire(self) -> None:
        if self._watch is not None:
            self._end_watch()
            self._clock.after(self._troubles.rng.uniform(0.0, 5.0), self._list_again)

    def _list_again(self) -> None:
        if self._clock.now_s() < self._stalled_until_s:
            self._clock.after(self._stalled_until_s - self._clock.now_s(), self._list_again)
        elif self._watch is None and not self._is_closed:
            self._relist()


def _must_be_well_formed(kind: Kind, name: str, why: str) -> None:
    raise AssertionError(f"the simulated server wrote a malformed {kind.name} {name}: {why}")
