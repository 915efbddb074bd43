"""Pods with rules against being near each other."""

from collections.abc import Iterator

from asched_lab.sim.faults import LeaderPause, LostAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Json, Rival, Step
from asched_lab.sim.world import World

ROUNDS = 20
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")


class StrangersApart(Scenario):
    """Host ports and required anti-affinity are respected at every moment, with late events."""

    faults = (StaleWatch(lag_s_max=10), LostAnswers(rate=0.1), LeaderPause(every_s=60))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 4), make=_picky)
            roll = world.rng.random()
            if roll < 0.3:
                yield DeletePods(count=world.rng.randint(1, 3))
            elif roll < 0.4:
                yield AddNodes()
            elif roll < 0.5:
                yield Rival(takes_ours=0.0)


def _picky(world: World, pod: Json) -> None:
    app = world.rng.choice(("web", "db", "job"))
    pod["metadata"]["labels"] = {"app": app}
    if world.rng.random() < 0.3:
        port = {"containerPort": 80, "hostPort": world.rng.choice((80, 81))}
        pod["spec"]["containers"][0]["ports"] = [port]
    if world.rng.random() < 0.7:
        term = {
            "topologyKey": world.rng.choice(KEYS),
            "labelSelector": {"matchLabels": {"app": world.rng.choice((app, "web"))}},
        }
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"]["affinity"] = {"podAntiAffinity": rule}
