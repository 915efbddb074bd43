"""What a scheduler does that does not hear: it says so, and lets others lead."""

import asyncio
import logging

import pytest

from asched.core.model.kinds import NODE, POD, POD_GROUP, SERVICE
from asched.kube import pace, watch, watchdog
from asched.kube.errors import ConnectionLost
from asched.kube.watchdog import ReflectorWatchdog
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S
from tests.unit.host.processes import a_node, a_pod, a_process

LEASE = ("leases", "kube-system", "asched")


class Followed:
    """What `ReflectorWatchdog` looks at of a reflector."""

    def __init__(self, last_complete_s=None):
        self.last_complete_s = last_complete_s
        self.is_absent = False


class World:
    def __init__(self):
        self.now_s = 100.0
        self.reflectors = {kind: Followed(100.0) for kind in (NODE, POD, SERVICE, POD_GROUP)}
        self.watchdog = ReflectorWatchdog(self.reflectors, lambda: self.now_s)

    def passes(self, seconds, heard=()):
        self.now_s += seconds
        for kind in heard:
            self.reflectors[kind].last_complete_s = self.now_s


def test_readiness_names_the_kind_that_is_not_heard_and_why():
    world = World()
    world.passes(29.0, heard=(NODE, POD, POD_GROUP))
    assert world.watchdog.readiness_problem() == ""
    world.watchdog.failed(SERVICE, ConnectionLost("it broke"))
    world.passes(1.0)
    assert world.watchdog.readiness_problem() == "no events of services for 30 s: it broke"
    world.passes(1.0, heard=(SERVICE,))
    assert world.watchdog.readiness_problem() == ""
    assert world.watchdog.why(SERVICE) == ""


# --- a whole process -----------------------------------------------------------------------------


async def until(condition, seconds=HANG_S):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.02)


@pytest.fixture
def hurried(monkeypatch):
    """Everything about streams within seconds. The server reckons in whole ones."""
    monkeypatch.setattr(pace, "STREAM_S", 1.0)
    monkeypatch.setattr(pace, "STREAM_SPREAD", 0.0)
    monkeypatch.setattr(pace, "PROBE_S", 1.0)
    monkeypatch.setattr(watch, "STREAM_SLACK_S", 0.3)


def placed(server, name):
    pod = server.get("pods", "default", name)
    return bool(pod and pod["spec"].get("nodeName"))


async def test_a_leader_that_stays_deaf_frees_its_lease_and_begins_anew(
    tmp_path, monkeypatch, hurried, caplog
):
    monkeypatch.setattr(watchdog, "HAND_OVER_S", 5.0)
    monkeypatch.setattr(watchdog, "SILENT_S", 4.0)
    monkeypatch.setattr(watchdog, "CHECK_S", 0.1)
    logging.getLogger("asched").propagate = True
    async with a_process(tmp_path) as process:
        server = process.server
        await until(lambda: placed(server, "web"))
        first = server.get(*LEASE)["spec"]["holderIdentity"]
        server.faults.add(Fault("mute_watch", path="/api/v1/nodes"))
        for number in range(40):  # there is always something that the watch keeps back
            server.create("nodes", a_node(f"more{number}"))
            await asyncio.sleep(0.2)
            if "Starting over" in caplog.text:
                break
        assert "no events of nodes arrived" in caplog.text
        server.faults.clear()
        server.create("pods", a_pod("late"))
        await until(lambda: placed(server, "late"))
        lease = server.get(*LEASE)["spec"]
        assert lease["holderIdentity"] not in {first, ""}
        assert lease["leaseTransitions"] >= 1
        await process.until("/readyz", lambda status, _: status == 200, token="")


async def test_another_cluster_behind_the_address_is_begun_with_from_nothing(tmp_path, caplog):
    """Its node has no room beside the pods that only the old one had, were they believed in."""
    logging.getLogger("asched").propagate = True
    async with a_process(tmp_path) as process:
        old = process.server
        for number in range(3):
            old.create("pods", a_pod(f"old{number}", "1"))
        await until(lambda: all(placed(old, f"old{number}") for number in range(3)))
        port = int(old.url.rpartition(":")[2])
        await old.stop()

        new = ApiServer()
        await new.start(port=port, token="sesame")
        try:
            new.create("nodes", a_node("n1"))
            for number in range(3):
                new.create("pods", a_pod(f"new{number}", "1"))
            await until(lambda: all(placed(new, f"new{number}") for number in range(3)))
            await process.until("/readyz", lambda status, _: status == 200, token="")
        finally:
            await new.stop()
        assert "Starting over" in caplog.text
