"""Nodes are drained one by one while pods are created."""

from collections.abc import Iterator

from asched_lab.sim.faults import LeaderPause, LostAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Drain, Step
from asched_lab.sim.world import World


class RollingDrain(Scenario):
    """Nodes are drained one by one while pods are created; at the end removed nodes are empty."""

    faults = (LostAnswers(rate=0.05), StaleWatch(lag_s_max=30), LeaderPause(every_s=90))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 12)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for node in world.shuffled(world.node_names()):
            yield AddPods(count=world.rng.randint(0, 8))
            yield Drain(node=node, is_patient=world.rng.random() < 0.5)
            if world.rng.random() < 0.6:
                yield AddNodes()

    def check(self, world: World) -> None:
        names = set(world.node_names())
        lost = [p["metadata"]["name"] for p in world.placed() if p["spec"]["nodeName"] not in names]
        assert not lost, f"pods on nodes that left: {lost}"
