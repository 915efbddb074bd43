"""Processes share pools whose pods have rules about volumes, devices, quotas and spread."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from asched.core.cluster.pools import Pools as CorePools
from asched.core.framework.effects import Bind
from asched_lab.sim.checker import EndState, domain, fewest, hard_constraints, spread_counts
from asched_lab.sim.devices import CLASSES, REQUESTS, Devices
from asched_lab.sim.faults import LateWrites, Restarts, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenarios.pools import (
    NAMESPACE_NAMES,
    ZONE,
    AddPoolPods,
    MoveNamespaces,
    Pools,
)
from asched_lab.sim.scenarios.room import WITH_QUOTAS, add_quotas, check_quotas
from asched_lab.sim.steps import DeletePods, Json, Step, end_pods, priority_class
from asched_lab.sim.storage import Storage
from asched_lab.sim.world import World

#: Namespace to (guaranteed, maximum), milli-CPU. In two pools they make their pods wait.
QUOTAS: Final = {"one": (1500, 2500), "two": (1000, 1500)}
EVEN: Final = "even"
#: Pods that are spread are the most important, and are not deleted: the domains of a constraint
#: only gain pods, so that what was decided can be judged without knowing who saw what when.
EVEN_PRIORITY: Final = 20


@dataclass(frozen=True, slots=True)
class AddRuledPods(AddPoolPods):
    """As there, and pods that are spread, have a volume, or devices, or must be apart from pods of
    two namespaces.
    """

    storage: Storage | None = None
    devices: Devices | None = None

    def fill(self, world: World, pod: Json) -> None:
        assert self.storage is not None, "given by the scenario"
        assert self.devices is not None, "given by the scenario"
        dice, namespace = world.rng.random(), pod["metadata"]["namespace"]
        if dice < 0.25 and namespace not in QUOTAS:
            even(world, pod)
        elif dice < 0.4:
            self.storage.mount(pod, [f"{pod['metadata']['name']}-data"])
        elif dice < 0.65:
            reference = {"name": "d"}
            if world.rng.random() < 0.4:
                shared = f"shared-{world.rng.randrange(2)}"
                reference["resourceClaimName"] = self.devices.add_claim(shared, namespace)
            else:
                template = f"request-{world.rng.randrange(len(REQUESTS))}"
                reference["resourceClaimTemplateName"] = template
            pod["spec"]["resourceClaims"] = [reference]
        elif dice < 0.8:
            apart_across(world, pod)
        else:
            AddPoolPods.fill(self, world, pod)


def even(world: World, pod: Json) -> None:
    """Spread the pod over the zones of its pool."""
    pod["metadata"]["labels"] = {"app": EVEN}
    pod["spec"]["priorityClassName"] = priority_class(world, EVEN_PRIORITY)
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": EVEN}},
        }
    ]


def apart_across(world: World, pod: Json) -> None:
    """Pods of two namespaces of which some must be in zones without the others."""
    pod["metadata"]["labels"] = {"app": "apart"}
    if world.rng.random() < 0.5:
        namespaces = sorted({pod["metadata"]["namespace"], world.rng.choice(NAMESPACE_NAMES)})
        selector = {"matchLabels": {"app": "apart"}}
        term = {"topologyKey": ZONE, "labelSelector": selector, "namespaces": namespaces}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"]["affinity"] = {"podAntiAffinity": required}


class DeleteOthers(DeletePods):
    """Delete pods that are not spread."""

    def do(self, world: World) -> None:
        chosen = [pod for pod in world.pods() if pod["metadata"]["labels"].get("app") != EVEN]
        end_pods(world, world.some(chosen, self.count))


class PoolRules(Pools):
    """As Pools. A device is given to one claim, a volume to one, and pods are where these are; no
    namespace takes more than its quota allows, nor all of them together; a pod that is to be spread
    goes to a zone that the pods decided before allow.
    """

    rounds = 40
    config: ClassVar[Json] = {**Pools.config, "profiles": WITH_QUOTAS}

    def furnish(self, world: World) -> None:
        self.storage, self.devices = Storage(world), Devices(world, NAMESPACE_NAMES)
        for name in CLASSES:
            self.devices.add_class(name)
        add_quotas(world, QUOTAS)
        for node in world.node_names():
            self.devices.publish(node)
            for _ in range(world.rng.randint(0, 2)):
                self.storage.add_local_volume(node)
        world.on_bound.append(lambda bind: check_quotas(world, bind, QUOTAS))
        world.on_sent.append(check_spread)

    def start(self, world: World) -> Iterator[Step]:
        for step in super().start(world):
            yield step
            if world.rng.random() < 0.1:
                self.storage.add_local_volume(world.rng.choice(world.node_names()))

    def add(self, world: World) -> Step:
        return AddRuledPods(world.rng.randint(1, 5), self.storage, self.devices)

    def delete(self, world: World) -> Step:
        return DeleteOthers(count=world.rng.randint(1, 8))

    def is_simple(self, pod: Json) -> bool:
        spec = pod["spec"]
        has_more = "volumes" in spec or "resourceClaims" in spec
        has_more |= "topologySpreadConstraints" in spec or "podAntiAffinity" in str(spec)
        return not has_more and pod["metadata"]["namespace"] not in QUOTAS


@dataclass(frozen=True, slots=True)
class AddPodsApart(AddPoolPods):
    """Pods that must be apart from some of two namespaces."""

    def fill(self, world: World, pod: Json) -> None:
        apart_across(world, pod)


class MovingRules(Pools):
    """As Pools, with pods of several namespaces that must be apart. Namespaces come to a pool and
    leave it all the time, while many bindings arrive late: such a pod is decided only while no
    other process may have bound, or may bind, a pod that its rule is about.
    """

    replicas = (2, 3)
    faults = (
        StaleWatch(lag_s_max=3.0),
        SlowAnswers(seconds_max=0.2),
        LateWrites(rate=0.3, late_s_max=30.0),
        Restarts(every_s=60),
    )

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            dice = world.rng.random()
            if dice < 0.4:
                yield AddPodsApart(count=world.rng.randint(1, 5))
            elif dice < 0.6:
                yield self.delete(world)
            else:
                yield MoveNamespaces()

    def is_simple(self, pod: Json) -> bool:
        return "podAntiAffinity" not in pod["spec"].get("affinity", ())


def check_spread(process: Process, bind: Bind) -> None:
    """Complain about a pod that would stand in too full a zone: with the pods that are bound, or
    were sent before by this process, in its own zone, and all that it has decided in the others.
    """
    world, cluster = process.world, process.parts.cluster
    pods, pools = world.pods(), process.machine.context.pools
    pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
    constraints = hard_constraints(pod) if pod is not None else []
    if pod is None or not constraints or pools is None:
        return
    nodes = [node for node in world.nodes() if _is_of(pools, node["metadata"]["name"], bind.node)]
    sent = world.ledger.open_places(process.name)
    assumed = {info.pod.uid: info.node_name for info in cluster.placed.values() if info.assumed}
    before, decided = (EndState(nodes, _placed(pods, known, bind)) for known in (sent, assumed))
    for constraint in constraints:
        zone = domain(before.nodes.get(bind.node), constraint["topologyKey"])
        if zone is None:
            continue
        own = before.spread(constraint, constraints, pod).get(zone, 0)
        own += int(spread_counts(constraint, pod, pod))
        counts = decided.spread(constraint, constraints, pod)
        most = constraint["maxSkew"] + fewest(constraint, counts)
        if own > most:
            text = f"would be the {own}th in {zone} of {dict(counts)}"
            world.ledger.complain(f"pod {bind.pod.key} on {bind.node} {text}")


def _is_of(pools: CorePools, node: str, other: str) -> bool:
    """Whether a process uses a node, and knows it as one of the same pool as another."""
    known = pools.cluster.node_of(node), pools.cluster.node_of(other)
    of_pool = {None if one is None else pools.with_labels(one.labels) for one in known}
    return pools.may_use_node(node) and len(of_pool) == 1


def _placed(pods: list[Json], known: dict[str, str], bind: Bind) -> list[Json]:
    """The pods that are bound, or have one of these places, without the one that is to be."""
    found = []
    for pod in pods:
        uid = pod["metadata"]["uid"]
        node = pod["spec"].get("nodeName") or known.get(uid)
        if node and uid != bind.pod.uid:
            found.append({**pod, "spec": {**pod["spec"], "nodeName": node}})
    return found
