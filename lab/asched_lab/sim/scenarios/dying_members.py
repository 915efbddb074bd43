"""Members of running gangs end, fail, or are deleted: their PodGroup counts them."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final

from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.coscheduled import CONFIG, GROUPS, coscheduled, labelled
from asched_lab.sim.scenarios.gangs import gang_of
from asched_lab.sim.steps import AddNodes, Json, Step, Wait, end_pods
from asched_lab.sim.world import World

GANGS: Final = 8
ROUNDS: Final = 25
FINAL: Final = ("Failed", "Finished")


class DyingMembers(Scenario):
    """Gangs start, and then lose pods: these fail, succeed, or are deleted, and some are created
    again. Answers get lost, watches are late, and the scheduler dies. In the end the status of each
    PodGroup counts its pods, and no group with fewer than its minimum is Running.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
        BrokenWatches(every_s=40),
        Restarts(every_s=90),
    )
    config: ClassVar[Json] = CONFIG

    def __init__(self) -> None:
        self._gangs: dict[str, tuple[int, int]] = {}  # minMember, size

    def setup(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(110,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(GANGS):
            self._submit(world, f"gang{number}")
            yield Wait(wait_s=world.rng.uniform(0.0, 3.0))
        for _ in range(ROUNDS):
            yield Wait(wait_s=None)
            running = [pod for pod in world.placed() if pod["status"].get("phase") == "Running"]
            for pod in world.some(running, world.rng.randint(0, 2)):
                self._hurt(world, pod)

    def _submit(self, world: World, name: str) -> None:
        size = world.rng.randint(2, 5)
        minimum = world.rng.randint(1, size)
        self._gangs[name] = minimum, size
        made = [(GROUPS, coscheduled(name, minMember=minimum))]
        made += [("pods", labelled(name, f"{number}")) for number in range(size)]
        for plural, manifest in world.shuffled(made):
            world.server.create(plural, manifest)

    def _hurt(self, world: World, pod: Json) -> None:
        roll = world.rng.random()
        if roll < 0.5:
            phase = "Failed" if roll < 0.3 else "Succeeded"
            world.server.ctx.put(PODS, {**pod, "status": {**pod["status"], "phase": phase}})
            return
        end_pods(world, [pod])
        if roll < 0.75:
            name = gang_of(pod)
            made = labelled(name, f"again-{next(world.numbers)}")
            world.server.create("pods", made)

    def is_plain(self, pod: Json) -> bool:
        return not gang_of(pod)

    def check(self, world: World) -> None:
        """Compare with the server's pods, not with the events of any process."""
        for name, (minimum, _) in self._gangs.items():
            group = world.server.get(GROUPS, "default", name)
            assert group is not None
            status = group.get("status") or {}
            phases = [p["status"].get("phase") for p in world.pods() if gang_of(p) == name]
            by_phase = Counter(phases)
            said = status.get("phase", "")
            if said in FINAL:
                continue
            status_counts = {key: status.get(key, 0) for key in ("running", "succeeded", "failed")}
            counts = {key: by_phase[key.capitalize()] for key in status_counts}
            if len(phases) >= minimum and said != "Pending":
                assert status_counts == counts, (
                    f"{name} has {status_counts} in its status, and {counts} pods"
                )
            enough = by_phase["Running"] + by_phase["Succeeded"] >= minimum
            wanted = "Pending" if len(phases) < minimum else "Running" if enough else "Scheduling"
            assert said == wanted, f"{name} is {said}, with {counts} of {minimum} it is {wanted}"
