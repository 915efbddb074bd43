"""Two schedulers, one cluster."""

from collections.abc import Iterator

from asched_lab.sim.faults import SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Rival, Step
from asched_lab.sim.world import World

ROUNDS = 30


class Rivalry(Scenario):
    """A second scheduler takes free places, and pods of this scheduler with them."""

    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=0.5))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 6), cpu=(4, 8)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 4), wait_s=world.rng.uniform(0.0, 0.05))
            yield Rival(count=world.rng.randint(1, 3))
            if world.rng.random() < 0.3:
                yield DeletePods(count=3)
