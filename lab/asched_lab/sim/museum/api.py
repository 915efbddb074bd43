"""Incidents with the API server: down, silent, slow, busy, restored to an older state."""

from collections.abc import Iterator
from typing import ClassVar

from asched_lab.sim.faults import (
    Conflicts,
    Overload,
    ServerErrors,
    SilentWatches,
    SlowAnswers,
    StaleWatch,
    Unreachable,
)
from asched_lab.sim.museum.incident import (
    Do,
    Incident,
    Json,
    begin,
    break_watches,
    end,
    expire_watches,
    over,
)
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step, Wait, cpu_of
from asched_lab.sim.world import World

#: Time until one of several processes leads.
LEADS_S = 10.0


class Incident08(Incident):
    """Some events of pods are late, repeated or in another order of kinds; every missed event is
    found later, and no pod waits for ever.
    """

    what = "a pod whose appearance was missed was never queued, for hours"
    threads = "kubernetes#102790, #104521, #94437"
    recovers_in_s = 30.0  # two streams, each late by ten seconds, and a backoff
    faults = (StaleWatch(lag_s_max=10.0),)

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(15):
            yield AddPods(count=2)
            roll = world.rng.random()
            if roll < 0.3:
                yield Do(name="410", act=expire_watches)
            elif roll < 0.6:
                yield Do(name="streams break", act=break_watches)
            elif roll < 0.8:
                yield DeletePods(count=2)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))


class Incident09(Incident):
    """Many pods that fit nowhere, a slow server, and a lease that must be renewed all the same: no
    other process takes over. Leases last a third of their default, and answers are faster by as
    much. The server's errors spare the lease: a conflict and an error after the act may together
    take all the time there is to renew.
    """

    what = "the scheduler's own writes used up its share of requests, and the lease was lost"
    threads = "kubernetes#49947, PR 53793, #65966, #70730; Kueue#15537"
    recovers_in_s = 10.0
    replicas = 2
    config: ClassVar[Json] = {"clientConnection": {"qps": 50, "burst": 50}}

    def build(self, world: World) -> None:
        AddNodes(count=1, cpu=(1,), pods=(110,)).do(world)
        world.run_for(LEADS_S)
        self._led = world.leaders

    def start(self, world: World) -> Iterator[Step]:  # noqa: ARG002 - the protocol of scenarios
        yield begin(SlowAnswers(seconds_max=0.5), wait_s=1.0)
        yield AddPods(count=200, cpu=("64",), wait_s=20.0)
        spared = "/leases"
        errors = Conflicts(rate=0.02, spares=spared), ServerErrors(rate=0.02, spares=spared)
        yield begin(*errors, wait_s=20.0)
        yield Do(name="check the leader", act=self._same_leader, wait_s=0.0)
        yield end(SlowAnswers, Conflicts, ServerErrors)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _same_leader(self, world: World) -> None:
        assert world.leaders == self._led, "the lease went to another process"


