"""What a scheduler does that does not hear: it says so, and lets others lead."""

import asyncio
import itertools
import logging

import pytest

from asched.core.model.kinds import NODE, POD, POD_GROUP, SERVICE
from asched.kube import hearing, pace, watch
from asched.kube.errors import ConnectionLost, Forbidden, Unauthorized
from asched.kube.hearing import DeafError, ReflectorWatchdog
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from tests.host.processes import a_node, a_pod, a_process
from tests.patience import HANG_S

LEASE = ("leases", "kube-system", "asched")


class Followed:
    """What `ReflectorWatchdog` looks at of a reflector."""

    def __init__(self, heard_s=None):
        self.heard_s = heard_s
        self.is_absent = False


class World:
    def __init__(self):
        self.now_s = 100.0
        self.reflectors = {kind: Followed(100.0) for kind in (NODE, POD, SERVICE, POD_GROUP)}
        self.hearing = ReflectorWatchdog(self.reflectors, lambda: self.now_s)

    def passes(self, seconds, heard=()):
        self.now_s += seconds
        for kind in heard:
            self.reflectors[kind].heard_s = self.now_s


def test_readiness_names_the_kind_that_is_not_heard_and_why():
    world = World()
    world.passes(29.0, heard=(NODE, POD, POD_GROUP))
    assert world.hearing.trouble() == ""
    world.hearing.failed(SERVICE, ConnectionLost("it broke"))
    world.passes(1.0)
    assert world.hearing.trouble() == "not heard of services for 30 s: it broke"
    world.passes(1.0, heard=(SERVICE,))
    assert world.hearing.trouble() == ""
    assert world.hearing.why(SERVICE) == ""


def test_what_was_never_listed_or_never_was_is_not_missed():
    world = World()
    world.reflectors[SERVICE].heard_s = None
    world.reflectors[POD_GROUP].is_absent = True
    world.passes(100.0, heard=(NODE, POD))
    assert world.hearing.trouble() == ""


def test_a_server_that_starts_may_refuse_for_a_while():
    world = World()
    world.reflectors[NODE].heard_s = None
    refused = Unauthorized(401, "who are you")
    for _ in range(5):
        world.hearing.failed(NODE, refused)
        assert world.hearing.refusal(NODE, refused, "u") == ""
        world.passes(2.9)
    world.passes(1.0)
    world.hearing.failed(NODE, refused)
    assert "u does not accept the credentials" in world.hearing.refusal(NODE, refused, "u")
    forbidden = Forbidden(403, "no")
    assert "may not list or watch nodes" in world.hearing.refusal(NODE, forbidden, "u")
    assert world.hearing.refusal(NODE, ConnectionLost("it broke"), "u") == ""


@pytest.mark.parametrize(
    ("deaf", "leads", "ends"),
    [(POD, True, True), (NODE, True, True), (SERVICE, True, False), (POD, False, False)],
    ids=["pods", "nodes", "another kind", "a standby"],
)
async def test_a_leader_that_hears_nothing_of_what_matters_gives_up(monkeypatch, deaf, leads, ends):
    monkeypatch.setattr(hearing, "LOOK_S", 0.0)
    world = World()
    for others in (kind for kind in world.reflectors if kind is not deaf):
        world.reflectors[others].heard_s = 140.0
    looks = itertools.count()

    def is_leading():
        world.now_s = min(100.0 + next(looks), 140.0)
        return leads

    watching = asyncio.ensure_future(world.hearing.watch_over(is_leading))
    await asyncio.wait((watching,), timeout=0.5 if not ends else 10)
    if ends:
        with pytest.raises(DeafError, match=f"nothing was heard of {deaf.plural} for 40 s"):
            watching.result()
    else:
        assert not watching.done()
        watching.cancel()
    assert next(looks) >= 40 or not ends


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


async def test_streams_that_fall_silent_are_replaced_while_a_process_leads(
    tmp_path, hurried, caplog
):
    logging.getLogger("asched").propagate = True
    async with a_process(tmp_path) as process:
        await until(lambda: placed(process.server, "web"))
        mute = process.server.faults.add(Fault("mute_watch", path="/api/v1/pods", count=2))
        process.server.create("pods", a_pod("late"))
        await until(lambda: placed(process.server, "late"))
        assert mute.hits == 2  # the stream of the list, which is left anyway, and the next
        _, metrics = await process.ask("/metrics")
        counted = [line for line in metrics.splitlines() if "silences_total{" in line]
        assert 'asched_watch_silences_total{resource="pods"} 1.0' in counted
    assert "pods: the watch did not end in its time" in caplog.text


async def test_a_leader_that_stays_deaf_frees_its_lease_and_begins_anew(
    tmp_path, monkeypatch, hurried, caplog
):
    monkeypatch.setattr(hearing, "HAND_OVER_S", 5.0)
    monkeypatch.setattr(hearing, "DEAF_S", 4.0)
    monkeypatch.setattr(hearing, "LOOK_S", 0.1)
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
        assert "nothing was heard of nodes" in caplog.text
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
