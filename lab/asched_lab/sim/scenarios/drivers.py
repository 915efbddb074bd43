"""Applications whose first pod asks for the others, as Spark's operator makes them."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched.core.framework.effects import Bind
from asched.core.state.pod_groups import COSCHEDULING_LABEL
from asched_lab.sim.checker import EndState
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.rules import amount, requests_of
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.gangs import gang_of
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Json,
    Step,
    Wait,
    is_through,
    pod_manifest,
    remove,
)
from asched_lab.sim.world import World

APPLICATIONS: Final = 10
#: Of every pod: rooms of one size leave nothing in pieces that are of no use.
CPU: Final = "500m"
GROUPS: Final = "podgroups.scheduling.x-k8s.io"


class Drivers(Scenario):
    """A driver comes alone, with a PodGroup of minMember 1 and the minResources of its whole
    application; its executors come once it is bound. There is room for few of them, single pods
    take what they find, answers get lost, watches are late, and the scheduler dies in the middle
    of it. No driver starts in room that is promised to another application, and whatever started
    has all of its pods in the end.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
        BrokenWatches(every_s=40),
        Restarts(every_s=60),
    )
    config: ClassVar[Json] = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": "Coscheduling"}],
                        "disabled": [{"name": "PrioritySort"}],
                    }
                },
            }
        ]
    }
    #: whether minResources are free no filter tells: `check` does
    beyond_filters = frozenset({"Coscheduling"})
    #: a gang that fits nowhere is tried again after its backoff
    settle_s = 120.0

    def __init__(self) -> None:
        self._executors: dict[str, int] = {}
        self._asked_for: set[str] = set()

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 3), cpu=(2, 4), pods=(20,)).do(world)
        world.on_bound.append(lambda bind: self._look_at(world, bind))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(APPLICATIONS):
            self._submit(world, f"app{number}")
            for _ in range(world.rng.randint(1, 4)):
                yield Wait(wait_s=world.rng.uniform(0.0, 4.0))
                self._ask_for_executors(world)
            if world.rng.random() < 0.4:
                yield AddPods(count=1, cpu=(CPU,))
            if world.rng.random() < 0.5:
                self._finish(world)
        for _ in range(20):
            yield Wait(wait_s=5.0)
            self._ask_for_executors(world)

    def _submit(self, world: World, name: str) -> None:
        executors = self._executors[name] = world.rng.randint(1, 5)
        total = {"cpu": f"{(1 + executors) * int(CPU.removesuffix('m'))}m"}
        group = coscheduled(name, minMember=1, minResources=total)
        made = [(GROUPS, group), ("pods", labelled(name, "driver"))]
        for plural, manifest in world.shuffled(made):
            world.server.create(plural, manifest)

    def _ask_for_executors(self, world: World) -> None:
        for name in self._running(world) - self._asked_for:
            self._asked_for.add(name)
            for number in range(self._executors[name]):
                world.server.create("pods", labelled(name, f"executor-{number}"))

    def _finish(self, world: World) -> None:
        """One that is complete: nobody is left of it."""
        for name in sorted(self._running(world) & self._asked_for):
            pods = [pod for pod in world.pods() if gang_of(pod) == name]
            if all(pod["spec"].get("nodeName") for pod in pods):
                for pod in pods:
                    remove(world, "pods", pod["metadata"]["name"], "default")
                self._executors.pop(name)
                return

    def _running(self, world: World) -> set[str]:
        """Applications whose driver has a node."""
        drivers = [pod for pod in world.placed() if pod["metadata"]["name"].endswith("-driver")]
        return {name for pod in drivers if (name := gang_of(pod)) in self._executors}

    def _look_at(self, world: World, bind: Bind) -> None:
        """All that was promised to those that run, and the others' pods, are no more than there
        is.
        """
        if not bind.pod.name.endswith("-driver"):
            return
        # Also when all steps are done: what it does not ask for in time is held for it no longer.
        wait_s = world.rng.uniform(0.5, 20.0)
        world.clock.after(wait_s, lambda: self._ask_for_executors(world))
        running = self._running(world)
        each = amount(CPU)
        promised = sum((1 + self._executors[name]) * each for name in running)
        others = [p for p in world.placed() if gang_of(p) not in running and not is_through(p)]
        taken = sum((requests_of(pod)["cpu"] for pod in others), start=promised)
        there = sum(amount(node["status"]["allocatable"]["cpu"]) for node in world.nodes())
        if taken > there:
            told = f"{bind.pod.name} started: {taken} cores are promised or taken, of {there}"
            world.ledger.complain(told)

    def check(self, world: World) -> None:
        """Whoever started is complete, and whoever waits would not fit with all that it needs."""
        pods = [pod for pod in world.pods() if not is_through(pod)]
        end = EndState(world.nodes(), pods)
        free = sum(one["cpu"] // amount(CPU) for one in end.free.values())
        running = self._running(world)
        for name, executors in self._executors.items():
            bound = [p for p in world.placed() if gang_of(p) == name]
            if name in running:
                assert len(bound) == 1 + executors, f"{len(bound)} of {name} are bound"
            else:
                assert free < 1 + executors, f"{name} would fit and waits"


def coscheduled(name: str, **spec: object) -> Json:
    """A PodGroup of scheduling.x-k8s.io."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def labelled(group: str, role: str, cpu: str = CPU) -> Json:
    """A pod of such a group."""
    pod = pod_manifest(f"{group}-{role}", cpu)
    pod["metadata"]["labels"][COSCHEDULING_LABEL] = group
    return pod