class Incident10(Incident):
    """The server is down for two hours: refused connections, then time-outs, then 503, then lists
    that are older than the last known state.
    """

    what = "the control plane came back after two hours, and the scheduler did not"
    threads = "rackerlabs/spot#323, #268, #444"
    recovers_in_s = 10.0

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        AddPods(count=10).do(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:  # noqa: ARG002 - the protocol of scenarios
        yield Do(name="away", act=lambda world: world.acting.cut_off(3600.0), wait_s=3600.0)
        yield begin(Unreachable(rate=1.0), wait_s=1800.0)
        yield Do(name="streams break", act=break_watches, wait_s=0.0)
        yield DeletePods(count=5, wait_s=0.0)
        yield AddPods(count=5, wait_s=600.0)
        yield end(Unreachable)
        yield begin(Overload(rate=1.0), wait_s=600.0)
        yield Do(name="410", act=expire_watches, wait_s=60.0)
        yield end(Overload)
        yield over(self, wait_s=0.0)
        yield AddPods(count=2)


class Incident11(Incident):
    """Streams are silent, for good or until their end, while the lease is renewed. It is noticed,
    and the events are received: another process leads, or everything is listed.
    """

    what = "the leader renewed its lease for four hours and received no event of any pod"
    threads = "incidents.pgmac.net.au 2026-06-05"
    recovers_in_s = 45.0
    replicas = 2

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        world.run_for(LEADS_S)
        AddPods(count=5).do(world)
        world.run_for(30.0)

    def start(self, world: World) -> Iterator[Step]:
        if world.rng.random() < 0.5:
            yield Do(name="all streams fall silent", act=_mute, wait_s=0.0)
        else:
            yield Do(name="all streams fall silent until their end", act=_hush, wait_s=0.0)
            yield begin(SilentWatches(rate=1.0), wait_s=0.0)
        yield over(self, wait_s=0.0)  # no step ends it: it has to be noticed
        yield AddPods(count=3, wait_s=60.0)


def _mute(world: World) -> None:
    """Silence the open streams for good; new ones work."""
    for process in world.processes:
        for stream in process.wire.streams.values():
            stream.mute()


def _hush(world: World) -> None:
    for process in world.processes:
        for stream in process.wire.streams.values():
            stream.hush()


class Incident12(Incident):
    """The leader binds many pods in its last second and dies; its successor's streams are late."""

    what = "a new leader missed the last bindings of the old one, and filled nodes twice"
    threads = "kubernetes#45220, #137308; Volcano#5174, #1417"
    recovers_in_s = 12.0
    replicas = 2
    faults = (StaleWatch(lag_s_max=3.0),)

    def build(self, world: World) -> None:
        world.inhabitants.refuses = True
        AddNodes(count=6, cpu=(8,), pods=(60,)).do(world)
        world.run_for(LEADS_S)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(3):
            yield AddPods(count=30, cpu=("300m", "700m"), wait_s=world.rng.uniform(0.05, 0.6))
            yield Do(name="the leader dies", act=lambda world: world.restart(), wait_s=0.0)
            yield over(self, wait_s=0.0)
            # where all is full, a pod without requests shows that it decides
            yield AddPods(count=1, cpu=("0",), wait_s=0.0)
            yield AddPods(count=10, cpu=("300m",), wait_s=20.0)

    def check_end(self, world: World) -> None:
        refused = [p["metadata"]["name"] for p in world.pods() if p["status"].get("reason")]
        assert not refused, f"the kubelet refused {refused}"


class Incident13(Incident):
    """Pods that fit nowhere get conditions; pods that fit are bound all the same, and at once."""

    what = "status writes of pods that fit nowhere starved the bindings of those that did"
    threads = "kubernetes#135900, PR 141745, PR 142123, #126858"
    recovers_in_s = 1.0
    config: ClassVar[Json] = {"clientConnection": {"qps": 100, "burst": 100}}

    def build(self, world: World) -> None:
        AddNodes(count=2, cpu=(64,), pods=(110,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(count=600, cpu=("65",), wait_s=0.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=50, cpu=("100m",), wait_s=0.0)
        begun_s = world.clock.now_s()
        yield Wait(wait_s=4.0)
        late = [p for p in world.waiting() if cpu_of(p) == "100m"]
        assert not late, f"{len(late)} wait after {world.clock.now_s() - begun_s:.1f} s"


class Incident17(Incident):
    """A backup is restored: bindings never happened, pods that were made since are gone, and the
    resourceVersion is lower.
    """

    what = "after a restore the scheduler went on with what had never happened"
    threads = "kubernetes#131115, #95958"
    recovers_in_s = 30.0

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        AddPods(count=10, cpu=("300m",)).do(world)
        world.run_for(world.rng.uniform(0.05, 3.0))
        self._saved = world.server.store.revision

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(count=10, cpu=("300m",), wait_s=world.rng.uniform(0.5, 20.0))
        yield Do(name="the backup is restored", act=self._restore, wait_s=0.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=3, cpu=("300m",))

    def _restore(self, world: World) -> None:
        world.server.store.rewind(self._saved)
        world.ledger.accepted.clear()  # pods bound after the backup may be bound again
        break_watches(world)
        for pod in world.pods():
            world.inhabitants.look_at(pod)
