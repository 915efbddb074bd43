"""Volumes that take longer than the binding timeout, or are never provisioned."""

from collections.abc import Iterator
from typing import ClassVar

from asched_lab.sim.faults import Conflicts, LostAnswers, ServerErrors, SlowAnswers, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Cordon, DeletePods, Json, RemoveNode, Step
from asched_lab.sim.storage import Storage
from asched_lab.sim.world import World

ROUNDS = 25
BIND_TIMEOUT_S = 15
MAKING_S_MAX = 30.0


class SlowVolumes(Scenario):
    """A driver takes twice the binding timeout, fails, and nodes are deleted meanwhile: each volume
    has one claim, pods are where their volumes are, and each pod is tried until it has them.
    """

    faults = (
        StaleWatch(lag_s_max=5),
        LostAnswers(rate=0.1),
        ServerErrors(rate=0.05),
        Conflicts(rate=0.05),
        SlowAnswers(seconds_max=0.5),
    )
    settle_s = 400.0  # each pod may wait for its volume several times over
    config: ClassVar[Json] = {
        "profiles": [
            {
                "pluginConfig": [
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": BIND_TIMEOUT_S}}
                ]
            }
        ]
    }

    def setup(self, world: World) -> None:
        self.storage = Storage(world, making_s_max=MAKING_S_MAX)
        world.on_bound.append(lambda bind: self.storage.unreached(bind, world.ledger))
        AddNodes(count=world.rng.randint(2, 5), cpu=(2, 4)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            yield AddPods(count=world.rng.randint(1, 3), make=self._with_claims)
            roll = world.rng.random()
            node = world.rng.choice(world.node_names())
            if roll < 0.25:
                yield DeletePods(count=2)
            elif roll < 0.45:
                self.storage.add_local_volume(node)
            elif roll < 0.55:
                yield Cordon(node=node, unschedulable=roll < 0.5)
            elif roll < 0.6 and len(world.node_names()) > 2:
                yield RemoveNode(node=node)
            elif roll < 0.65:
                yield AddNodes(cpu=(4,))

    def _with_claims(self, world: World, pod: Json) -> None:
        number = world.rng.choice((0, 1, 1, 2))
        pod["spec"]["volumes"] = [
            {
                "name": f"data-{n}",
                "persistentVolumeClaim": {
                    "claimName": self.storage.add_claim(f"{pod['metadata']['name']}-{n}")
                },
            }
            for n in range(number)
        ]
