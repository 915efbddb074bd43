"""The API version of PodGroups is removed while gangs wait."""

from collections.abc import Iterator
from typing import Final

from asched_lab.sim.scenarios.gangs import Gangs
from asched_lab.sim.steps import AddNodes, Step, Wait
from asched_lab.sim.world import World

OLD: Final = "scheduling.k8s.io/v1alpha2"
NEW: Final = "scheduling.k8s.io/v1beta1"
ROUNDS: Final = 8


class VanishingVersions(Gangs):
    """Gangs are created while the API server serves PodGroups in one version or the other. In
    between it serves them in none for a while, as in the middle of an upgrade: pods of known gangs
    are created all the same, room is freed, and the scheduler dies. No pod of a gang is scheduled
    as a single pod because its group is not served, and with a version all goes on.
    """

    def setup(self, world: World) -> None:
        super().setup(world)
        self._are_important = False  # priorities are the groups' own since 1.37

    def start(self, world: World) -> Iterator[Step]:
        for number in range(ROUNDS):
            made = self._made(world, f"gang-{number}")
            early = world.rng.randint(1, len(made))  # the PodGroup at least
            for plural, manifest in made[:early]:
                world.server.create(plural, manifest)
            yield Wait(wait_s=world.rng.uniform(0.0, 6.0))
            served = {OLD, NEW} & world.server.ctx.alpha
            world.server.ctx.alpha.difference_update(served)
            world.note(f"{', '.join(served)} is served no more")
            yield Wait(wait_s=world.rng.uniform(0.0, 20.0))
            for plural, manifest in made[early:]:
                world.server.create(plural, manifest)
            if world.rng.random() < 0.5:
                yield AddNodes(cpu=(2,), pods=(10,))
            if world.rng.random() < 0.3:
                world.restart()
            yield Wait(wait_s=world.rng.uniform(0.0, 20.0))
            version = world.rng.choice((OLD, NEW))
            world.server.ctx.alpha.add(version)
            world.note(f"{version} is served")
            yield Wait(wait_s=world.rng.uniform(0.0, 30.0))

    def _check_condition(self, world: World, name: str, *, bound: int, is_hurt: bool) -> None:
        """Accept the conditions of any version that was served; while none is, nothing can be
        written, and the condition of a start is not written later.
        """
        group = world.server.get("podgroups", "default", name)
        assert group is not None
        conditions = {
            condition["type"]: condition["status"]
            for condition in group["status"].get("conditions") or ()
        }
        assert conditions.keys() <= {"PodGroupScheduled", "PodGroupInitiallyScheduled"}, conditions
        assert bound or is_hurt or "True" not in conditions.values(), f"{name} waits: {conditions}"
