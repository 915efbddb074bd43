"""The API server refuses, fails, forgets and hangs up."""

from collections.abc import Iterator

from asched.lab.sim.faults import (
    ExpiredWatches,
    LostAnswers,
    Overload,
    ServerErrors,
    SlowAnswers,
    StaleWatch,
    Unreachable,
)
from asched.lab.sim.scenario import Scenario
from asched.lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched.lab.sim.world import World

ROUNDS = 25


class BurningServer(Scenario):
    """Most requests go wrong in one way or another; every pod is bound once all the same."""

    faults = (
        Overload(rate=0.1),
        ServerErrors(rate=0.1),
        LostAnswers(rate=0.2),
        Unreachable(rate=0.1),
        SlowAnswers(seconds_max=3.0),
        ExpiredWatches(every_s=30),
        StaleWatch(lag_s_max=10),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8), cpu=(1, 2)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 6))
            if world.rng.random() < 0.4:
                yield DeletePods(count=world.rng.randint(1, 4))
