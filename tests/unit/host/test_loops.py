"""The serial loop beside an embedded API server: when it is ready, and what may stop it."""

import asyncio

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Lane
from asched.core.framework.waiting import Stage, WaitingPod
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.kube.watchdog import SilentWatchError
from asched_lab.apiserver.faults import Fault
from tests.support import HANG_S
from tests.unit.host.elected import a_node, a_pod, a_scheduler, bound, until


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

    predecessor = None

    def seals(self, begun):
        raise AssertionError("there is nothing to seal")

    async def decides(self):
        pass

    def sealed(self):
        pass

    def fence_s(self):
        return 60.0

    async def run(self):
        await asyncio.Event().wait()

    async def release(self, *, is_handed_on):
        self.is_released, self.was_settled = True, is_handed_on

    async def hand_on(self, stop, *, is_settled):
        self.is_released, self.was_settled = True, is_settled


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_who_gives_up_tells_whether_a_binding_may_still_be_carried_out(
    server, tmp_path, is_under_way
):
    async def hears_nothing():
        raise SilentWatchError("nothing was heard")

    lead = Lead()
    async with a_scheduler(tmp_path, leadership=lead) as scheduler:
        await until(lambda: scheduler.is_synced)
        if is_under_way:
            server.faults.add(Fault("delay", r"/binding$", seconds=2 * HANG_S))
            server.create("pods", a_pod("web"))
            await until(lambda: scheduler.dispatcher.in_flight_count(Lane.BINDING) == 1)
        scheduler.tasks.spawn("silent", hears_nothing())
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
