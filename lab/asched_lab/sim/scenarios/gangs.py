"""Gangs that do not all fit at the same time."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched.core.cluster.pod_groups import COSCHEDULING_LABEL, group_key
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched_lab.sim.checker import EndState
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.rules import requests_of
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Json,
    Step,
    Wait,
    is_through,
    pod_manifest,
    priority_class,
)
from asched_lab.sim.world import World

ROUNDS: Final = 12
PRIORITY: Final = 50


class Gangs(Scenario):
    """Gangs and single pods compete for a few nodes, with lost answers, stale watches and a dying
    scheduler. Their pods and PodGroups are created in any order. In half of the worlds gangs have a
    higher priority than single pods, and preempt them.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=5),
        BrokenWatches(every_s=40),
        Restarts(every_s=120),
    )
    config: ClassVar[Json] = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
            }
        ]
    }

    def __init__(self) -> None:
        self._gangs: dict[str, tuple[int, int]] = {}  # name -> minCount, pods
        self._are_important = False
        #: sent and not accepted so far: uid of the pod -> its name
        self._open: dict[str, str] = {}

    def setup(self, world: World) -> None:
        self._are_important = world.rng.random() < 0.5
        AddNodes(count=world.rng.randint(2, 4), cpu=(2, 4), pods=(10,)).do(world)
        world.on_sent.append(lambda _, bind: self._open.update({bind.pod.uid: bind.pod.name}))
        world.on_bound.append(lambda bind: self._check_binding(world, bind))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(ROUNDS):
            self._add_gang(world, f"gang-{number}")
            yield Wait(wait_s=None)
            roll = world.rng.random()
            if roll < 0.3:
                yield AddPods(count=2)
            elif roll < 0.4:
                yield AddNodes(cpu=(2,), pods=(10,))

    def _add_gang(self, world: World, name: str) -> None:
        for plural, manifest in world.shuffled(self._made(world, name)):
            world.server.create(plural, manifest)
            if world.rng.random() < 0.2:
                world.run_for(world.rng.uniform(0.0, 0.3))

    def _made(self, world: World, name: str) -> list[tuple[str, Json]]:
        """(plural, manifest) of its PodGroup, then of its pods."""
        size = world.rng.randint(2, 6)
        min_count = world.rng.randint(2, size)
        cpu = world.rng.choice(("300m", "700m", "1"))
        self._gangs[name] = (min_count, size)
        return [
            ("podgroups", self._group(world, name, min_count)),
            *(("pods", self._member(world, name, number, cpu)) for number in range(size)),
        ]

    def _group(self, world: World, name: str, min_count: int) -> Json:  # noqa: ARG002
        return pod_group(name, min_count)

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        pod = pod_manifest(f"{gang}-{number}", cpu)
        pod["spec"]["schedulingGroup"] = {"podGroupName": gang}
        if self._are_important:
            pod["spec"]["priorityClassName"] = priority_class(world, PRIORITY)
        return pod

    def _check_binding(self, world: World, bind: Bind) -> None:
        """When a pod of a gang is bound, the machine has places for minCount of its pods."""
        self._open.pop(bind.pod.uid, None)
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = gang_of(pod) if pod is not None else ""
        if pod is None or not name:
            return
        placed = world.parts.cluster.pod_groups.get(group_key(decode(Pod, pod))).placed
        bound = sum(gang_of(p) == name for p in world.placed())
        if max(len(placed), bound) < self._gangs[name][0]:
            world.ledger.broken.append(f"{bind.pod.name} is bound while its gang has no quorum")

    def check(self, world: World) -> None:
        """No gang is half bound, unless a request to bind one of its pods got lost; a waiting gang
        does not fit as a whole, not even with the room of pods it may preempt; each group has its
        condition.
        """
        pods = [pod for pod in world.pods() if not is_through(pod)]
        end = EndState(world.nodes(), [p for p in pods if gang_of(p) or not self._are_important])
        for name, (min_count, size) in self._gangs.items():
            members = [pod for pod in pods if gang_of(pod) == name]
            waiting = [pod for pod in members if not pod["spec"].get("nodeName")]
            bound = size - len(waiting)
            is_hurt = any(pod.rpartition("-")[0] == name for pod in self._open.values())
            whole = bound == 0 or bound >= min_count
            assert whole or is_hurt, f"{bound} of {name} ({min_count}) are bound"
            if waiting:
                fits = sum(room_for(end, node, waiting[0]) for node in end.nodes)
                needed = max(min_count - bound, 1)
                assert fits < needed, f"{needed} of {name} would fit and wait"
            self._check_condition(world, name, bound=bound, is_hurt=is_hurt)

    def _check_condition(self, world: World, name: str, *, bound: int, is_hurt: bool) -> None:
        group = world.server.get("podgroups", "default", name)
        assert group is not None
        (condition,) = group["status"]["conditions"]
        assert condition["type"] == "PodGroupScheduled"
        is_right = (condition["status"] == "True") is (bound > 0)
        assert is_right or is_hurt, f"{name}: {condition}"


def room_for(end: EndState, node: str, pod: Json) -> int:
    """How many pods like this one a node would take."""
    if not end.has_place(node, pod):
        return 0
    free = end.free[node]
    return int(min(free[name] // requested for name, requested in requests_of(pod).items()))


def gang_of(pod: Json) -> str:
    labels = pod["metadata"].get("labels") or {}
    name: str = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
    return name or labels.get(COSCHEDULING_LABEL, "")


def pod_group(name: str, min_count: int) -> Json:
    """A PodGroup of Kubernetes 1.36."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }
