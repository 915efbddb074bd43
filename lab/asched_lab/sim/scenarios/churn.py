"""All kinds of objects are created and deleted."""

from collections.abc import Iterator
from typing import ClassVar

from asched_lab.sim.faults import (
    BrokenWatches,
    Compactions,
    DuplicateSights,
    ExpiredWatches,
    Fault,
    StaleWatch,
)
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    APPS,
    AddNodes,
    AddPods,
    Amend,
    Cordon,
    DeletePods,
    FinishPods,
    Json,
    MoveNode,
    OpenGates,
    Relabel,
    RemoveNode,
    Step,
)
from asched_lab.sim.world import World

STEPS = 60
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Churn(Scenario):
    """Pods and nodes are created, changed and deleted, and every stream may be late."""

    faults: ClassVar[tuple[Fault, ...]] = (
        StaleWatch(lag_s_max=10),
        DuplicateSights(rate=0.1),
        BrokenWatches(every_s=30),
        ExpiredWatches(every_s=40),
        Compactions(every_s=15),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(1, 5)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(STEPS):
            yield self._step(world)
        yield OpenGates()

    def _step(self, world: World) -> Step:
        nodes = world.node_names()
        node = world.rng.choice(nodes) if nodes else ""
        roll = world.rng.random()
        if roll < 0.35:
            return AddPods(count=world.rng.randint(1, 4), make=_any_kind)
        if roll < 0.5:
            return DeletePods(count=world.rng.randint(1, 3))
        if roll < 0.6:
            return FinishPods()
        if roll < 0.65:
            return Relabel(count=2)
        if roll < 0.7:
            return Amend(count=3)
        if roll < 0.8 or not node:
            return AddNodes()
        if roll < 0.87:
            return MoveNode(node=node)
        if roll < 0.94:
            return Cordon(node=node, unschedulable=world.rng.random() < 0.5)
        return RemoveNode(node=node)


def _any_kind(world: World, pod: Json) -> None:
    """Gates, finalizers, selectors, affinity, spread: any combination."""
    rng, spec = world.rng, pod["spec"]
    pod["metadata"]["labels"] = {"app": rng.choice(APPS)}
    if rng.random() < 0.15:
        pod["metadata"]["finalizers"] = ["example.com/hold"]
    if rng.random() < 0.2:
        spec["schedulingGates"] = [{"name": "example.com/later"}]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    selector = {"matchLabels": {"app": rng.choice(APPS)}}
    term = {"topologyKey": rng.choice(KEYS), "labelSelector": selector}
    if rng.random() < 0.2:
        spec["affinity"] = {"podAffinity": {REQUIRED: [term]}}
    elif rng.random() < 0.2:
        weighted = {"weight": rng.randint(1, 100), "podAffinityTerm": term}
        spec["affinity"] = {"podAntiAffinity": {PREFERRED: [weighted]}}
    if rng.random() < 0.3:
        unsatisfiable = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        more = {"maxSkew": rng.randint(1, 2), "whenUnsatisfiable": unsatisfiable}
        spec["topologySpreadConstraints"] = [{**term, **more}]
