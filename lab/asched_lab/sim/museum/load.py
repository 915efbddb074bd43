"""Incidents of load and of installations: growing logs, a flood of requests, an autoscaler, and the
scheduler's own pod.
"""

import asyncio
from asyncio import sleep
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from asched.core.framework.effects import DeletePod, Effect, Lane
from asched.core.queue.in_flight import CHANGES_MAX
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.faults import Overload, ServerErrors, SlowAnswers, StaleWatch
from asched_lab.sim.museum.api import LEADS_S
from asched_lab.sim.museum.beside import FOLLOWS, RIVAL, make_theirs, named
from asched_lab.sim.museum.incident import Do, Incident, Json, begin, end, over
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import profile
from asched_lab.sim.steps import AddNodes, AddPods, Relabel, Step, Wait, bind_theirs, runs
from asched_lab.sim.world import World

#: Time that the slow plugin keeps its pod (s), as long as Permit allows.
SLOW_S: Final = 300.0
#: Open requests, and tasks that wait for them, of a busy process.
TASKS_MAX: Final = 400


class Slow:
    """Permit: a pod with the label `slow` waits for minutes."""

    permit_timeout_s = 2 * SLOW_S

    async def permit(self, pod: Any, node: Any) -> None:  # noqa: ARG002 - the plugin protocol
        if "slow" in pod.labels:
            await sleep(SLOW_S)


