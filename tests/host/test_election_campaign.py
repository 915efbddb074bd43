"""One process's part in an election, in virtual time: what it asks, when it stops, what it says."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

import pytest

from asched.core.cycle.orders import LeaderDied
from asched.core.leader.election import Rules
from asched.core.model.timestamp import micro_time
from asched.host.election import EVENT_S, HAND_ON_S, HEALTH_GRACE_S, Campaign, Candidate, Stand
from asched.kube.errors import (
    ClientError,
    Conflict,
    Forbidden,
    ServerFailed,
    TooManyRequests,
    TransportError,
)
from asched.serve.telemetry.metrics import Metrics
from asched_lab.sim.clock import START_S, VirtualClock
from tests.virtual import OnVirtualLoop

LEASE_S, RENEW_S, RETRY_S = 15.0, 10.0, 2.0
AHEAD_S = 0.5
Json = dict[str, Any]


class Server:
    """One lease. `fails` with something, or says nothing at all while it `hangs`."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.lease: Json | None = None
        self.fails: ClientError | None = None
        self.hangs = False
        self.asked: list[tuple[str, float]] = []
        self.announced: list[tuple[str, str, int]] = []

    async def _serve(self, verb: str) -> None:
        self.asked.append((verb, self.clock.now_s() - START_S))
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails is not None:
            raise self.fails

    def put(self, spec: Mapping[str, Any]) -> Json:
        version = int(self.lease["metadata"]["resourceVersion"]) if self.lease is not None else 0
        self.lease = {"metadata": {"resourceVersion": str(version + 1)}, "spec": dict(spec)}
        return self.lease

    async def get(self) -> Json | None:
        await self._serve("get")
        return self.lease

    async def create(self, spec: Mapping[str, Any]) -> Json:
        await self._serve("create")
        return self.put(spec)

    async def update(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> Json:
        await self._serve("update")
        assert self.lease is not None
        if lease["metadata"] != self.lease["metadata"]:
            raise Conflict(409, "the object has been modified", "Conflict")
        return self.put(spec)

    async def announce(self, _: Json, message: str, *, component: str, now_ns: int) -> None:
        await self._serve("event")
        self.announced.append((message, component, now_ns))

    @property
    def spec(self) -> Json:
        assert self.lease is not None
        spec: Json = self.lease["spec"]
        return spec


class DriftingClock(VirtualClock):
    def ahead_s(self) -> float:
        return AHEAD_S


class World(OnVirtualLoop):
    """A campaign of "a"."""

    def __init__(self) -> None:
        super().__init__(DriftingClock())
        self.server: Any = Server(self.clock)
        self.metrics = Metrics()
        self.began: list[float] = []
        rules = Rules("a", LEASE_S, RENEW_S, RETRY_S)
        self.stand = Stand(rules, "kube-system", "asched", "me")
        self.campaign = Campaign(
            self.stand,
            self.metrics.leader,
            self._began,
            clock=self.clock,
            draw=lambda: 0.0,  # type: ignore[arg-type]
        )

    def _began(self) -> None:
        self.began.append(self.s)

    def start(self, work: Coroutine[Any, Any, None] | None = None) -> "asyncio.Task[None]":
        return self.loop.create_task(work or self.campaign.run(self.server))

    def leads(self, end_s: float = 0.0) -> "asyncio.Task[None]":
        """It has taken a lease that was never there, and renews it."""
        task = self.start()
        self.until(end_s)
        assert self.campaign.may_act()
        return task

    def held_by(self, holder: str, **more: Any) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3}
        self.server.put({**spec, **more})

    def metric(self, name: str) -> float:
        page = self.metrics.render().decode().splitlines()
        lines = [at for at in page if at.startswith(f'{name}{{name="asched"}}')]
        return float(lines[0].split()[1]) if lines else 0.0

    @property
    def status(self) -> float:
        return self.metric("leader_election_master_status")


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_who_leads_says_so_once_and_renews(world: World) -> None:
    assert world.status == 0.0
    world.leads(5.0)
    assert (world.began, world.status) == ([0.0], 1.0)
    assert [verb for verb, _ in world.server.asked[:3]] == ["get", "create", "update"]
    assert [at for verb, at in world.server.asked if verb == "update"] == [0.0, 2.0, 4.0]
    now_ns = int((START_S + AHEAD_S) * 1e9)
    assert world.server.announced == [("a became leader", "me", now_ns)]
    assert world.server.spec["renewTime"] == micro_time(round((START_S + 4.0 + AHEAD_S) * 1e9))
    assert world.campaign.predecessor() is None


