"""Pods that move to make room for others (plugin Rebalance).

By the API objects alone: no pod is evicted without a place that is held for its successor, none
twice within the pause, and none deleted past its budget. What was moved for a unit that then got no
place is counted, with the reason; without faults and rivals there is none.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched.batch.rebalance.places import OWNERS
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.holds import HeldAmounts
from asched.core.framework.effects import DeletePod, Effect, Evict, NotePod
from asched.core.model.timestamp import seconds
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.controllers import Controllers
from asched_lab.sim.faults import unreliable
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
        self.evicted = 0
        #: pods of units for which pods were moved, as far as they were not counted
        self.noted: set[str] = set()
        AddNodes(count=world.rng.randint(4, 8), cpu=(CPU,), pods=(20,)).do(world)
        world.on_effect.append(lambda process, effect: self._performed(world, process, effect))
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
        self._count_units(world)
        if world.rng.random() < 0.8:
            pods = [world.server.get("pods", "default", name) for name in names]
            end_pods(world, [pod for pod in pods if pod is not None])
            yield Wait(wait_s=world.rng.uniform(0.0, 80.0))

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - overrides
        return False

    def check(self, world: World) -> None:
        units = world.parts.cluster.singleton(RebalanceUnits)
        if units.active is None:
            holds = [hold.owner for hold in world.parts.cluster.holds]
            assert not holds, f"{holds} are left behind"
        self._count_units(world, is_over=True)
        world.figures["moves"] += self.evicted
        world.note(f"{self.evicted} pods were moved")

    def _count_units(self, world: World, *, is_over: bool = False) -> None:
        """Count the units for which pods were moved, and those of them that got no room: when they
        end, or when they are placed.
        """
        for name in sorted(self.noted):
            pod = world.server.get("pods", "default", name)
            has_room = pod is not None and "nodeName" in pod["spec"]
            if has_room or is_over or pod is None:
                self.noted.discard(name)
                world.figures["units with moves"] += 1
                if not has_room:
                    world.figures["units with moves and without room"] += 1
                    assert not self.is_quiet, f"pods moved for {name}, which got no room"

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

    # --- rules -----------------------------------------------------------------------------------

    def _performed(self, world: World, process: Process, effect: Effect) -> None:
        if isinstance(effect, DeletePod) and self.is_quiet:
            world.ledger.complain(f"{effect.pod.name} is deleted, not evicted")
        if isinstance(effect, NotePod):
            self.noted.add(effect.pod.name)
        if not isinstance(effect, Evict):
            return
        self.evicted += 1
        world.note(f"evict {effect.pod.name}")
        pod = world.server.get("pods", effect.pod.namespace, effect.pod.name)
        if pod is None or pod["metadata"]["uid"] != effect.pod.uid:
            return  # it has gone meanwhile
        places = [
            place
            for hold in process.parts.cluster.holds
            if hold.owner.startswith(OWNERS)
            for place in hold.places
            if not isinstance(place.what, HeldAmounts)
        ]
        own = [p for p in places if p.what.pod.metadata.name == effect.pod.name]  # type: ignore[union-attr]
        if not own or own[0].node_name == pod["spec"].get("nodeName"):
            world.ledger.complain(f"{effect.pod.name} is evicted, and no place is held for it")
            return
        created = process.parts.cluster.pods_seen[effect.pod.key].metadata.creation_timestamp
        seen = world.parts.cluster.placed.get(effect.pod.uid)
        age_s = world.clock.now_s() - seconds(created, 0.0)
        if seen is not None and age_s < PAUSE_S:
            world.ledger.complain(f"{effect.pod.name} is evicted after {age_s:.0f} s")
        if self.is_quiet and not self._accepts(world, pod, own[0].node_name):
            world.ledger.complain(
                f"{effect.pod.name} is evicted, and {own[0].node_name} does not take its successor"
            )

    def _accepts(self, world: World, pod: Json, node: str) -> bool:
        """Whether a node would take the successor now, beside all that is there."""
        others = [p for p in world.pods() if not is_through(p) and p is not pod]
        bare = {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "nodeName"}}
        return EndState(world.nodes(), others).fits(node, bare)


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
