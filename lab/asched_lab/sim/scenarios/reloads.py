"""Reloads of the configuration with pods in every phase."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.reloading import reload
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.side_by_side import (
    PACKER,
    PACKER_PROFILE,
    PICKY,
    PICKY_PROFILE,
    for_any_scheduler,
)
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Json, Step
from asched_lab.sim.world import SCHEDULER, World

ROUNDS = 40
PLAIN: Json = {"schedulerName": SCHEDULER}
#: Every filter except that of resources is off: more nodes than before admit a pod.
CARELESS: Json = {
    **PLAIN,
    "plugins": {
        "filter": {
            "enabled": [{"name": "NodeResourcesFit"}, {"name": "NodePorts"}],
            "disabled": [{"name": "*"}],
        }
    },
}
#: Scheduler names that are in both configurations.
ALIKE = [{"schedulerName": name} for name in (PACKER, PICKY)]
CONFIGS: tuple[Json, ...] = (
    {"profiles": [PLAIN]},
    {"profiles": [PLAIN, PICKY_PROFILE]},
    {"profiles": [PACKER_PROFILE]},
    {"profiles": [CARELESS, PACKER_PROFILE]},
    {"profiles": [PLAIN, *ALIKE]},
    {"profiles": [{**PLAIN, "percentageOfNodesToScore": 40}, PICKY_PROFILE, PACKER_PROFILE]},
    {"profiles": [PLAIN], "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 4},
)
ALL: Json = {"profiles": [PLAIN, PACKER_PROFILE, PICKY_PROFILE]}


@dataclass(frozen=True, slots=True)
class Reload(Step):
    """Replace the configuration between two turns."""

    config: int | None = None

    def do(self, world: World) -> None:
        number = self.config if self.config is not None else world.rng.randrange(len(CONFIGS))
        outcome = reload(world, ALL if number < 0 else CONFIGS[number])
        world.note(f"configuration {number}: {outcome}")


class Reloads(Scenario):
    """Profiles are added, removed and changed while pods are in every phase; no pod is lost or
    sleeps.
    """

    faults = (StaleWatch(lag_s_max=3), SlowAnswers(seconds_max=1.0), LostAnswers(rate=0.1))
    config: ClassVar[Json] = ALL

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 5)).do(world)

    def is_plain(self, pod: Json) -> bool:
        return bool(pod["spec"]["schedulerName"] != PICKY)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            roll = world.rng.random()
            if roll < 0.35:
                yield Reload()
            elif roll < 0.8:
                priority = world.rng.choice((0, 0, 10))
                yield AddPods(
                    count=world.rng.randint(1, 4), priority=priority, make=for_any_scheduler
                )
            elif roll < 0.9:
                yield DeletePods(count=2)
            else:
                yield AddNodes()
        yield Reload(config=-1 if world.rng.random() < 0.7 else None)
