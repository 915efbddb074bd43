"""The scheduler dies repeatedly."""

from collections.abc import Iterator

from asched_lab.sim.faults import LostAnswers, Restarts, SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched_lab.sim.world import World

ROUNDS = 25


class DyingScheduler(Scenario):
    """The process dies with open bindings; the next one starts from a list and continues."""

    faults = (
        Restarts(every_s=8),
        SlowAnswers(seconds_max=1.0),
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 6)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 5))
            if world.rng.random() < 0.3:
                yield DeletePods(count=world.rng.randint(1, 3))
