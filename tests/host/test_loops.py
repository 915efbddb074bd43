"""The serial loop beside an embedded API server: when it is ready, and what may stop it."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from asched.core.cycle.orders import LeaderDied
from asched.core.framework.effects import Lane
from asched.core.framework.waiting import Stage, WaitingPod
from asched.core.model.decode import decode
from asched.core.model.kinds import KINDS, NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.state.facts import Seen
from asched.hardware.load.metrics import NODE_METRICS
from asched.host import loops
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.clock import Clock, counter_s
from asched.host.configuration.file import load_config
from asched.host.hearing import DeafError
from asched.host.loops import Scheduler
from asched.kube.errors import HistoryChanged
from asched.kube.history import History
from asched.kube.session import ConnectionOptions, connect
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from tests.host.test_election import CONFIGURATION, a_node, a_pod, bound, until
from tests.patience import HANG_S


@pytest.fixture
async def server(tmp_path):
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    server.create("nodes", a_node("n1"))
    yield server
    await server.stop()


@asynccontextmanager
async def a_scheduler(tmp_path, **options):
    configuration = load_config(text=CONFIGURATION).configuration
    parts = Parts.fresh()
    runners = build_runners(configuration, parts)
    machine = build_machine(configuration, parts, runners, counter_s=counter_s)
    session = await connect(ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")))
    scheduler = Scheduler(session, machine, **options)
    task = asyncio.ensure_future(scheduler.run())
    try:
        yield scheduler
    finally:
        scheduler.stop()
        await asyncio.wait([task], timeout=HANG_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_gets_ready_though_others_never_stop_filling_its_inbox(server, tmp_path):
    """Another scheduler binds, kubelets report: at each turn something has arrived already."""
    async with a_scheduler(tmp_path) as scheduler:
        handle = scheduler.machine.handle

        def busy(facts, now_s):
            scheduler.inbox.put(Seen(NODE, decode(Node, a_node("busy"))))
            return handle(facts, now_s)

        scheduler.machine.handle = busy
        await until(lambda: scheduler.is_synced)

        server.create("pods", a_pod("web"))
        await until(lambda: bound(server) == {"web"})


async def test_what_cannot_be_taken_in_yet_stays_in_the_inbox_where_it_folds(server, tmp_path):
    async with a_scheduler(tmp_path) as scheduler:
        await until(lambda: scheduler.is_synced)
        handle, handed, sliced = (
            scheduler.machine.handle,
            [],
            scheduler.machine.context.queue.sliced,
        )

        def noting(facts, now_s):
            handed.append(list(facts))
            return handle(facts, now_s)

        def endless():
            while not is_over:
                sliced.budget.note(1000)
                yield

        is_over = []
        scheduler.machine.handle = noting
        sliced.budget.open(1)
        sliced.do(endless())
        for _ in range(3):
            node = decode(Node, a_node("busy"))
            scheduler.inbox.put(Seen(NODE, node))
            await scheduler._turn()
        assert not any(handed)
        is_over.append(True)
        await scheduler._taken_in()

    assert [fact.obj.name for facts in handed for fact in facts].count("busy") == 1
    assert scheduler.machine.context.cluster.node_of("busy") is node


async def test_a_wait_for_the_next_turn_hears_of_one_that_comes_at_once(server, tmp_path):
    """The turn may be over before whoever waits for it is resumed."""
    async with a_scheduler(tmp_path) as scheduler:
        await until(lambda: scheduler.is_synced)
        await until(lambda: not scheduler.inbox)
        scheduler.inbox.put(Seen(NODE, decode(Node, a_node("n2"))))
        async with asyncio.timeout(HANG_S):
            await scheduler._taken_in()

        assert scheduler.machine.context.cluster.node_of("n2") is not None


class Lead:
    """Leadership without an election: the test says when the lease may have run out."""

    def __init__(self):
        self.is_leading = asyncio.Event()
        self.is_leading.set()
        self.is_fresh = True
        self.beats = 0
        self.is_released = False

    def may_act(self):
        return self.is_fresh

    def beat(self):
        self.beats += 1

    def hold_back(self):
        pass

    def qualify(self):
        pass

    def predecessor(self):
        return None

    async def run(self):
        await asyncio.Event().wait()

    async def release(self):
        self.is_released = True

    async def hand_on(self, stop, *, is_settled):
        self.is_released, self.was_settled = True, is_settled


async def test_nothing_is_decided_once_another_history_was_heard_of(server, tmp_path):
    """Streams end one after the other; the first that tells voids what was known of all."""
    async with a_scheduler(tmp_path) as scheduler:
        await until(lambda: scheduler.is_synced)
        scheduler._on_failure(NODE, HistoryChanged("another cluster"))
        scheduler.inbox.put(Seen(POD, decode(Pod, a_pod("late"))))
        await scheduler._taken_in()

        assert "default/late" in scheduler.machine.context.cluster.pods_seen
        assert not scheduler.may_act()
        assert scheduler.machine.bindings == 0
        assert bound(server) == set()


async def test_whoever_takes_over_from_the_dead_waits_until_all_is_known(
    server, tmp_path, monkeypatch
):
    """The last bindings of that one may be under way on a stream that is slow."""
    asked, known = [], asyncio.Event()

    async def catch_up(_history, kind, _list_again):
        asked.append(kind)
        await known.wait()

    monkeypatch.setattr(History, "catch_up", catch_up)
    lead = Lead()
    lead.predecessor = lambda: LeaderDied(1, died_young=False)
    server.create("pods", a_pod("early"))
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        await until(lambda: asked == [POD])
        await scheduler._taken_in()
        assert bound(server) == set()
        known.set()
        await until(lambda: bound(server) == {"early"})


async def test_nothing_is_decided_behind_the_fence(server, tmp_path):
    """The dispatcher here sends whatever it is given: the loop looks at the lease by itself."""
    lead = Lead()
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        server.create("pods", a_pod("early"))
        await until(lambda: bound(server) == {"early"} and scheduler.machine.is_idle)
        lead.is_fresh = False
        server.create("pods", a_pod("late"))
        await until(lambda: "default/late" in scheduler.machine.context.cluster.pods_seen)
        scheduler._wake()
        await scheduler._turn()

        assert not scheduler.machine.is_active
        assert scheduler.machine.bindings == 0
        assert bound(server) == {"early"}
        assert lead.beats > 0


@pytest.mark.parametrize("answers", [True, False])
async def test_the_lease_is_handed_on_only_once_every_binding_is_settled(
    server, tmp_path, monkeypatch, answers
):
    """Else the next leader would fill a place that a binding under way may still take."""
    monkeypatch.setattr(loops, "DRAIN_S", HANG_S if answers else 0.4)
    delay_s = 0.2 if answers else 2 * HANG_S
    server.faults.add(Fault("delay", r"/binding$", seconds=delay_s))
    lead = Lead()
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        await until(lambda: scheduler.is_synced)
        server.create("pods", a_pod("web"))
        await until(lambda: scheduler.dispatcher.in_flight_count(Lane.BINDING) == 1)
    assert lead.is_released is answers

    server.faults.clear()
    await until(lambda: bound(server) == {"web"})  # also where nobody waits for it any more


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_who_gives_up_tells_whether_a_binding_may_still_be_carried_out(
    server, tmp_path, is_under_way
):
    async def hears_nothing():
        raise DeafError("nothing was heard")

    lead = Lead()
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        await until(lambda: scheduler.is_synced)
        if is_under_way:
            server.faults.add(Fault("delay", r"/binding$", seconds=2 * HANG_S))
            server.create("pods", a_pod("web"))
            await until(lambda: scheduler.dispatcher.in_flight_count(Lane.BINDING) == 1)
        scheduler.tasks.spawn("deaf", hears_nothing())
        await until(lambda: lead.is_released)
        server.faults.clear()
    assert lead.was_settled is not is_under_way


async def test_pods_that_wait_for_something_else_do_not_keep_the_lease(server, tmp_path):
    lead = Lead()
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        await until(lambda: scheduler.is_synced)
        context = scheduler.machine.context
        info = context.cluster.classes.info_of(decode(Pod, a_pod("waits")))
        waiting = WaitingPod(info, "n1", "asched")
        waiting.stage = Stage.PRE_BIND
        context.waiting.add(waiting)

    assert lead.is_released


class ClockThatWasSet(Clock):
    """Somebody moved the wall clock on by an hour after the start."""

    def ahead_s(self):
        return 3_600.0


async def test_what_is_written_follows_the_wall_clock(server, tmp_path):
    server.create("nodes", a_node("n2"))
    pod = a_pod("big")
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "640"
    async with a_scheduler(tmp_path, clock=ClockThatWasSet()) as scheduler:
        await until(lambda: scheduler.is_synced)
        server.create("pods", pod)
        await until(lambda: conditions(server))

        (condition,) = conditions(server)
        stamp = datetime.fromisoformat(condition["lastTransitionTime"])
        assert stamp > datetime.now(UTC) + timedelta(minutes=50)


def conditions(server):
    (pod,) = server.list("pods")
    return pod["status"].get("conditions", [])


async def test_what_can_only_be_polled_holds_up_nobody(server, tmp_path):
    """The embedded server knows no metrics.k8s.io: pods are placed all the same."""
    kinds = (*KINDS, NODE_METRICS)
    async with a_scheduler(tmp_path, kinds=kinds) as scheduler:
        await until(lambda: scheduler.is_synced)
        server.create("pods", a_pod("web"))
        await until(lambda: bound(server) == {"web"})
