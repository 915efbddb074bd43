"""The wire of a simulated process: what is lost, late, held up, and what a stream claims."""

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import orjson
import pytest

from asched.core.framework.effects import Bind
from asched.kube.errors import ConnectionLost, DeadlineExceeded
from asched.kube.transport import WireRequest
from asched_lab.apiserver import bootstrap
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.clock import VirtualClock, VirtualLoop
from asched_lab.sim.faults import ActiveFaults, Fault, LostAnswers, StaleWatch
from asched_lab.sim.wire import Stream, Wire

NODES = "/api/v1/nodes"
WATCH = f"{NODES}?watch=true&allowWatchBookmarks=true&timeoutSeconds=15&resourceVersion="


class Bench:
    """A server and one process's wire to it."""

    def __init__(self, *faults: Fault) -> None:
        self.clock = VirtualClock()
        self.loop = VirtualLoop(self.clock)
        self.server = ApiServer(clock=self.clock.now_s, seed=1)
        bootstrap.fill(self.server.ctx, port=1, authority="")
        self.server.store.begin_history()
        self.bound: list[tuple[Bind, bool]] = []
        self.active_faults = ActiveFaults(faults, random.Random(1))
        self.wire = Wire(
            self.server.ctx, self.clock, self.active_faults, lambda *told: self.bound.append(told)
        )

    def freeze(self, seconds: float) -> None:
        """The server stops for this time."""
        self.active_faults.frozen_until_s = self.clock.now_s() + seconds

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        end_s = self.clock.now_s() + seconds
        while (next_s := self.clock.next_s()) is not None and next_s <= end_s:
            self.clock.jump(next_s)
            self.clock.run_due()

    def run(self, work: Awaitable[Any]) -> Any:
        """Until the work is done; time jumps to whatever is due."""

        async def do() -> Any:
            return await work

        task = self.loop.create_task(do())
        while not task.done():
            moments = [m for m in (self.clock.next_s(), self.loop.next_s()) if m is not None]
            self.clock.jump(min(moments))
            self.clock.run_due()
            self.loop.step()
        return task.result()

    def send(self, method: str, path: str, obj: Any = None, timeout_s: float = 30.0) -> Any:
        body = None if obj is None else orjson.dumps(obj)
        return self.run(self.wire.carry(WireRequest(method, path, body), timeout_s))

    def watch(self) -> Stream:
        stream = self.send("GET", f"{WATCH}{self.server.store.revision}")
        assert isinstance(stream, Stream)
        stream.opened(self.clock.now_s() + 20.0)
        return stream

    def events(self, stream: Stream) -> list[tuple[str, str]]:
        """(type, resourceVersion) of the next piece."""
        lines = [orjson.loads(line) for line in self.run(anext(stream)).splitlines()]
        return [(e["type"], e["object"]["metadata"]["resourceVersion"]) for e in lines]


Make = Callable[..., Bench]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Bench] = []

    def one(*faults: Fault) -> Bench:
        made.append(Bench(*faults))
        return made[-1]

    yield one
    for bench in made:
        bench.wire.close()
        bench.loop.close()


def a_node(name: str) -> Any:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}}


def test_a_lost_answer_was_carried_out_or_not(make: Make) -> None:
    for share, is_there in ((1.0, True), (0.0, False)):
        bench = make(LostAnswers(rate=1.0, applied_share=share))
        with pytest.raises(ConnectionLost):
            bench.send("POST", NODES, a_node("n1"))
        assert (bench.server.get("nodes", "", "n1") is not None) is is_there


def test_what_is_given_up_while_nothing_comes_through_does_not_arrive(make: Make) -> None:
    bench = make()
    bench.wire.cut_off(10.0)
    with pytest.raises(DeadlineExceeded):
        bench.send("POST", NODES, a_node("n1"), timeout_s=5.0)
    began_s = bench.clock.now_s()
    reply = bench.send("POST", NODES, a_node("n2"))

    assert reply.status == 201
    assert bench.clock.now_s() >= began_s + 5.0
    assert bench.server.get("nodes", "", "n1") is None


def test_where_answers_alone_do_not_pass_the_request_is_carried_out(make: Make) -> None:
    bench = make()
    bench.wire.cut_off(10.0, to_server=False)
    with pytest.raises(DeadlineExceeded):
        bench.send("POST", NODES, a_node("n1"), timeout_s=5.0)

    assert bench.server.get("nodes", "", "n1") is not None


def test_a_stale_stream_is_late_and_its_bookmark_claims_no_more_than_it_told(make: Make) -> None:
    bench = make(StaleWatch(lag_s_max=1000.0))
    stream = bench.watch()
    bench.server.create("namespaces", {"metadata": {"name": "other"}})
    first = bench.server.create("nodes", a_node("n1"))["metadata"]["resourceVersion"]
    bench.server.create("nodes", a_node("n2"))

    assert bench.events(stream) == [("BOOKMARK", str(int(first) - 1))]
    with pytest.raises(StopAsyncIteration):
        bench.run(anext(stream))


def test_of_a_dead_process_nothing_is_left(make: Make) -> None:
    bench = make()
    stream = bench.watch()
    bench.wire.cut()
    bench.server.create("nodes", a_node("n1"))

    assert not bench.wire.streams
    assert not stream.is_behind


def test_a_frozen_server_carries_out_what_was_given_up_and_what_the_dead_have_sent(
    make: Make,
) -> None:
    for dies in (False, True):
        bench = make()
        bench.freeze(10.0)
        with pytest.raises(DeadlineExceeded):
            bench.send("POST", NODES, a_node("n1"), timeout_s=5.0)
        if dies:
            bench.wire.cut()
        assert bench.server.get("nodes", "", "n1") is None

        bench.wait(10.0)

        assert bench.server.get("nodes", "", "n1") is not None


def test_a_stream_of_a_frozen_server_goes_on_when_the_server_does(make: Make) -> None:
    bench = make()
    stream = bench.watch()
    began_s = bench.clock.now_s()
    bench.freeze(10.0)
    bench.server.create("nodes", a_node("n1"))

    assert [kind for kind, _ in bench.events(stream)] == ["ADDED"]
    assert bench.clock.now_s() >= began_s + 10.0


@pytest.mark.parametrize("rate", [0.9, 1.1])
def test_a_loop_whose_clock_is_wrong_waits_by_its_own_time(rate: float) -> None:
    clock = VirtualClock()
    loop, began_s = VirtualLoop(clock, rate), clock.now_s()
    done: list[float] = []
    loop.call_later(9.9, lambda: done.append(loop.time() - began_s))

    while not done:
        clock.jump(loop.next_s() or 0.0)
        loop.step()

    assert done == [pytest.approx(9.9)]
    assert clock.now_s() - began_s == pytest.approx(9.9 / rate)
    loop.close()
