"""Pods that wait for volumes which are bound or provisioned once a node is chosen."""

from collections.abc import Iterator

from asched_lab.sim.faults import LostAnswers, ServerErrors, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, Json, Step
from asched_lab.sim.storage import Storage
from asched_lab.sim.world import World

ROUNDS = 20


class LateVolumes(Scenario):
    """Each volume has one claim, pods are where their volumes are, though drivers fail."""

    faults = (StaleWatch(lag_s_max=5), LostAnswers(rate=0.1), ServerErrors(rate=0.05))

    def setup(self, world: World) -> None:
        self.storage = Storage(world)
        world.on_bound.append(lambda bind: self.storage.unreached(bind, world.ledger))
        AddNodes(count=world.rng.randint(2, 5), cpu=(4,)).do(world)
        for node in world.node_names():
            for _ in range(world.rng.randint(0, 3)):
                self.storage.add_local_volume(node)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 3), make=self._with_claims)
            roll = world.rng.random()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.4:
                self.storage.add_local_volume(world.rng.choice(world.node_names()))

    def _with_claims(self, world: World, pod: Json) -> None:
        number = world.rng.choice((0, 1, 1, 2))
        names = [f"{pod['metadata']['name']}-{n}" for n in range(number)]
        pod["spec"]["volumes"] = [
            {
                "name": f"data-{n}",
                "persistentVolumeClaim": {"claimName": self.storage.add_claim(name)},
            }
            for n, name in enumerate(names)
        ]
