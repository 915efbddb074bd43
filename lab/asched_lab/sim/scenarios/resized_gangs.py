"""Gangs whose minimum changes while they wait."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched.core.cluster.pod_groups import coscheduled_key
from asched.core.framework.effects import Bind
from asched_lab.apiserver.resources import find
from asched_lab.sim.checker import EndState
from asched_lab.sim.scenarios.coscheduled import CONFIG, GROUPS, coscheduled, labelled
from asched_lab.sim.scenarios.gangs import Gangs, gang_of, room_for
from asched_lab.sim.steps import AddPods, Json, Step, Wait, is_through
from asched_lab.sim.world import World

ROUNDS: Final = 12
SIZE_MAX: Final = 7
#: Time after a change until the scheduler knows of it: late and broken streams, and answers that
#: get lost when they are opened again.
KNOWN_S: Final = 30.0


class ResizedGangs(Gangs):
    """PodGroups are created with a wrong minimum, and changed: it is lowered or raised, with or
    without more pods. No gang starts below the current minimum, and a gang for which the new one is
    enough does not wait for the old one.
    """

    config: ClassVar[Json] = CONFIG

    def __init__(self) -> None:
        super().__init__()
        self._cpu: dict[str, str] = {}
        self._least: dict[str, int] = {}  # the lowest minimum that a group had
        self._resized_s: dict[str, float] = {}

    def setup(self, world: World) -> None:
        super().setup(world)
        self._are_important = False
        world.on_sent.append(lambda _, bind: self._check_start(world, bind))

    def start(self, world: World) -> Iterator[Step]:
        for number in range(ROUNDS):
            self._add_gang(world, f"gang-{number}")
            yield Wait(wait_s=None)
            if world.rng.random() < 0.8:
                self._resize(world, world.rng.choice(sorted(self._gangs)))
            yield Wait(wait_s=world.rng.choice((1.0, 10.0, 1.5 * KNOWN_S)))
            if world.rng.random() < 0.3:
                yield AddPods(count=2)

    def _group(self, world: World, name: str, min_count: int) -> Json:
        del world
        self._least[name] = min_count
        return coscheduled(name, minMember=min_count)

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        del world
        self._cpu[gang] = cpu
        return labelled(gang, f"{number}", cpu)

    def _resize(self, world: World, name: str) -> None:
        size, minimum = self._gangs[name][1], world.rng.randint(1, SIZE_MAX)
        for number in range(size, minimum if world.rng.random() < 0.8 else size):
            world.server.create("pods", labelled(name, f"{number}", self._cpu[name]))
            size = number + 1
        self._gangs[name] = minimum, size
        self._least[name] = min(minimum, self._least[name])
        self._resized_s[name] = world.clock.now_s()
        group = world.server.get(GROUPS, "default", name)
        assert group is not None
        spec = {**group["spec"], "minMember": minimum}
        world.server.ctx.put(find(GROUPS), {**group, "spec": spec})
        world.note(f"{name} needs {minimum} of {size} now")

    def _check_binding(self, world: World, bind: Bind) -> None:  # noqa: ARG002
        self._open.pop(bind.pod.uid, None)

    def _check_start(self, world: World, bind: Bind) -> None:
        """At the first binding of a gang as many pods as it needs now have places."""
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = gang_of(pod) if pod is not None else ""
        is_known = world.clock.now_s() - self._resized_s.get(name, -KNOWN_S) >= KNOWN_S
        if not name or any(gang_of(pod) == name for pod in world.placed()):
            return
        placed = world.parts.cluster.pod_groups.get(coscheduled_key(f"default/{name}")).placed
        minimum = self._gangs[name][0] if is_known else self._least[name]
        if len(placed) < minimum:
            world.ledger.complain(f"{name} starts with {len(placed)}, it needs {minimum}")

    def is_plain(self, pod: Json) -> bool:
        return not gang_of(pod)

    def check(self, world: World) -> None:
        """Each gang has no bound pod, or as many as it once needed; a waiting gang does not fit."""
        pods = [pod for pod in world.pods() if not is_through(pod)]
        end = EndState(world.nodes(), pods)
        for name, (minimum, size) in self._gangs.items():
            members = [pod for pod in pods if gang_of(pod) == name]
            waiting = [pod for pod in members if not pod["spec"].get("nodeName")]
            bound = size - len(waiting)
            is_hurt = any(pod.rpartition("-")[0] == name for pod in self._open.values())
            is_whole = bound == 0 or bound >= self._least[name]
            assert is_whole or is_hurt, f"{bound} of {name} are bound, never less were enough"
            needed = max(minimum - bound, 1)
            if needed <= len(waiting):
                fits = sum(room_for(end, node, waiting[0]) for node in end.nodes)
                assert fits < needed, f"{needed} of {name} would fit and wait"
