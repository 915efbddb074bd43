"""The lease beside a loop that decides: kept through long turns, given back when it goes silent."""

import asyncio
import threading
import time

import pytest

from asched.core.leader.election import LeaseTimes
from asched.host.election import Stand
from asched.host.lease_thread import LeaseThread
from asched.kube.session import ConnectionOptions, connect
from asched.serve.telemetry.metrics import Metrics
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

RULES = {"lease_s": 4.0, "renew_s": 3.0, "retry_s": 0.1}


class ServerElsewhere:
    """An API server in a thread of its own: it answers while the test's loop stands still."""

    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig
        self.server = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)

    async def _live(self):
        self.server = ApiServer()
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self.server.start()
        self.kubeconfig.write_text(self.server.kubeconfig())
        self._started.set()
        await self._stop.wait()
        await self.server.stop()

    def __enter__(self):
        self._thread.start()
        assert self._started.wait(20)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def lease(self):
        """Its spec, {} if there is none."""
        asked = asyncio.run_coroutine_threadsafe(self._leases(), self._loop)
        return next((lease["spec"] for lease in asked.result(20)), {})

    async def _leases(self):
        return self.server.list("leases")

    def hold_back(self, seconds):
        delay = Fault("delay", path="/leases", seconds=seconds)
        self._loop.call_soon_threadsafe(self.server.faults.add, delay)
        return delay


@pytest.fixture
def elsewhere(tmp_path):
    with ServerElsewhere(tmp_path / "kubeconfig") as server:
        yield server


@pytest.fixture
async def leads(elsewhere):
    """Makes candidates; ends those that still stand."""
    session = await connect(ConnectionOptions(kubeconfig=str(elsewhere.kubeconfig)))
    tasks = []

    def start(name="me", **given):
        rules = LeaseTimes(name, **{**RULES, **given.pop("rules", {})})
        options = ConnectionOptions(kubeconfig=str(elsewhere.kubeconfig))
        stand = Stand(rules, "kube-system", "asched", ("asched",))
        made = LeaseThread(session, stand, Metrics().leader, options=options, **given)
        made.task = asyncio.ensure_future(made.run())
        tasks.append(made.task)
        return made

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await session.close()


async def within(seconds, waits):
    async with asyncio.timeout(seconds):
        await waits


async def test_a_turn_longer_than_the_lease_does_not_lose_it(elsewhere, leads):
    """Nothing of the test's loop runs meanwhile, and yet renewals are written."""
    me = leads()
    await within(HANG_S, me.is_leading.wait())
    before = elsewhere.lease()

    end_s = time.monotonic() + HANG_S
    for _ in range(3):  # a long turn
        last = elsewhere.lease()["renewTime"]
        while elsewhere.lease()["renewTime"] == last:
            assert time.monotonic() < end_s, "not renewed"

    assert me.may_act()
    after = elsewhere.lease()
    assert after["holderIdentity"] == "me"
    assert after["leaseTransitions"] == before["leaseTransitions"]


async def test_whoever_is_told_to_stop_leaves_no_request_and_no_thread(elsewhere, leads):
    me = leads()
    await within(HANG_S, me.is_leading.wait())
    delay = elsewhere.hold_back(2 * HANG_S)
    async with asyncio.timeout(HANG_S):
        while not delay.hits:  # noqa: ASYNC110 - counted in another thread
            await asyncio.sleep(0.01)

    me.task.cancel()
    await asyncio.wait([me.task], timeout=HANG_S)

    async with asyncio.timeout(HANG_S):
        while any(thread.name == "lease" for thread in threading.enumerate()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_an_orderly_end_hands_on_over_the_connection_of_the_loop(elsewhere, leads):
    me = leads(rules={"lease_s": 60.0, "renew_s": 40.0})
    await within(HANG_S, me.is_leading.wait())
    me.task.cancel()
    await asyncio.wait([me.task])

    await me.release(is_handed_on=True)

    assert not me.may_act()
    assert elsewhere.lease()["holderIdentity"] == ""
