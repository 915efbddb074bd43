"""Everything comes and goes."""

from collections.abc import Iterator

from asched.lab.sim.faults import BrokenWatches, DuplicateSights, ExpiredWatches, StaleWatch
from asched.lab.sim.scenario import Scenario
from asched.lab.sim.steps import (
    AddNodes,
    AddPods,
    Cordon,
    DeletePods,
    FinishPods,
    Json,
    OpenGates,
    Relabel,
    RemoveNode,
    Step,
)
from asched.lab.sim.world import World

STEPS = 60


class Churn(Scenario):
    """Pods and nodes come, change and go, and no stream can be trusted to be on time."""

    faults = (
        StaleWatch(lag_s_max=10),
        DuplicateSights(rate=0.1),
        BrokenWatches(every_s=30),
        ExpiredWatches(every_s=40),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(1, 5)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            yield self._step(world)
        yield OpenGates()

    def _step(self, world: World) -> Step:
        nodes = world.node_names()
        node = world.rng.choice(nodes) if nodes else ""
        roll = world.rng.random()
        if roll < 0.35:
            return AddPods(count=world.rng.randint(1, 4), make=_perhaps_gated)
        if roll < 0.5:
            return DeletePods(count=world.rng.randint(1, 3))
        if roll < 0.6:
            return FinishPods()
        if roll < 0.7:
            return Relabel(count=2)
        if roll < 0.8 or not node:
            return AddNodes()
        if roll < 0.92:
            return Cordon(node=node, unschedulable=world.rng.random() < 0.5)
        return RemoveNode(node=node)


def _perhaps_gated(world: World, pod: Json) -> None:
    if world.rng.random() < 0.2:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    if world.rng.random() < 0.2:
        pod["spec"]["nodeSelector"] = {"disk": world.rng.choice(("ssd", "hdd"))}
