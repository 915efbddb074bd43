"""Objects that are created again under the name of a deleted one."""

from collections.abc import Iterator

from asched_lab.sim.faults import ExpiredWatches, LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, RemoveNode, Step
from asched_lab.sim.world import World

STEPS = 60
PODS = 6
NODES = 4


class OldNames(Scenario):
    """Pods and nodes are created again under their old names while bindings are under way."""

    faults = (
        StaleWatch(lag_s_max=5),
        SlowAnswers(seconds_max=1.0),
        LostAnswers(rate=0.1),
        ExpiredWatches(every_s=20),
    )

    def setup(self, world: World) -> None:
        for number in range(NODES):
            a_node(number).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            roll = world.rng.random()
            if roll < 0.6:
                yield AddPods(name=f"db-{world.rng.randrange(PODS)}")
            elif roll < 0.85:
                yield DeletePods(count=2)
            elif roll < 0.92 and world.node_names():
                yield RemoveNode(node=world.rng.choice(world.node_names()))
            else:
                yield a_node(world.rng.randrange(NODES))


def a_node(number: int) -> AddNodes:
    """Always as big as before: with old data a smaller one would be overcommitted."""
    return AddNodes(name=f"node-{number}", cpu=(2,), pods=(5,))
