"""Many gangs that wait for the room of one."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final

from asched import names
from asched.core.framework.effects import Effect, EmitEvent
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.gangs import Gangs, gang_of, pod_group
from asched_lab.sim.steps import AddNodes, Json, Step, Wait, pod_manifest, remove
from asched_lab.sim.world import World

GANGS: Final = 30
SIZE: Final = 4
NODES: Final = 2
ROUNDS: Final = 12
#: Failed attempts that each process may make: for each pod, and for each pod of a gang for which
#: room was freed.
A_POD: Final = 2
A_FREED_PLACE: Final = 4


class ActivationStorm(Scenario):
    """Thirty equal gangs wait for two nodes, each of which has room for one. Gangs end one by one,
    answers get lost, watches are late, and the scheduler dies. For each freed room only as many
    gangs are tried as fit, not all that wait.
    """

    faults = (
        LostAnswers(rate=0.05),
        StaleWatch(lag_s_max=2),
        BrokenWatches(every_s=40),
        Restarts(every_s=120),
    )
    config: ClassVar[Json] = Gangs.config

    def __init__(self) -> None:
        self._vain: Counter[Process] = Counter()
        self._freed = 0

    def setup(self, world: World) -> None:
        AddNodes(count=NODES, cpu=(SIZE,), pods=(20,)).do(world)
        world.on_effect.append(self._note)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(GANGS):
            self._add_gang(world, f"gang-{number}")
        for _ in range(ROUNDS):
            yield Wait(wait_s=world.rng.uniform(2.0, 15.0))
            self._end_one(world)
        self._check_attempts()

    def _add_gang(self, world: World, name: str) -> None:
        world.server.create("podgroups", pod_group(name, SIZE))
        for number in range(SIZE):
            pod = pod_manifest(f"{name}-{number}", "1")
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            world.server.create("pods", pod)

    def _end_one(self, world: World) -> None:
        """Delete all pods of a running gang."""
        running = sorted({gang_of(pod) for pod in world.placed()})
        if not running:
            return
        ended = world.rng.choice(running)
        for pod in world.pods():
            if gang_of(pod) == ended:
                remove(world, "pods", pod["metadata"]["name"], "default")
                self._freed += 1

    def _note(self, process: Process, effect: Effect) -> None:
        """Count failed attempts by the events of pods."""
        if isinstance(effect, EmitEvent) and effect.reason == names.EVENT_FAILED_SCHEDULING:
            self._vain[process] += effect.regarding.kind == "Pod"

    def _check_attempts(self) -> None:
        most = A_POD * GANGS * SIZE + A_FREED_PLACE * self._freed
        for count in self._vain.values():
            assert count <= most, f"{count} failed attempts of one process, {most} are many"

    def check(self, world: World) -> None:
        """Gangs run if there is room for any, and each is whole."""
        bound = Counter(gang_of(pod) for pod in world.placed())
        waits = {gang_of(pod) for pod in world.waiting()}
        assert len(bound) == NODES or not waits, f"{len(bound)} gangs run, {len(waits)} wait"
        assert set(bound.values()) <= {SIZE}, f"{bound}: not all are whole"
