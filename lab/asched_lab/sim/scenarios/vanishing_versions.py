"""The version of the API in which PodGroups are served goes away while gangs wait."""

from collections.abc import Iterator
from typing import Final

from asched_lab.sim.scenarios.gangs import Gangs
from asched_lab.sim.steps import AddNodes, Step, Wait
from asched_lab.sim.world import World

OLD: Final = "scheduling.k8s.io/v1alpha2"
NEW: Final = "scheduling.k8s.io/v1beta1"
ROUNDS: Final = 8


class VanishingVersions(Gangs):
    """Gangs come while the API server serves PodGroups in one version or the other. In between it
    serves them in none for a while, as in the middle of an upgrade: pods of gangs that are known
    come all the same, room comes, and the scheduler dies. No pod of a gang is scheduled as a single
    one because nobody serves its group any more, and once a version is there again all goes on.
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

    def _look_at_condition(self, world: World, name: str, *, bound: int, is_hurt: bool) -> None:
        """In the words of any version that was served then; while none is, nothing can be written,
        and what was to be said of a start is not said later.
        """
        group = world.server.get("podgroups", "default", name)
        assert group is not None
        told = {one["type"]: one["status"] for one in group["status"].get("conditions") or ()}
        assert told.keys() <= {"PodGroupScheduled", "PodGroupInitiallyScheduled"}, told
        assert bound or is_hurt or "True" not in told.values(), f"{name} waits: {told}"
