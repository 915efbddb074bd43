"""The API server refuses, fails and disconnects; the scheduler dies, or does not lead any more."""

from collections.abc import Iterator
from typing import ClassVar

from asched_lab.sim.faults import (
    BrokenWatches,
    Conflicts,
    ExpiredWatches,
    LateWrites,
    LeaderPause,
    LostAnswers,
    Overload,
    Partition,
    Restarts,
    ServerErrors,
    SlowAnswers,
    StaleWatch,
    Unreachable,
)
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Step
from asched_lab.sim.world import World


class _Traffic(Scenario):
    """Base: pods are created and deleted, on a few nodes."""

    #: Bounds of the numbers of pods created in a round, and deleted in a share of the rounds.
    created: ClassVar[tuple[int, int]] = (1, 5)
    deleted: ClassVar[tuple[int, int]] = (1, 3)
    share_deleted: ClassVar[float] = 0.3

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 6)).do(world)

    def add(self, world: World) -> Step:
        """The pods of a round."""
        return AddPods(count=world.rng.randint(*self.created))

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield self.add(world)
            if world.rng.random() < self.share_deleted:
                yield DeletePods(count=world.rng.randint(*self.deleted))


class BurningServer(_Traffic):
    """Most requests fail in one way or another; every pod is bound once all the same."""

    created = (1, 6)
    deleted = (1, 4)
    share_deleted = 0.4

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


class Inferno(Scenario):
    """The same with more faults, late requests and a dying scheduler, without any other change: in
    the end every single pod is bound, and was bound once.
    """

    faults = (*BurningServer.faults, LateWrites(rate=0.1), Restarts(every_s=20))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 6), cpu=(64,), pods=(200,)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(60 // world.rng.choice((1, 2, 4))):
            yield AddPods(count=world.rng.randint(1, 4))

    def check(self, world: World) -> None:
        waiting = [pod["metadata"]["name"] for pod in world.waiting()]
        assert not waiting, f"{waiting} were never bound"
        for pod in world.pods():
            number = world.ledger.accepted[pod["metadata"]["uid"]]
            assert number == 1, f"{pod['metadata']['name']} was bound {number} times"


class DyingScheduler(_Traffic):
    """The process dies with open bindings; the next one starts from a list and continues."""

    faults = (
        Restarts(every_s=8),
        SlowAnswers(seconds_max=1.0),
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
    )


class LateBindings(_Traffic):
    """A binding without an answer may still be carried out: there is room for it then, and the pod
    is on the API's node, once.
    """

    faults = (LateWrites(rate=0.3), StaleWatch(lag_s_max=5), Conflicts(rate=0.1))


class LeaderChanges(_Traffic):
    """Leaders die, stop and are disconnected with open work: their successor finishes it.

    No process binds without the lease, no two lead at a time, and requests of a dead leader may
    still arrive.
    """

    rounds = 30
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
        super().setup(world)
        world.run_for(10.0)  # until all is listed and one process leads

    def add(self, world: World) -> Step:
        wait_s = world.rng.choice((None, world.rng.uniform(1.0, 10.0)))
        priority = world.rng.choice((0, 0, 0, 10))
        return AddPods(count=world.rng.randint(*self.created), priority=priority, wait_s=wait_s)

    def check(self, world: World) -> None:
        assert world.leaders > 1, "leadership never changed, so nothing was tried"
