"""Requests that are carried out after their timeout."""

from collections.abc import Iterator

from asched_lab.sim.faults import Conflicts, LateWrites, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched_lab.sim.world import World

ROUNDS = 25


class LateBindings(Scenario):
    """A binding without an answer may still be carried out: there is room for it then, and the pod
    is on the API's node, once.
    """

    faults = (LateWrites(rate=0.3), StaleWatch(lag_s_max=5), Conflicts(rate=0.1))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 6)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 5))
            if world.rng.random() < 0.3:
                yield DeletePods(count=world.rng.randint(1, 3))
