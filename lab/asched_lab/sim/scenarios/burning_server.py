"""The API server refuses, fails, loses its history and disconnects."""

from collections.abc import Iterator

from asched_lab.sim.faults import (
    BrokenWatches,
    Conflicts,
    ExpiredWatches,
    LateWrites,
    LostAnswers,
    Overload,
    Restarts,
    ServerErrors,
    SlowAnswers,
    StaleWatch,
    Unreachable,
)
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched_lab.sim.world import World

ROUNDS = 25
PODS = 60


class BurningServer(Scenario):
    """Most requests fail in one way or another; every pod is bound once all the same."""

    faults = (
        Overload(rate=0.1),
        ServerErrors(rate=0.1),
        LostAnswers(rate=0.2),
        Unreachable(rate=0.1),
        Conflicts(rate=0.05),
        SlowAnswers(seconds_max=3.0),
        BrokenWatches(every_s=30),
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


class Inferno(Scenario):
    """The same with more faults, late requests and a dying scheduler, without any other change: in
    the end every single pod is bound, and was bound once.
    """

    faults = (
        *BurningServer.faults,
        LateWrites(rate=0.1),
        Restarts(every_s=20),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 6), cpu=(64,), pods=(200,)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(PODS // world.rng.choice((1, 2, 4))):
            yield AddPods(count=world.rng.randint(1, 4))

    def check(self, world: World) -> None:
        waiting = [pod["metadata"]["name"] for pod in world.waiting()]
        assert not waiting, f"{waiting} were never bound"
        for pod in world.pods():
            number = world.ledger.accepted[pod["metadata"]["uid"]]
            assert number == 1, f"{pod['metadata']['name']} was bound {number} times"
