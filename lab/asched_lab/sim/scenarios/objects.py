"""Pods and nodes that are created, changed, deleted and created again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from asched.core.framework.effects import Bind
from asched_lab.apiserver.resources import NODES
from asched_lab.sim.checker import admits, skews
from asched_lab.sim.faults import (
    BrokenWatches,
    Compactions,
    DuplicateSights,
    ExpiredWatches,
    Fault,
    LeaderPause,
    LostAnswers,
    SlowAnswers,
    StaleWatch,
    SwallowedEvents,
)
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    APPS,
    AddNodes,
    AddPods,
    Amend,
    Cordon,
    DeletePods,
    Drain,
    FinishPods,
    Json,
    MoveNode,
    OpenGates,
    Relabel,
    RemoveNode,
    Rival,
    Step,
    end_pods,
    remove,
)
from asched_lab.sim.world import World


class RollingDrain(Scenario):
    """Nodes are drained one by one while pods are created; at the end removed nodes are empty."""

    faults = (LostAnswers(rate=0.05), StaleWatch(lag_s_max=30), LeaderPause(every_s=90))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 12)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for node in world.shuffled(world.node_names()):
            yield AddPods(count=world.rng.randint(0, 8))
            yield Drain(node=node, is_patient=world.rng.random() < 0.5)
            if world.rng.random() < 0.6:
                yield AddNodes()

    def check(self, world: World) -> None:
        names = set(world.node_names())
        lost = [p["metadata"]["name"] for p in world.placed() if p["spec"]["nodeName"] not in names]
        assert not lost, f"pods on nodes that left: {lost}"


KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Churn(Scenario):
    """Pods and nodes are created, changed and deleted, and every stream may be late."""

    rounds = 60
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
        for _ in range(self.rounds):
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


#: Share of the steps before which a pod is created, maybe under the name of a deleted one.
AGAIN = 0.4


class LostEvents(Churn):
    """As Churn, but one event in twenty is omitted, and its stream goes on; some pods are created
    again under the names of deleted ones. The audit finds every missed event, in standby processes
    too.
    """

    rounds = 40
    faults = (StaleWatch(lag_s_max=10), SwallowedEvents(rate=0.05))
    replicas = 2
    audit_period_s = 30.0

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            if world.rng.random() < AGAIN:
                yield AddPods(name=f"again-{world.rng.randrange(3)}")
                yield DeletePods(count=2, waiting_too=False)
            yield self._step(world)
        yield OpenGates()


COUNT = 5
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Flap(Step):
    """Change a node; sometimes its pods are evicted."""

    node: str

    def do(self, world: World) -> None:
        known = world.server.get("nodes", "", self.node)
        if known is None:
            AddNodes(name=self.node).do(world)
            return
        roll = world.rng.random()
        if roll < 0.15:
            world.note(f"node {self.node} is gone")
            remove(world, "nodes", self.node)
            if world.rng.random() < 0.5:  # it is created again at once
                AddNodes(name=self.node).do(world)
        elif roll < 0.45:
            world.server.ctx.put(NODES, well(known))
        elif roll < 0.6:
            amounts = {**known["status"]["allocatable"], "cpu": world.rng.choice(("0", "1", "4"))}
            amounts["pods"] = world.rng.choice(("0", "3", "110"))
            status = {**known["status"], "capacity": amounts, "allocatable": amounts}
            world.server.ctx.put(NODES, {**known, "status": status})
        else:
            self._fall_ill(world, known)

    def _fall_ill(self, world: World, known: Json) -> None:
        key = world.rng.choice((NOT_READY, UNREACHABLE))
        effects = ["NoSchedule"] + ["NoExecute"] * (world.rng.random() < 0.4)
        taints = [{"key": key, "effect": effect} for effect in effects]
        spec = {**known["spec"], "taints": taints}
        if world.rng.random() < 0.3:
            spec["unschedulable"] = True
        world.server.ctx.put(NODES, {**known, "spec": spec})
        if "NoExecute" in effects:
            end_pods(world, [p for p in world.placed() if p["spec"]["nodeName"] == self.node])


def well(node: Json) -> Json:
    """The node without taints and cordon."""
    spec = {k: v for k, v in node["spec"].items() if k not in ("taints", "unschedulable")}
    return {**node, "spec": spec}


class NodeFlapping(Scenario):
    """No pod is bound to a node known to be tainted; when nodes recover, all are placed."""

    rounds = 70
    faults = (StaleWatch(lag_s_max=5), SlowAnswers(seconds_max=1.0), LostAnswers(rate=0.1))

    def setup(self, world: World) -> None:
        world.on_sent.append(_must_be_well)
        for number in range(COUNT):
            AddNodes(name=f"node-{number}").do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.5:
                yield Flap(node=f"node-{world.rng.randrange(COUNT)}")
            elif roll < 0.85:
                yield AddPods(count=world.rng.randint(1, 4))
            else:
                yield DeletePods(count=world.rng.randint(1, 3))
        for node in world.nodes():
            world.server.ctx.put(NODES, well(node))
        yield AddNodes(count=2, cpu=(4,))


def _must_be_well(process: Process, bind: Bind) -> None:
    world = process.world
    node = world.seen_node(bind.node)
    pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
    if node is not None and pod is not None and not admits(node, pod):
        world.ledger.complain(f"pod {bind.pod.key} is sent to {bind.node}, known to be ill")


class OldNames(Scenario):
    """Pods and nodes are created again under their old names while bindings are under way."""

    rounds = 60
    faults = (
        StaleWatch(lag_s_max=5),
        SlowAnswers(seconds_max=1.0),
        LostAnswers(rate=0.1),
        ExpiredWatches(every_s=20),
    )

    def setup(self, world: World) -> None:
        for number in range(4):
            a_node(number).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.6:
                yield AddPods(name=f"db-{world.rng.randrange(6)}")
            elif roll < 0.85:
                yield DeletePods(count=2)
            elif roll < 0.92 and world.node_names():
                yield RemoveNode(node=world.rng.choice(world.node_names()))
            else:
                yield a_node(world.rng.randrange(4))


def a_node(number: int) -> AddNodes:
    """Always as big as before: with old data a smaller one would be overcommitted."""
    return AddNodes(name=f"node-{number}", cpu=(2,), pods=(5,))


class StrangersApart(Scenario):
    """Host ports and required anti-affinity are respected at every moment, with late events."""

    rounds = 20
    faults = (StaleWatch(lag_s_max=10), LostAnswers(rate=0.1), LeaderPause(every_s=60))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 4), make=_picky)
            roll = world.rng.random()
            if roll < 0.3:
                yield DeletePods(count=world.rng.randint(1, 3))
            elif roll < 0.4:
                yield AddNodes()
            elif roll < 0.5:
                yield Rival(takes_ours=0.0)


def _picky(world: World, pod: Json) -> None:
    app = world.rng.choice(("web", "db", "job"))
    pod["metadata"]["labels"] = {"app": app}
    if world.rng.random() < 0.3:
        port = {"containerPort": 80, "hostPort": world.rng.choice((80, 81))}
        pod["spec"]["containers"][0]["ports"] = [port]
    if world.rng.random() < 0.7:
        term = {
            "topologyKey": world.rng.choice(KEYS),
            "labelSelector": {"matchLabels": {"app": world.rng.choice((app, "web"))}},
        }
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"]["affinity"] = {"podAntiAffinity": rule}


#: App -> its one constraint, so that every pod it selects has it.
RULES = {"web": (1, KEYS[0]), "db": (1, KEYS[1]), "job": (2, KEYS[1])}


class EvenSpread(Scenario):
    """Hard spread constraints are met at the end of a run in which no pod and no node was deleted.

    No binding fails here: a place that is given back lowers its domain's count.
    """

    rounds = 15
    faults = (StaleWatch(lag_s_max=10), SlowAnswers(seconds_max=1), LeaderPause(every_s=60))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8), cpu=(8,)).do(world)
        world.run_for(30.0)  # pods cannot be spread over a zone before it is known

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 5), cpu=("100m",), make=_spread)

    def check(self, world: World) -> None:
        found = skews(world.nodes(), world.pods())
        assert not found, found[0]


def _spread(world: World, pod: Json) -> None:
    app = world.rng.choice(tuple(RULES))
    skew, key = RULES[app]
    pod["metadata"]["labels"] = {"app": app}
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]
