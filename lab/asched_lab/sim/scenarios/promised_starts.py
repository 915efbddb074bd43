"""Promised starts of waiting pods, in an unreliable cluster."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched.batch.backfill.reservations import Reservations, StartTimes
from asched.batch.backfill.starts import CHANGES
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.store import Change
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    DeletePods,
    FinishPods,
    Json,
    RemoveNode,
    Step,
    end_pods,
)
from asched_lab.sim.world import World

ROUNDS: Final = 30
LASTS_S: Final = (20, 60, 120)


class PromisedStarts(Scenario):
    """Pods with a deadline, pods with an expected duration and pods without either, and large pods
    for which there is no room, on a small cluster that loses nodes; the scheduler dies, answers get
    lost and watches are late. A promise that was moved back has a cause, and once all pods with an
    end have ended no pod waits for room that is promised to other pods.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=4),
        BrokenWatches(every_s=40),
        Restarts(every_s=90),
    )
    config: ClassVar[Json] = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "Backfill"}]}},
                "pluginConfig": [
                    {
                        "name": "Backfill",
                        "args": {
                            "reservations": 3,
                            "maxNamespacePercentage": 100,
                            "softEnds": True,
                            "learnDurations": True,
                        },
                    }
                ],
            }
        ]
    }
    settle_s = 900.0
    keepers = frozenset({"Backfill"})

    def __init__(self) -> None:
        self.promised = 0
        self._starts: dict[str, float] = {}

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 4), cpu=(2, 4), pods=(20, 110)).do(world)
        listeners = world.server.store.table(PODS.storage).listeners
        listeners.append(lambda change: self._limit(world, change))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            roll = world.rng.random()
            if roll < 0.45:
                count, cpu = world.rng.randint(1, 3), ("300m", "700m", "1")
                yield AddPods(count=count, cpu=cpu, make=_lasting)
            elif roll < 0.65:
                priority = world.rng.choice((0, 0, 0, 10))
                yield AddPods(cpu=("2", "3"), priority=priority, make=_lasting)
            elif roll < 0.75:
                yield FinishPods(count=1)
            elif roll < 0.85:
                yield DeletePods(count=1)
            elif roll < 0.92 and len(world.node_names()) > 2:
                yield RemoveNode(node=world.rng.choice(world.node_names()))
            else:
                yield AddNodes(cpu=(2, 4))
            self._check_promises(world)

    def check(self, world: World) -> None:
        self._check_promises(world)
        outcomes = world.parts.cluster.singleton(StartTimes).outcomes
        assert set(outcomes) <= set(CHANGES)
        world.note(f"{self.promised} starts were promised")

    def _check_promises(self, world: World) -> None:
        """A promise that is later than before has a cause."""
        starts = {}
        for promise in world.parts.cluster.singleton(Reservations).all():
            key = f"{world.leaders}/{id(world.acting)}/{promise.owner}"
            before_s = self._starts.get(key)
            self.promised += before_s is None
            if before_s is not None and promise.start_s > before_s and not promise.cause:
                world.ledger.complain(
                    f"the start of {promise.owner} was moved back without a cause"
                )
            starts[key] = promise.start_s
        self._starts = starts

    def _limit(self, world: World, change: Change) -> None:
        """As kubelets do: end pods at their deadline, some sooner and some later."""
        pod = change.new.obj
        lasts_s = pod["spec"].get("activeDeadlineSeconds")
        begun = pod["status"].get("phase") == "Running"
        was = change.old.obj["status"].get("phase") if change.old is not None else ""
        if lasts_s is not None and begun and was != "Running":
            world.clock.after(world.rng.uniform(0.3, 1.0) * lasts_s, lambda: end_pods(world, [pod]))


def _lasting(world: World, pod: Json) -> None:
    roll, lasts_s = world.rng.random(), world.rng.choice(LASTS_S)
    if roll < 0.75:
        pod["spec"]["activeDeadlineSeconds"] = lasts_s
    elif roll < 0.85:
        pod["metadata"]["annotations"] = {"asched.dev/expected-duration-seconds": str(lasts_s)}