class Incident04(Incident):
    """One attempt lasts for minutes while the cluster changes; the log of changes stays small."""

    what = "the log of changes for attempts under way grew to 63,000 entries for three pods"
    threads = "kubernetes#120622, #122725; website PR 48541"
    recovers_in_s = 5.0
    plugins = (Slow,)
    config: ClassVar[Json] = profile("Slow")

    def build(self, world: World) -> None:
        AddNodes(count=2, cpu=(16,), pods=(110,)).do(world)
        AddPods(count=20, cpu=("100m",)).do(world)
        world.run_for(5.0)

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(count=world.rng.randint(1, 3), cpu=("100m",), make=_slow, wait_s=2.0)
        for _ in range(60):
            yield Relabel(count=10, wait_s=world.rng.uniform(0.0, 4.0))
            yield Do(name="check", act=self._check_size, wait_s=0.0)
        yield Wait(wait_s=SLOW_S + 10.0)
        yield Do(name="no entry is left", act=self._is_empty, wait_s=0.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _check_size(self, world: World) -> None:
        in_flight = world.machine.context.queue.in_flight
        size = sum(1 for _ in in_flight.entries())
        assert size <= CHANGES_MAX + len(in_flight), f"{size} entries for {len(in_flight)} pods"

    def _is_empty(self, world: World) -> None:
        size = sum(1 for _ in world.machine.context.queue.in_flight.entries())
        assert not size, f"{size} entries are left, and no pod is in flight"


def _slow(world: World, pod: Json) -> None:  # noqa: ARG001 - the signature of `make`
    pod["metadata"]["labels"]["slow"] = "yes"


class Incident14(Incident):
    """Hundreds of pods wait for an hour while the server answers late, or not at all: neither tasks
    nor queues of writes grow with time.
    """

    what = "pods that waited filled the memory with events and the threads that wrote them"
    threads = "kubernetes#114362, #118059, #140393"
    recovers_in_s = 12.0

    def build(self, world: World) -> None:
        AddNodes(count=2, cpu=(4,), pods=(110,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        self.count = world.rng.randint(100, 200)
        yield AddPods(count=self.count, cpu=("64",), wait_s=5.0)
        yield begin(ServerErrors(rate=0.5, applied_share=0.0), SlowAnswers(3.0), wait_s=60.0)
        for _ in range(6):
            yield Do(name="check", act=self._check_size, wait_s=world.rng.uniform(30.0, 90.0))
        yield end(ServerErrors, SlowAnswers, wait_s=5.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _check_size(self, world: World) -> None:
        lanes = world.acting.scheduler.dispatcher
        waiting = lanes.queued_count(Lane.EVENT) + lanes.queued_count(Lane.STATUS)
        assert waiting <= 2 * self.count, f"{waiting} writes wait for {self.count} pods"
        tasks = len(asyncio.all_tasks(world.acting.loop))
        assert tasks <= TASKS_MAX, f"{tasks} tasks"


class Incident20a(Incident):
    """The scheduler stops; pods of other schedulers are created, bound and ended as usual."""

    what = "a second scheduler ran out of memory, and its webhook kept clients from creating pods"
    threads = "KAI-Scheduler#227, #104"
    recovers_in_s = 15.0

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        AddPods(count=5).do(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        away_s = world.rng.uniform(20.0, 120.0)
        yield Do(name="it is stopped", act=lambda w: w.acting.pause(away_s), wait_s=1.0)
        for number in range(world.rng.randint(3, 10)):
            pod = make_theirs(world, f"theirs-{number}", "500m", 0)
            bind_theirs(world, pod, world.rng.choice(world.node_names()))
            yield Wait(wait_s=world.rng.uniform(0.0, 1.5))
        yield Wait(wait_s=3.0)
        yield Do(name="theirs run", act=self._they_run, wait_s=0.0)
        yield AddPods(count=2, wait_s=max(away_s - 20.0, 0.0))
        yield Wait(wait_s=20.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1)

    def _they_run(self, world: World) -> None:
        late = [p["metadata"]["name"] for p in named(world, "theirs") if not runs(p)]
        assert not late, f"{late} do not run while this scheduler is stopped"


class IncidentN6(Incident):
    """An autoscaler adds a node for each pod that is unschedulable and fits nowhere; the other
    scheduler is often faster to use it.
    """

    what = "an autoscaler bought nodes twice for the same pods, or never"
    threads = "autoscaler#5106; " + FOLLOWS
    recovers_in_s = 30.0  # the autoscaler runs every ten seconds

    def build(self, world: World) -> None:
        self.bought = 0
        self.stolen = 0
        self.raced: set[str] = set()
        AddNodes(count=1, cpu=(2,), pods=(20,)).do(world)
        world.run_for(2.0)
        world.clock.after(10.0, lambda: self._scale(world))

    def start(self, world: World) -> Iterator[Step]:
        self.made = world.rng.randint(2, 6)
        yield over(self, wait_s=0.0)
        yield AddPods(count=self.made, cpu=("2500m",), wait_s=world.rng.uniform(60.0, 120.0))
        yield Wait(wait_s=180.0)
        yield Do(name="all is placed", act=self._all_placed, wait_s=120.0)
        yield Do(name="nothing more is bought", act=self._no_more, wait_s=0.0)

    def _scale(self, world: World) -> None:
        """Every ten seconds: add a node for each unschedulable pod that fits nowhere."""
        world.clock.after(10.0, lambda: self._scale(world))
        end_state = EndState(world.nodes(), [p for p in world.pods() if not is_through(p)])
        for pod in world.waiting():
            if _is_unschedulable(pod) and not any(end_state.fits(n, pod) for n in end_state.nodes):
                node = f"bought-{next(world.numbers)}"
                AddNodes(name=node, cpu=(4,), pods=(20,)).do(world)
                self.bought += 1
                end_state = EndState(world.nodes(), [*end_state.placed])
                end_state.place(pod, node)
                if self.stolen < 2 and world.rng.random() < 0.3:
                    self.stolen += 1
                    thief = make_theirs(world, f"thief-{self.stolen}", "2", 0)
                    wait_s = world.rng.uniform(0.0, 2.0)
                    world.clock.after(wait_s, partial(self._steal, world, thief, node))

    def _steal(self, world: World, thief: Json, node: str) -> None:
        """Bind if there is room when it reads. A binding of this scheduler that is on its way by
        then cannot know of it, nor is it visible.
        """
        end_state = EndState(world.nodes(), [p for p in world.pods() if not is_through(p)])
        if end_state.fits(node, thief):
            placed = world.parts.cluster.placed
            on_node = [uid for uid, info in placed.items() if info.node_name == node]
            if any(world.parts.cluster.is_assumed(uid) for uid in on_node):
                self.raced.add(node)
            bind_theirs(world, thief, node)

    def is_checked(self, node: Json) -> bool:
        return node["metadata"]["name"] not in self.raced

    def _all_placed(self, world: World) -> None:
        waiting = [p["metadata"]["name"] for p in world.waiting()]
        assert not waiting, f"{waiting} wait, and no node is bought for them"
        self._so_far = self.bought

    def _no_more(self, world: World) -> None:  # noqa: ARG002 - the signature of `act`
        assert self.bought == self._so_far, "nodes are bought without need"
        most = self.made + self.stolen
        assert self.bought <= most, f"{self.bought} nodes for {self.made} pods"


def _is_unschedulable(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(
        c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions
    )


class IncidentN7(Incident):
    """Pods of the highest priority that users have need exactly the nodes of the scheduler's own
    pod, and of the cluster's system pods.
    """

    what = "the scheduler evicted itself, or what the cluster needs to resolve names"
    threads = FOLLOWS
    recovers_in_s = 30.0
    faults = (StaleWatch(lag_s_max=1.0),)

    def build(self, world: World) -> None:
        self.evicted: list[str] = []
        world.on_effect.append(self._see_effect)
        AddNodes(count=2, cpu=(4,), pods=(20,)).do(world)
        for name, node in zip(("asched", "coredns"), world.node_names(), strict=True):
            self._place_own(world, name, node)
        AddPods(count=4, cpu=("1",)).do(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        cpu = world.rng.choice(("3", "3500m", "4"))
        yield AddPods(count=2, cpu=(cpu,), priority=1_000_000_000, wait_s=30.0)
        yield AddPods(count=3, cpu=("1",), priority=100, wait_s=30.0)
        yield over(self, wait_s=0.0)
        yield AddNodes(count=1, cpu=(16,), pods=(60,), wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",), priority=1_000_000_000)

    def _place_own(self, world: World, name: str, node: str) -> None:
        """As in the manifests: `deploy/base/deployment.yaml`."""
        container = {"name": name, "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {
            "containers": [container],
            "schedulerName": RIVAL,
            "priorityClassName": "system-cluster-critical",
        }
        metadata = {"name": name, "namespace": "kube-system"}
        bind_theirs(world, world.server.create("pods", {"metadata": metadata, "spec": spec}), node)

    def _see_effect(self, process: Process, effect: Effect) -> None:  # noqa: ARG002
        if isinstance(effect, DeletePod):
            self.evicted.append(effect.pod.name)

    def check_end(self, world: World) -> None:
        ours = {"asched", "coredns"}
        assert not ours & set(self.evicted), f"{self.evicted} were evicted"
        assert ours <= {p["metadata"]["name"] for p in world.placed()}


class IncidentN8(Incident):
    """Other controllers flood the server's priority level for workloads: every request is rejected
    for a while, except those with a level of their own; no other process takes the lease, and
    bindings go on.
    """

    what = "a flood of other controllers delayed the renewals of the lease, until it was lost"
    threads = "follows from FlowSchemas: service accounts outside kube-system share one level"
    recovers_in_s = 10.0
    replicas = 2

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(60,)).do(world)
        world.run_for(LEADS_S)
        self._led = world.leaders

    def start(self, world: World) -> Iterator[Step]:
        flood = Overload(rate=world.rng.uniform(0.5, 0.9), spares="/leases")
        yield begin(flood, wait_s=1.0)
        yield AddPods(count=20, wait_s=world.rng.uniform(10.0, 25.0))
        yield Do(name="check the leader", act=self._same_leader, wait_s=0.0)
        yield end(Overload)
        yield over(self, wait_s=0.0)  # a leader without events for 40 s may step down: Incident11
        yield AddPods(count=1, wait_s=20.0)

    def _same_leader(self, world: World) -> None:
        assert world.leaders == self._led, "the lease went to another process"
