"""Gangs that preempt each other as a whole."""

from collections.abc import Mapping
from typing import ClassVar, Final

from asched_lab.sim.checker import EndState
from asched_lab.sim.scenarios.gangs import Gangs, gang_of, room_for
from asched_lab.sim.steps import Json, is_through, priority_class
from asched_lab.sim.world import World

PRIORITIES: Final = (10, 50, 90)


class GroupRoom(Gangs):
    """Gangs with WorkloadAwarePreemption and several priorities: half of them are preempted as a
    whole, or not at all. Preempted pods are not created again.
    """

    config: ClassVar[Json] = {}
    gates: ClassVar[Mapping[str, bool]] = {
        "GenericWorkload": True,
        "GangScheduling": True,
        "WorkloadAwarePreemption": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self._priorities: dict[str, int] = {}
        self._whole: set[str] = set()

    def _group(self, world: World, name: str, min_count: int) -> Json:
        group = super()._group(world, name, min_count)
        self._priorities[name] = priority = world.rng.choice(PRIORITIES)
        group["spec"]["priorityClassName"] = priority_class(world, priority)
        if world.rng.random() < 0.5:
            self._whole.add(name)
            group["spec"]["disruptionMode"] = "PodGroup"
        return group

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        pod = super()._member(world, gang, number, cpu)
        pod["spec"]["priorityClassName"] = priority_class(world, self._priorities[gang])
        return pod

    def check(self, world: World) -> None:
        """If a pod of a gang that is preempted as a whole was evicted, all its pods were. A waiting
        gang does not fit as a whole, not even with the room of all less important pods.
        """
        pods = [pod for pod in world.pods() if not is_through(pod)]
        for name, (min_count, size) in self._gangs.items():
            members = [pod for pod in pods if gang_of(pod) == name]
            waiting = [pod for pod in members if not pod["spec"].get("nodeName")]
            bound = len(members) - len(waiting)
            is_hurt = any(pod.rpartition("-")[0] == name for pod in self._open.values())
            goes_by_one = len(members) < size and name not in self._whole
            is_whole = bound == 0 or bound >= min_count
            assert is_whole or is_hurt or goes_by_one, f"{bound} of {name} ({min_count}) are left"
            needed = max(min_count - bound, 1)
            if waiting and needed <= len(waiting):
                mine = self._priorities[name]
                others = [pod for pod in pods if pod["spec"].get("priority", 0) >= mine]
                end = EndState(world.nodes(), others)
                fits = sum(room_for(end, node, waiting[0]) for node in end.nodes)
                assert fits < needed, f"{needed} of {name} would fit and wait"