def test_who_stands_for_a_lease_says_so_and_that_it_does_not_lead(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "asched.leader")
    assert b'leader_election_master_status{name="asched"} 0.0' in world.metrics.render()
    world.held_by("b")
    world.start()
    world.until(1.0)
    (line,) = [record for record in caplog.records if record.msg.startswith("Attempting")]
    assert vars(line)["lock"] == "kube-system/asched"
    assert world.status == 0.0


def test_a_leader_of_whom_nobody_hears_ends_at_its_fence(world: World) -> None:
    """Requests end there, too, and with them the belief in a server that does not answer."""
    task = world.leads(1.0)
    world.server.hangs = True
    fence_s = world.campaign.election.fence_s - START_S
    assert fence_s == RETRY_S + RENEW_S
    world.until(fence_s - 0.01)
    assert world.campaign.may_act()
    assert not task.done()
    world.clock.jump(START_S + fence_s)
    assert not world.campaign.may_act(), "before anybody has looked at the time"
    world.until(fence_s + EVENT_S)
    assert task.done()
    assert (world.campaign.election.is_leader, world.status) == (False, 0.0)
    assert world.server.asked[-1] == ("event", fence_s)


def test_one_who_lost_the_lease_to_another_says_that_it_stopped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    task = world.leads(1.0)
    world.held_by("b")
    world.until(RETRY_S + RENEW_S + 1.0)
    assert task.done()
    assert [message for message, _, _ in world.server.announced][1:] == ["a stopped leading"]
    assert world.metric("leader_election_slowpath_total") == 0.0, "it renewed nothing"
    assert world.server.spec["holderIdentity"] == "b"
    assert world.status == 0.0
    (line,) = [record for record in caplog.records if record.msg == "Leaderelection lost"]
    assert (line.levelno, vars(line)["lock"]) == (logging.ERROR, "kube-system/asched")


def test_a_leader_whose_loop_stands_still_is_not_well_once_others_should_lead(
    world: World,
) -> None:
    assert world.campaign.trouble() == ""
    world.leads(1.0)
    assert world.campaign.trouble() == ""
    world.clock.jump(START_S + LEASE_S + HEALTH_GRACE_S)
    assert world.campaign.trouble() == ""
    world.clock.jump(START_S + LEASE_S + HEALTH_GRACE_S + 0.1)
    said = "failed election to renew leadership on lease kube-system/asched"
    assert world.campaign.trouble() == said
    world.campaign.election.resign()
    assert world.campaign.trouble() == ""


@pytest.mark.parametrize("led_s", [1.0, 60.0])
def test_it_knows_whether_the_leader_before_it_died(world: World, led_s: float) -> None:
    times = {"acquireTime": micro_time(0), "renewTime": micro_time(int(led_s * 1e9))}
    world.held_by("b", **times)
    world.start()
    world.until(LEASE_S - 0.1)
    assert not world.campaign.may_act()
    world.until(LEASE_S + RETRY_S)
    assert world.campaign.may_act()
    assert world.campaign.predecessor() == LeaderDied(4, died_young=led_s < 5.0)


def test_who_does_not_know_the_cluster_yet_leads_the_moment_it_does(world: World) -> None:
    world.campaign.hold_back()
    world.start()
    world.until(3.0)
    assert world.server.lease is None
    asked = len(world.server.asked)
    world.loop.call_soon(world.campaign.qualify)
    world.until(3.0)
    assert world.began == [3.0]
    assert world.server.asked[asked][0] == "create", "what is free was read already"


def test_a_renewal_that_had_to_read_first_is_counted(world: World) -> None:
    world.leads(1.0)
    assert world.metric("leader_election_slowpath_total") == 0.0
    world.server.put(world.server.spec)  # somebody else wrote it
    world.until(3.0)
    assert world.campaign.may_act()
    assert world.metric("leader_election_slowpath_total") == 1.0


def test_each_new_leader_is_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "asched.leader")
    world.held_by("b")
    world.start()
    world.until(5.0)
    world.held_by("c")
    world.until(10.0)
    told = [record for record in caplog.records if record.msg == "new leader elected"]
    assert [record.__dict__["identity"] for record in told] == ["b", "c"]


@pytest.mark.parametrize(("is_dying", "holder"), [(False, ""), (True, "a")])
def test_an_orderly_end_hands_the_lease_on(world: World, is_dying: bool, holder: str) -> None:
    world.leads(1.0).cancel()
    world.until(1.0)
    world.start(world.campaign.release(world.server, is_dying=is_dying))
    assert world.campaign.may_act()
    world.until(1.0)
    assert not world.campaign.may_act()
    assert world.status == 0.0
    spec = world.server.spec
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == (holder, 1)


def test_one_who_does_not_lead_has_nothing_to_hand_on(world: World) -> None:
    world.held_by("a")
    world.start(world.campaign.release(world.server))
    world.until(1.0)
    assert world.server.asked == []


def test_a_release_that_fails_is_a_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.leads(1.0).cancel()
    world.server.fails = Forbidden(403, "no", "Forbidden")
    task = world.start(world.campaign.release(world.server))
    world.until(1.0)
    assert task.exception() is None
    assert "Failed to release lock" in [record.msg for record in caplog.records]
    assert (world.campaign.may_act(), world.status) == (False, 0.0)


@pytest.mark.parametrize(("is_settled", "after_s"), [(True, 0.0), (False, LEASE_S - 1.0)])
def test_what_was_lost_is_given_back_once_nothing_of_ours_may_still_arrive(
    world: World, is_settled: bool, after_s: float
) -> None:
    world.leads(1.0).cancel()
    world.until(1.0)
    asked = len(world.server.asked)
    world.start(world.campaign.hand_on(world.server, is_settled=is_settled))
    world.until(1.0 + after_s)
    assert not world.campaign.may_act()
    assert world.status == 0.0
    assert world.server.asked[asked:] == [("get", 1.0 + after_s), ("update", 1.0 + after_s)]
    assert world.server.spec["holderIdentity"] == ""


@pytest.mark.parametrize(
    "error",
    [
        TransportError("away"),
        ServerFailed(500, "broken"),
        TooManyRequests(429, "later"),
        Conflict(409, "modified", "Conflict"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_giving_back_is_tried_until_somebody_answers_and_not_for_ever(
    world: World, error: ClientError
) -> None:
    world.leads(1.0).cancel()
    world.until(1.0)
    world.server.fails = error
    asked = len(world.server.asked)
    task = world.start(world.campaign.hand_on(world.server, is_settled=True))
    world.until(1.0 + HAND_ON_S + RETRY_S)
    assert task.done()
    times = [at for _, at in world.server.asked[asked:]]
    assert times == [1.0 + RETRY_S * number for number in range(int(HAND_ON_S / RETRY_S))]


@pytest.mark.parametrize("error", [Forbidden(403, "no", "Forbidden"), None])
def test_who_may_not_give_it_back_or_finds_nothing_stops_at_once(
    world: World, error: ClientError | None, caplog: pytest.LogCaptureFixture
) -> None:
    world.leads(1.0).cancel()
    world.until(1.0)
    asked = len(world.server.asked)
    world.server.fails, world.server.lease = error, None
    task = world.start(world.campaign.hand_on(world.server, is_settled=True))
    world.until(1.0)
    assert task.done()
    assert task.exception() is None
    assert len(world.server.asked) == asked + 1
    warned = [record.msg for record in caplog.records]
    assert ("Failed to release lock" in warned) == (error is not None)


def test_an_event_that_cannot_be_sent_costs_nothing_else(world: World) -> None:
    world.start()
    fine: Callable[..., Any] = world.server.announce

    async def refused(*given: Any, **named: Any) -> None:
        await fine(*given, **named)
        raise TransportError("away")

    world.server.announce = refused
    world.until(5.0)
    assert world.campaign.may_act()
    assert len(world.server.announced) == 1


class FakeStand(Stand, frozen=True):
    server: Any = None

    def client(self, _: Any) -> Any:
        return self.server


def a_candidate(world: World) -> Candidate:
    stand = FakeStand(world.stand.rules, "kube-system", "asched", "me", world.server)
    clock: Any = world.clock
    session: Any = None
    return Candidate(session, stand, world.metrics.leader, clock=clock, draw=lambda: 0.0)


def test_a_candidate_is_leading_while_it_is(world: World) -> None:
    candidate = a_candidate(world)
    task = world.start(candidate.run())
    assert not candidate.is_leading.is_set()
    world.until(1.0)
    assert candidate.is_leading.is_set()
    assert candidate.may_act()
    world.held_by("b")
    world.until(20.0)
    assert task.done()
    assert not candidate.is_leading.is_set()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_candidate_that_is_told_to_stop_gives_nothing_back_any_more(
    world: World, is_told: bool
) -> None:
    candidate, stop = a_candidate(world), asyncio.Event()
    task = world.start(candidate.run())
    world.until(1.0)
    task.cancel()
    world.until(1.0)
    asked = len(world.server.asked)
    giving = world.start(candidate.hand_on(stop, is_settled=False))
    world.until(3.0)
    assert not giving.done()
    if is_told:
        world.loop.call_soon(stop.set)
        world.until(3.0)
        assert giving.done()
    world.until(LEASE_S + 1.0)
    assert giving.done()
    assert (len(world.server.asked) > asked) == (not is_told)
    assert asyncio.all_tasks(world.loop) == set()
