"""Several processes, one lease."""

from collections.abc import Iterator

from asched_lab.sim.faults import (
    LateWrites,
    LeaderPause,
    LostAnswers,
    Partition,
    Restarts,
    SlowAnswers,
    StaleWatch,
)
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched_lab.sim.world import World

ROUNDS = 30
#: Time until all is listed and one process leads.
BEFORE_S = 10.0


class LeaderChanges(Scenario):
    """Leaders die, stop and are disconnected with open work: their successor finishes it.

    No process binds without the lease, no two lead at a time, and requests of a dead leader may
    still arrive.
    """

    replicas = 3
    faults = (
        LeaderPause(every_s=25, lasting_s_max=15),
        Partition(every_s=30, lasting_s_max=15),
        Restarts(every_s=40),
        SlowAnswers(seconds_max=0.5),
        LostAnswers(rate=0.05),
        LateWrites(rate=0.1, late_s_max=15),
        StaleWatch(lag_s_max=3),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 6)).do(world)
        world.run_for(BEFORE_S)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            wait_s = world.rng.choice((None, world.rng.uniform(1.0, 10.0)))
            priority = world.rng.choice((0, 0, 0, 10))
            yield AddPods(count=world.rng.randint(1, 5), priority=priority, wait_s=wait_s)
            if world.rng.random() < 0.3:
                yield DeletePods(count=world.rng.randint(1, 3))

    def check(self, world: World) -> None:
        assert world.leaders > 1, "leadership never changed, so nothing was tried"
