"""Incidents beside another scheduler: it takes room that was freed or nominated, or is its own.

They are not recorded anywhere: they follow from another scheduler that binds, nominates and evicts
by rules of its own.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from asched.core.framework.effects import Bind, DeletePod, Effect
from asched_lab.apiserver.context import DELETED, Change
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.faults import StaleWatch
from asched_lab.sim.museum.incident import Do, Incident, Json, over
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import profile
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Step,
    Wait,
    bind_theirs,
    pod_manifest,
    priority_class,
    wipe,
)
from asched_lab.sim.world import SCHEDULER, World

RIVAL: Final = "rival"
NODES: Final = 3
MINUTE_S: Final = 60.0
FOLLOWS: Final = "follows from another scheduler that binds, nominates and evicts by its own rules"


def make_theirs(world: World, name: str, cpu: str, priority: int, **metadata: Any) -> Json:
    """A pod of the other scheduler."""
    pod = pod_manifest(name, cpu)
    pod["metadata"].update(metadata)
    pod["spec"]["schedulerName"] = RIVAL
    pod["spec"]["priorityClassName"] = priority_class(world, priority)
    return world.server.create("pods", pod)


def named(world: World, prefix: str) -> list[Json]:
    return [pod for pod in world.pods() if pod["metadata"]["name"].startswith(prefix)]


def is_on_node(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName"))


class IncidentN1(Incident):
    """Room is freed for a pod of this scheduler repeatedly, and each time pods of the other
    scheduler with the same priority are faster. Evicted pods are created again. The other scheduler
    is named in the configuration: each node loses a pod a minute at most.
    """

    what = "two schedulers evicted for each other's benefit, in a circle, without end"
    threads = FOLLOWS
    recovers_in_s = MINUTE_S + 15.0
    config: ClassVar[Json] = {
        "profiles": [
            {
                "schedulerName": SCHEDULER,
                "pluginConfig": [
                    {"name": "DefaultPreemption", "args": {"otherSchedulers": [RIVAL]}}
                ],
            }
        ]
    }
    faults = (StaleWatch(lag_s_max=0.5),)

    def build(self, world: World) -> None:
        self.evicted: Counter[str] = Counter()
        self.evicted_s: list[float] = []
        self.steals = True
        world.on_effect.append(self._see_effect)
        world.inhabitants.refuses = True  # both schedulers may be too fast
        AddNodes(count=NODES, cpu=(4,), pods=(20,)).do(world)
        AddPods(count=2 * NODES, name="", cpu=("2",)).do(world)
        world.run_for(10.0)
        world.server.store.table(PODS.storage).listeners.append(lambda c: self._steal(world, c))

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(name="high", cpu=("2",), priority=10, wait_s=world.rng.uniform(120, 260))
        yield Do(name="few fights", act=self._are_few, wait_s=0.0)
        self.steals = False
        if not is_on_node(*named(world, "high")):  # else it was faster once
            yield over(self, wait_s=0.0)
            yield AddNodes(count=1, cpu=(16,), pods=(60,))

    def counts(self, bind: Bind) -> bool:
        return bind.pod.name == "high"

    def _see_effect(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, DeletePod):
            self.evicted[effect.pod.name] += 1
            self.evicted_s.append(process.world.clock.now_s())

    def _steal(self, world: World, change: Change) -> None:
        """When a pod was evicted, the other scheduler has a pod for its room at once."""
        pod = change.new.obj
        node = pod["spec"].get("nodeName")
        if not self.steals or change.type != DELETED or pod["metadata"]["name"] not in self.evicted:
            return
        thief = make_theirs(world, f"thief-{next(world.numbers)}", "2", 10)
        bind_theirs(world, thief, node)
        name = f"again-{next(world.numbers)}"
        world.clock.after(1.0, lambda: AddPods(name=name, cpu=("2",)).do(world))

    def _are_few(self, world: World) -> None:
        assert named(world, "thief"), "no room was taken"
        for at_s in self.evicted_s:
            count = sum(at_s <= other_s < at_s + MINUTE_S for other_s in self.evicted_s)
            assert count <= NODES, f"{count} pods were evicted within a minute"


class IncidentN2(Incident):
    """The other scheduler has evicted for a pod of its own and waits for the victims to terminate;
    their room must not be used.
    """

    what = "room that another scheduler had made for its pod was filled, and evicted once more"
    threads = FOLLOWS
    recovers_in_s = 15.0
    faults = (StaleWatch(lag_s_max=0.5),)

    def build(self, world: World) -> None:
        AddNodes(count=2, cpu=(4,), pods=(20,)).do(world)
        for node in world.node_names():
            for _ in range(2):
                pod = make_theirs(world, f"low-{next(world.numbers)}", "2", 0)
                bind_theirs(world, pod, node)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        node = world.rng.choice(world.node_names())
        self.promised = make_theirs(world, "promised", "4", 10)
        status = {**self.promised["status"], "nominatedNodeName": node}
        world.server.ctx.put(PODS, {**self.promised, "status": status})
        yield Wait(wait_s=world.rng.uniform(1.0, 3.0))  # the nomination is seen before its room is
        victims = [p for p in named(world, "low") if p["spec"]["nodeName"] == node]
        for victim in victims:
            yield Do(name="a victim goes", act=lambda w, v=victim: wipe(w, v))  # type: ignore[misc]
            cpu = world.rng.choice(("500m", "1", "2"))
            yield AddPods(count=3, cpu=(cpu,), priority=world.rng.choice((0, 10)))
        yield Wait(wait_s=world.rng.uniform(5.0, 60.0))
        yield Do(name="the promise is kept", act=lambda w: self._keep(w, node), wait_s=1.0)
        yield over(self, wait_s=0.0)
        yield AddNodes(count=1, cpu=(16,), pods=(60,), wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _keep(self, world: World, node: str) -> None:
        placed = [p for p in world.placed() if p["spec"]["nodeName"] == node]
        end = EndState(world.nodes(), [pod for pod in placed if not is_through(pod)])
        ours = [p["metadata"]["name"] for p in placed]
        assert end.has_place(node, self.promised), f"its room on {node} is taken by {ours}"
        bind_theirs(world, self.promised, node)


#: Labels and annotations of gangs of other schedulers.
MARKS: Final[tuple[Json, ...]] = (
    {"annotations": {"scheduling.k8s.io/group-name": "train"}},
    {"annotations": {"pod-group-name": "train"}},
    {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
    {"labels": {"pod-group.scheduling.sigs.k8s.io": "train"}},
)


class IncidentN3(Incident):
    """Pods of another gang and single pods of higher priority stand in the way; where evictions
    spare gangs, a single pod is evicted.
    """

    what = "one pod of a gang of eight was evicted, and the other seven ran without effect"
    threads = FOLLOWS
    recovers_in_s = 20.0
    config: ClassVar[Json] = profile("GangSparingPreemption", without="DefaultPreemption")
    faults = (StaleWatch(lag_s_max=0.5),)

    def build(self, world: World) -> None:
        AddNodes(count=5, cpu=(4,), pods=(20,)).do(world)
        mark = world.rng.choice(MARKS)
        places = [node for node in world.node_names() for _ in range(2)]
        for number, node in enumerate(world.shuffled(places)):
            if number < 8:
                pod = make_theirs(world, f"gang-{number}", "2", 0, **mark)
            else:
                pod = make_theirs(world, f"single-{number}", "2", 5)
            bind_theirs(world, pod, node)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        yield over(self, wait_s=0.0)  # there is no fault to end
        yield AddPods(count=1, cpu=("2",), priority=10, wait_s=world.rng.uniform(0.0, 20.0))
        yield AddPods(count=1, cpu=("2",), priority=10, wait_s=20.0)

    def check_end(self, world: World) -> None:
        rest = len(named(world, "gang"))
        assert rest == 8, f"{8 - rest} of a gang of eight were evicted, with a choice"
        assert not world.waiting(), "there was room to make"
