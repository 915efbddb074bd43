"""Pods that move to make room for others (plugin Rebalance).

`move_judge.py` has the rules. What was moved for a unit that then got no place is counted, with the
cause; without faults and rivals there is none.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from asched.core.framework.effects import Effect, Evict, NotePod
from asched_lab.apiserver.resources import find
from asched_lab.sim.controllers import Controllers
from asched_lab.sim.faults import unreliable
from asched_lab.sim.move_judge import MoveJudge
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.scenarios.gangs import GROUPS, coscheduled, labelled
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    FinishPods,
    Json,
    RemoveNode,
    Rival,
    Step,
    Wait,
    cordon,
    end_pods,
    pod_manifest,
)
from asched_lab.sim.world import World

PAUSE_S: Final = 60
ARGS: Final = {
    "namespaces": ["default"],
    "waitingSeconds": 5,
    "pauseSeconds": PAUSE_S,
    "backoffSeconds": 60,
    "timeLimitSeconds": 60,
    "maxMovesPerPod": 4,
}
CPU: Final = 4
#: Five backoffs.
PATIENCE_S: Final = 300.0
ROUND_S: Final = 30.0


class MovedPods(Scenario):
    """Large pods and gangs come to nodes whose free room is in pieces; controllers are slow now and
    then. Nothing fails: every unit for which pods were moved gets its room.
    """

    config: ClassVar[Json] = profile(
        "Coscheduling", "Rebalance", without="PrioritySort", Rebalance=ARGS
    )
    settle_s = 400.0
    rounds = 8
    #: a held place keeps pods out that the checker would place
    keepers = frozenset({"NodeResourcesFit"})
    is_quiet: ClassVar[bool] = True

    def setup(self, world: World) -> None:
        self.controllers = Controllers(world)
        AddNodes(count=world.rng.randint(4, 8), cpu=(CPU,), pods=(20,)).do(world)
        self.move_rules = MoveJudge(world, is_quiet=self.is_quiet, pause_s=PAUSE_S)
        for number in range(world.rng.randint(4, 7)):
            self._controller(world, f"app{number}")
        world.run_for(PAUSE_S + 40.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            self.controllers.slow_s_max = world.rng.choice((0.5, 0.5, 20.0))
            yield from self.events(world, number)

    def events(self, world: World, number: int) -> Iterator[Step]:
        """One round: a unit comes, waits, and ends in most cases."""
        names = self._unit(world, f"unit{number}")
        yield Wait(wait_s=world.rng.uniform(40.0, 120.0))
        yield from self._later(world, names)
        if world.rng.random() < 0.8:
            end_pods(world, _existing(world, names))
            yield Wait(wait_s=world.rng.uniform(0.0, 80.0))

    def _later(self, world: World, names: Sequence[str]) -> Iterator[Step]:
        """A unit whose plan was abandoned waits on, for at most PATIENCE_S, in which pods without a
        controller end one by one, those that took its room among them. Then count the units.
        """
        waited_s = 0.0
        while not self.is_quiet and waited_s < PATIENCE_S and self.move_rules.owes_room(names):
            bare = [p for p in world.placed() if not p["metadata"].get("ownerReferences")]
            others = [pod for pod in bare if pod["metadata"]["name"] not in names]
            end_pods(world, world.some(others, 1))
            yield Wait(wait_s=ROUND_S)
            waited_s += ROUND_S
        self.move_rules.count_units()

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - overrides
        return False

    def check(self, world: World) -> None:  # noqa: ARG002 - overrides
        self.move_rules.check_end()

    # --- objects ---------------------------------------------------------------------------------

    def _controller(self, world: World, name: str) -> None:
        rng = world.rng
        labels = {"app": name}
        template = pod_manifest(name, rng.choice(("500m", "1", "1", "1500m")))
        spec = {k: v for k, v in template["spec"].items() if k != "nodeName"}
        roll = rng.random()
        chosen = {"matchLabels": labels}
        if roll < 0.25:
            term = {"labelSelector": chosen, "topologyKey": "kubernetes.io/hostname"}
            rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": rule}
        elif roll < 0.5:
            spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
            spread |= {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": chosen}
            spec["topologySpreadConstraints"] = [spread]
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": rng.randint(1, 3),
                "selector": chosen,
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        if rng.random() < 0.25:
            body["spec"]["serviceName"] = name  # type: ignore[index]
            world.server.create("statefulsets", body)
        else:
            world.server.create("replicasets", body)
        if rng.random() < 0.4:
            budget = {"selector": chosen, "maxUnavailable": rng.choice((0, 1, 1, 1))}
            metadata = {"name": name, "namespace": "default"}
            world.server.create("poddisruptionbudgets", {"metadata": metadata, "spec": budget})

    def _unit(self, world: World, name: str) -> list[str]:
        """A large pod, or a gang of two; the names of its pods."""
        cpu = world.rng.choice(("2500m", "3", "3500m"))
        if world.rng.random() < 0.7:
            world.server.create("pods", pod_manifest(name, cpu))
            return [name]
        world.server.create(GROUPS, coscheduled(name, minMember=2))
        for number in range(2):
            world.server.create("pods", labelled(name, f"{number}", cpu))
        return [f"{name}-{number}" for number in range(2)]


class MovedPodsAmidFaults(MovedPods):
    """The same, while the scheduler dies, answers get lost, watches are late, nodes come and go,
    other pods arrive, some of them more important, and another scheduler binds pods.
    """

    faults = unreliable(0.1, lag_s=4, restarts_s=60)
    is_quiet = False

    def events(self, world: World, number: int) -> Iterator[Step]:
        yield from super().events(world, number)
        roll = world.rng.random()
        if roll < 0.25:
            yield AddPods(count=2, cpu=("500m", "1"), priority=world.rng.choice((0, 0, 100)))
        elif roll < 0.5:
            yield Rival(count=2)
        elif roll < 0.65:
            yield FinishPods(count=1)
        elif roll < 0.75 and len(world.node_names()) > 3:
            yield RemoveNode(node=world.rng.choice(world.node_names()))
        elif roll < 0.85:
            yield AddNodes(cpu=(CPU,), pods=(20,))


class _Fixed(MovedPods):
    """Base of scenarios whose pods of controllers have their nodes from the start."""

    def setup(self, world: World) -> None:
        self.controllers = Controllers(world)
        self.move_rules = MoveJudge(world, is_quiet=self.is_quiet, pause_s=PAUSE_S)
        self.fill(world)
        world.run_for(PAUSE_S + 40.0)

    def fill(self, world: World) -> None:  # noqa: ARG002 - for subclasses
        raise AssertionError(f"{type(self).__name__} does not define fill()")


class FragmentedGpus(_Fixed):
    """A gang of 8 pods with 8 GPUs each comes to nodes of 8 GPUs, on each of which a small pod has
    one or two.
    """

    config: ClassVar[Json] = profile(
        "Coscheduling",
        "Rebalance",
        without="PrioritySort",
        Rebalance={
            **ARGS,
            "timeLimitSeconds": 600,
            "maxMovesPerUnit": 24,
            "maxMovesPerMinute": 60,
            "maxMovesAtOncePerNamespace": 4,
        },
    )
    rounds = 2

    def fill(self, world: World) -> None:
        rng, count = world.rng, world.rng.randint(11, 13)
        offers = {"nvidia.com/gpu": "8"}
        AddNodes(count=count, cpu=(64,), pods=(20,), offers=offers).do(world)
        nodes = world.node_names()
        for number, node in enumerate(nodes):  # a pod on each
            for other in nodes:
                cordon(world, other, unschedulable=other != node)
            world.server.create("replicasets", _with_gpus(f"app{number}", rng.choice((1, 1, 2))))
            world.run_for(5.0)
        for node in nodes:
            cordon(world, node, unschedulable=False)

    def events(self, world: World, number: int) -> Iterator[Step]:
        name = f"train{number}"
        create = world.server.create
        create(GROUPS, coscheduled(name, minMember=GANG))
        for index in range(GANG):
            pod = labelled(name, f"{index}", "1")
            _request(pod["spec"], 8)
            create("pods", pod)
        yield Wait(wait_s=400.0)
        self.move_rules.count_units()
        pods = _existing(world, [f"{name}-{index}" for index in range(GANG)])
        world.figures["gangs"] += 1
        world.figures["gangs placed"] += all("nodeName" in pod["spec"] for pod in pods)
        end_pods(world, pods)
        yield Wait(wait_s=PAUSE_S + 60.0)


class SpreadServices(_Fixed):
    """Two services whose replicas are spread over zones, with budgets of one pod: a gang needs the
    room of several replicas of one service, so that a plan waits until the budget has recovered.
    """

    rounds = 4

    def fill(self, world: World) -> None:
        for number in range(6):
            name = f"node-{number}"
            labels = {"kubernetes.io/hostname": name, ZONE: "ab"[number % 2]}
            amounts = {"cpu": str(CPU), "memory": "8Gi", "pods": "20"}
            status = {"capacity": amounts, "allocatable": amounts}
            node = {"metadata": {"name": name, "labels": labels}, "status": status}
            world.server.create("nodes", node)
        for name in ("red", "blue"):
            spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spread["labelSelector"] = {"matchLabels": {"app": name}}
            zones = {**spread, "topologyKey": ZONE}
            body = _replica_set(name, "1", 3)
            body["spec"]["template"]["spec"]["topologySpreadConstraints"] = [zones]
            world.server.create("replicasets", body)
            world.server.create("poddisruptionbudgets", _budget(name, 1))

    def events(self, world: World, number: int) -> Iterator[Step]:
        name, size = f"unit{number}", world.rng.choice((2, 3))
        world.server.create(GROUPS, coscheduled(name, minMember=size))
        for index in range(size):
            world.server.create("pods", labelled(name, f"{index}", "3500m"))
        self.controllers.slow_s_max = world.rng.choice((0.5, 5.0))
        yield Wait(wait_s=150.0)
        self.move_rules.count_units()
        end_pods(world, _existing(world, [f"{name}-{index}" for index in range(size)]))
        yield Wait(wait_s=PAUSE_S + 20.0)


class MovesBesideRollouts(MovedPods):
    """Controllers are slower than a plan may take, and scale while it is carried out."""

    is_quiet = False

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            self.controllers.slow_s_max = world.rng.choice((0.5, 20.0, 90.0))
            yield from self.events(world, number)
            yield self._scaled(world)

    def _scaled(self, world: World) -> Step:
        res = find("replicasets")
        records = [r for r in world.server.list("replicasets", "default") if r["spec"]["replicas"]]
        if records and world.rng.random() < 0.5:
            body = world.rng.choice(records)
            replicas = max(body["spec"]["replicas"] + world.rng.choice((-1, 1)), 1)
            spec = {**body["spec"], "replicas": replicas}
            world.server.ctx.put(res, {**body, "spec": spec})
        return Wait(wait_s=world.rng.uniform(0.0, 10.0))


class MovesAmidRivals(MovedPods):
    """Other pods come while a plan is carried out, some of them more important than the unit."""

    is_quiet = False

    def events(self, world: World, number: int) -> Iterator[Step]:
        names = self._unit(world, f"unit{number}")
        yield Wait(wait_s=world.rng.uniform(3.0, 8.0))
        for _ in range(world.rng.randint(1, 6)):
            priority = world.rng.choice((0, 0, 0, 100))
            yield AddPods(
                count=1, cpu=("500m", "1", "2"), priority=priority, wait_s=world.rng.uniform(0.1, 6)
            )
        yield Wait(wait_s=world.rng.uniform(40.0, 80.0))
        yield from self._later(world, names)
        end_pods(world, _existing(world, names))
        yield FinishPods(count=3, wait_s=world.rng.uniform(0.0, 40.0))


class MovesBesideScheduler(MovedPods):
    """Another scheduler binds pods, its own and ours, while a plan is carried out."""

    is_quiet = False

    def events(self, world: World, number: int) -> Iterator[Step]:
        names = self._unit(world, f"unit{number}")
        yield Wait(wait_s=world.rng.uniform(3.0, 8.0))
        for _ in range(world.rng.randint(1, 4)):
            yield Rival(count=1, wait_s=world.rng.uniform(0.1, 8.0))
        yield Wait(wait_s=world.rng.uniform(40.0, 80.0))
        yield from self._later(world, names)
        end_pods(world, _existing(world, names))
        yield FinishPods(count=2, wait_s=world.rng.uniform(0.0, 40.0))


class DeathsAmidMoves(MovedPods):
    """The scheduler dies at every step of plans: after the record of a plan, after an eviction,
    before and after a successor or the unit is bound.
    """

    is_quiet = False

    def setup(self, world: World) -> None:
        super().setup(world)
        world.on_effect.append(lambda process, effect: self._dies(world, process, effect))

    def _dies(self, world: World, process: Process, effect: Effect) -> None:
        if process is not world.acting or not isinstance(effect, (NotePod, Evict)):
            return
        if world.active_faults.is_on and world.rng.random() < 0.4:
            world.clock.after(world.rng.uniform(0.0, 12.0), world.restart)


#: Pods of the gang that comes to fragmented GPUs.
GANG: Final = 8
GPU: Final = "nvidia.com/gpu"
ZONE: Final = "topology.kubernetes.io/zone"


def _existing(world: World, names: Iterable[str]) -> list[Json]:
    """The pods with these names that are still there."""
    found = [world.server.get("pods", "default", name) for name in names]
    return [pod for pod in found if pod is not None]


def _replica_set(name: str, cpu: str, replicas: int) -> Json:
    template = pod_manifest(name, cpu)
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def _with_gpus(name: str, gpus: int) -> Json:
    """A ReplicaSet of one pod with some GPUs."""
    body = _replica_set(name, "1", 1)
    _request(body["spec"]["template"]["spec"], gpus)
    return body


def _request(spec: Json, gpus: int) -> None:
    resources = spec["containers"][0]["resources"]
    resources["requests"] = {**resources["requests"], GPU: str(gpus)}
    resources["limits"] = {GPU: str(gpus)}


def _budget(app: str, allowed: int) -> Json:
    spec = {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": allowed}
    return {"metadata": {"name": app, "namespace": "default"}, "spec": spec}
