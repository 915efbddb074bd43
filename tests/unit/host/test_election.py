"""Two schedulers, one lease, the embedded API server: who binds, who stands by, who takes over."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from asched.core.leader.election import LeaseTimes
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.election import LostLeadershipError, Stand
from asched.host.lease_thread import LeaseThread
from asched.host.loops import Scheduler
from asched.kube.clock import Clock, monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from asched_lab.apiserver.faults import Fault
from tests.support import HANG_S
from tests.unit.host.elected import CONFIGURATION, a_pod, bound, until

#: Short, and as far apart as the real ones.
RULES = {"lease_s": 2.0, "renew_s": 1.0, "retry_s": 0.2}


class ClockThatJumps(Clock):
    """As for a process that stood still and goes on."""

    def __init__(self):
        super().__init__()
        self.jumped_s = 0.0

    def now_s(self):
        return super().now_s() + self.jumped_s


class Replica:
    def __init__(self, scheduler, campaign, metrics):
        self.scheduler = scheduler
        self.campaign = campaign
        self.metrics = metrics
        self.task = None

    def status(self):
        page = self.metrics.render().decode()
        (line,) = [
            at for at in page.splitlines() if at.startswith("leader_election_master_status{")
        ]
        return line


@asynccontextmanager
async def a_replica(name, tmp_path, *, delay_cache=False, clock=None, **rules):
    """A scheduler that takes part in the election."""
    configuration = load_config(text=CONFIGURATION).configuration
    metrics, parts = Metrics(), Parts.fresh()
    machine = build_machine(
        configuration, parts, build_runners(configuration, parts), monotonic_s=monotonic_s
    )
    options = ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig"))
    session = await connect(options)
    stand = Stand(LeaseTimes(name, **{**RULES, **rules}), "kube-system", "asched", ("asched",))
    campaign = LeaseThread(session, stand, metrics.leader, options=options, clock=clock)
    scheduler = Scheduler(
        session,
        machine,
        clock=clock,
        make_dispatcher=partial(
            MeasuredDispatcher, metrics=metrics.client, may_send=campaign.may_act
        ),
        leadership=campaign,
        delay_cache=delay_cache,
    )
    replica = Replica(scheduler, campaign, metrics)
    replica.task = asyncio.ensure_future(scheduler.run())
    try:
        yield replica
    finally:
        scheduler.stop()
        await asyncio.gather(replica.task, return_exceptions=True)


def told(server):
    return {e["note"] if "note" in e else e["message"] for e in server.list("events")}


def holder(server):
    (lease,) = server.list("leases")
    return lease["spec"]["holderIdentity"]


async def test_only_the_leader_binds_and_the_standby_sees_everything(server, tmp_path):
    async with a_replica("a", tmp_path) as first:
        await until(first.campaign.is_leading.is_set)
        async with a_replica("b", tmp_path) as second:
            await until(lambda: second.scheduler.is_synced)
            server.create("pods", a_pod("web"))
            await until(lambda: bound(server) == {"web"})
            standby = second.scheduler.machine
            await until(
                lambda: standby.context.cluster.pods_seen["default/web"].spec.node_name == "n1"
            )

            assert not standby.is_active
            assert first.status().endswith('{name="asched"} 1.0')
            assert second.status().endswith('{name="asched"} 0.0')


async def test_an_orderly_end_hands_the_lease_on(server, tmp_path):
    """Handed on, or else the other one would wait a minute for its end."""
    rules = {"lease_s": 60.0, "renew_s": 40.0}
    async with a_replica("a", tmp_path, **rules) as first:
        await until(first.campaign.is_leading.is_set)
        async with a_replica("b", tmp_path, **rules) as second:
            await until(lambda: second.scheduler.is_synced)
            first.scheduler.stop()
            await first.task
            server.create("pods", a_pod("web"))

            await until(lambda: bound(server) == {"web"})

            assert holder(server) == "b"
            await until(lambda: {"a became leader", "b became leader"} <= told(server))


async def test_a_leader_whose_api_server_freezes_for_it_stops_and_another_goes_on(server, tmp_path):
    """1. Renewals of `a` hang. 2. `a` stops before its lease ends. 3. `b` binds what is left."""
    rules = {"lease_s": 6.0, "renew_s": 1.5}  # far apart, for a computer that is busy
    async with a_replica("a", tmp_path, **rules) as first:
        await until(first.campaign.is_leading.is_set)
        async with a_replica("b", tmp_path, **rules) as second:
            await until(lambda: second.scheduler.is_synced)
            renewed_s = first.campaign.campaign.election.renewed_s
            server.faults.add(Fault("delay", path="/leases", seconds=2 * HANG_S))
            await until(lambda: not first.scheduler.tasks.has("dispatcher"))
            clock = first.scheduler.clock

            assert clock.now_s() < renewed_s + rules["lease_s"]
            assert not first.scheduler.machine.is_active
            assert not second.campaign.campaign.election.is_leader

            server.faults.clear()
            with pytest.raises(LostLeadershipError):
                await first.task
            server.create("pods", a_pod("web"))
            await until(lambda: bound(server) == {"web"}, rules["lease_s"] + 20.0)


async def test_a_leader_that_lost_sends_nothing_that_still_waited(server, tmp_path):
    """A renewal may be under way meanwhile: its answer tells of the time before."""
    clock = ClockThatJumps()
    async with a_replica("a", tmp_path, clock=clock) as first:
        await until(first.campaign.is_leading.is_set)
        server.faults.add(Fault("delay", path="/leases", seconds=2 * HANG_S))
        clock.jumped_s = 3_600.0

        server.create("pods", a_pod("late"))
        await until(lambda: not first.scheduler.tasks.has("dispatcher"))
        server.faults.clear()
        with pytest.raises(LostLeadershipError):
            await first.task

        assert bound(server) == set()


async def test_a_leader_that_lost_gives_the_lease_back_as_soon_as_it_is_answered(server, tmp_path):
    """Or else `b`, who saw nothing of the last renewals either, would wait a minute."""
    rules = {"lease_s": 60.0, "renew_s": 1.5}
    async with a_replica("a", tmp_path, **rules) as first:
        await until(first.campaign.is_leading.is_set)
        async with a_replica("b", tmp_path, **rules) as second:
            await until(lambda: second.scheduler.is_synced)
            server.faults.add(Fault("reset_before", path="/leases"))
            await until(lambda: not first.scheduler.tasks.has("dispatcher"))
            server.faults.clear()
            with pytest.raises(LostLeadershipError):
                await first.task
            await until(second.campaign.is_leading.is_set)


async def test_with_a_delayed_cache_a_standby_lists_nothing_until_it_leads(server, tmp_path):
    async with a_replica("a", tmp_path) as first:
        await until(first.campaign.is_leading.is_set)
        async with a_replica("b", tmp_path, delay_cache=True) as second:
            await until(lambda: second.campaign.campaign.election.holder == "a")
            assert not second.scheduler.is_synced
            assert all(r.list_count == 0 for r in second.scheduler.reflectors.values())

            first.scheduler.stop()
            await until(lambda: second.scheduler.is_synced)

            server.create("pods", a_pod("web"))
            await until(lambda: bound(server) == {"web"})
