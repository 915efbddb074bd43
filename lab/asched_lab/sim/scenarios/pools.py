"""Several processes decide at the same time, each for the pools that it holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from asched import names
from asched.core.framework.effects import DeletePod, Effect
from asched.core.model.timestamp import NS_PER_SECOND
from asched_lab.apiserver.resources import NAMESPACES, NODES, Resource
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.faults import (
    BrokenWatches,
    ClockRates,
    Fault,
    FrozenServer,
    LateWrites,
    LeaderPause,
    LostAnswers,
    OneWay,
    Partition,
    Restarts,
    SlowAnswers,
    StaleWatch,
)
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.preemption import keep_budgets
from asched_lab.sim.steps import AddNodes, DeletePods, Json, Step, pod_manifest, priority_class
from asched_lab.sim.world import FAULTS, World

#: The label of namespaces that chooses their pool.
TEAM: Final = "team"
POOLS: Final = ("batch", "gpu", "web")
#: And one whose nodes have no label.
DEFAULT: Final = "default"
NAMESPACE_NAMES: Final = ("one", "two", "three", "four", "five")
ZONE: Final = "topology.kubernetes.io/zone"


def labels_for(pool: str, key: str) -> Json:
    return {} if pool == DEFAULT else {key: pool}


@dataclass(frozen=True, slots=True)
class MoveNodes(Step):
    """Nodes come to other pools, or new ones are added to any pool."""

    count: int = 1

    def do(self, world: World) -> None:
        for name in world.some(world.node_names(), self.count):
            relabel(world, NODES, name, names.POOL_LABEL)


@dataclass(frozen=True, slots=True)
class MoveNamespaces(Step):
    """Namespaces come to other pools."""

    def do(self, world: World) -> None:
        relabel(world, NAMESPACES, world.rng.choice(NAMESPACE_NAMES), TEAM)


@dataclass(frozen=True, slots=True)
class AddPoolPods(Step):
    """Pods in any of the namespaces: some must be apart from others of theirs, some are for one
    node as those of a DaemonSet, some use a port of their node, some are more important.
    """

    count: int = 1

    def do(self, world: World) -> None:
        for _ in range(self.count):
            pod = pod_manifest(f"pod-{next(world.numbers)}", world.rng.choice(("300m", "700m")))
            pod["metadata"]["namespace"] = world.rng.choice(NAMESPACE_NAMES)
            self.fill(world, pod)
            world.server.create("pods", pod)

    def fill(self, world: World, pod: Json) -> None:
        """Give a pod its rules."""
        dice = world.rng.random()
        if dice < 0.3:
            pod["metadata"]["labels"] = {"app": "apart"}
            term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "apart"}}}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            pod["spec"]["affinity"] = {"podAntiAffinity": required}
        elif dice < 0.45:
            pod["spec"]["affinity"] = {"nodeAffinity": only(world.rng.choice(world.node_names()))}
        elif dice < 0.55:
            port = world.rng.choice((8080, 8081))
            ports = [{"hostPort": port, "containerPort": port}]
            pod["spec"]["containers"][0]["ports"] = ports
        if world.rng.random() < 0.2:
            pod["spec"]["priorityClassName"] = priority_class(world, 10)


def only(node: str) -> Json:
    """The node affinity that the controller of DaemonSets gives a pod."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def only_node(pod: Json) -> str:
    """The node that such an affinity names; empty without one."""
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).values()
    found = [
        term["matchFields"][0]["values"][0] for one in required for term in one["nodeSelectorTerms"]
    ]
    return found[0] if found else ""


def relabel(world: World, kind: Resource, name: str, key: str) -> None:
    """Give an object the label of another pool."""
    obj = world.server.get(kind.plural, "", name)
    assert obj is not None, f"{name} exists"
    now = (obj["metadata"].get("labels") or {}).get(key, DEFAULT)
    pool = world.rng.choice([known for known in (*POOLS, DEFAULT) if known != now])
    world.note(f"{name} comes to {pool}")
    labels = {k: v for k, v in (obj["metadata"].get("labels") or {}).items() if k != key}
    metadata = {**obj["metadata"], "labels": labels | labels_for(pool, key)}
    world.server.ctx.put(kind, {**obj, "metadata": metadata})


#: The default times in nanoseconds, divided by three: more elections in a life.
SHORT: Final = {
    "leaseDuration": 5 * NS_PER_SECOND,
    "renewDeadline": 10 * NS_PER_SECOND // 3,
    "retryPeriod": 2 * NS_PER_SECOND // 3,
}


class Pools(Scenario):
    """One, two, three or five processes share four pools. Nodes and namespaces move between them;
    processes die, stop, or are cut off, some in one direction only; their clocks are fast or slow;
    what they had sent arrives a minute later. No node takes more than it has, no pods are together
    that must be apart, and no pool is without a holder for long (`pool_judge.py`). A pod of a
    namespace of another pool than its node's is not evicted beyond the budget of its namespace. In
    the end each pool is held, and every pod that fits on a node of its pool is bound.
    """

    replicas: ClassVar[tuple[int, ...]] = (1, 2, 3, 5)
    awaits_sweep = False
    config: ClassVar[Json] = {
        "leaderElection": SHORT,
        "poolLeases": True,
        "pools": [
            {"name": pool, "namespaceSelector": {"matchLabels": {TEAM: pool}}} for pool in POOLS
        ],
    }
    faults: ClassVar[tuple[Fault, ...]] = (
        StaleWatch(lag_s_max=3.0),
        BrokenWatches(every_s=40),
        SlowAnswers(seconds_max=0.2),
        LostAnswers(rate=0.02),
        LateWrites(rate=0.05, late_s_max=60.0),
        FrozenServer(every_s=120, lasting_s_max=8.0),
        LeaderPause(every_s=60, lasting_s_max=15.0),
        Partition(every_s=60, lasting_s_max=15.0),
        OneWay(every_s=60, lasting_s_max=15.0),
        Restarts(every_s=60),
        ClockRates(share=0.1),
    )
    rounds = 60

    @classmethod
    def config_of(cls, seed: int) -> Json:
        """Of three lives one has the default times, and in one a pool has a Lease of its own."""
        if seed % 3 == 0:
            return {**cls.config, "leaderElection": {}}
        if seed % 3 == 1:
            return cls.config
        first, *rest = cls.config["pools"]
        return {**cls.config, "leaderElection": {}, "pools": [{**first, "lease": SHORT}, *rest]}

    def setup(self, world: World) -> None:
        for name in NAMESPACE_NAMES:
            pool = world.rng.choice((*POOLS, DEFAULT))
            metadata = {"name": name, "labels": labels_for(pool, TEAM)}
            world.server.create("namespaces", {"metadata": metadata})
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "pod"}}}
            metadata = {"name": "budget", "namespace": name}
            world.server.create("poddisruptionbudgets", {"metadata": metadata, "spec": budget})
        keep_budgets(world)
        world.on_effect.append(check_victim)
        AddNodes(count=world.rng.randint(6, 9), cpu=(1, 2, 4)).do(world)
        for name in world.node_names():
            relabel(world, NODES, name, names.POOL_LABEL)
        self.furnish(world)
        world.run_for(10.0)  # until all is listed, and the pools are taken

    def furnish(self, world: World) -> None:
        """Create what else there is beside nodes and namespaces."""

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            dice = world.rng.random()
            if dice < 0.5:
                yield self.add(world)
            elif dice < 0.75:
                yield self.delete(world)
            elif dice < 0.9:
                yield MoveNodes()
            else:
                yield MoveNamespaces()

    def add(self, world: World) -> Step:
        """The pods of a round."""
        return AddPoolPods(count=world.rng.randint(1, 5))

    def delete(self, world: World) -> Step:
        return DeletePods(count=world.rng.randint(1, 8))

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002
        """The checker of all scenarios knows no pools; `check` does."""
        return False

    def is_simple(self, pod: Json) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the checker knows all rules of the pod."""
        return True

    def check(self, world: World) -> None:
        assert world.ledger.bound_count, "nothing was bound, so nothing was tried"
        for pool in world.pools:
            holders = [process.name for process in world.processes if process.holds(pool)]
            assert len(holders) == 1, f"{pool} is held by {holders}"
        counts = {process.name: 0 for process in world.processes}
        for process in world.processes:
            counts[process.name] = sum(map(process.holds, world.pools))
        assert max(counts.values()) <= min(counts.values()) + 1, f"pools by process: {counts}"
        namespaces = world.server.list("namespaces")
        pods = [pod for pod in world.pods() if not is_through(pod)]
        teams = {
            known["metadata"]["name"]: (known["metadata"].get("labels") or {}).get(TEAM, DEFAULT)
            for known in namespaces
        }
        end = EndState(world.nodes(), pods, namespaces)
        of_node = {name: pool_of_node(node) for name, node in end.nodes.items()}

        def decides(pool: str, pod: Json) -> bool:
            node = only_node(pod)
            return (of_node.get(node) if node else teams[namespace_of(pod)]) == pool

        for pool in world.pools:
            nodes = [name for name, known in of_node.items() if known == pool]
            waits = {
                pod["metadata"]["name"]
                for pod in world.waiting()
                if self.is_simple(pod)
                and (
                    only_node(pod) in nodes if only_node(pod) else teams[namespace_of(pod)] == pool
                )
            }
            could = waits.intersection(end.could_be_placed(nodes))
            assert not could, f"{sorted(could)} could be placed in {pool}"
        for process in (*world.processes, *world.ended):
            world.figures[f"{FAULTS}late bindings"] += process.wire.late_bindings
            world.figures[f"{FAULTS}fast or slow clocks"] += process.clock_rate != 1.0


def check_victim(process: Process, effect: Effect) -> None:
    """Of a pod on a node of another pool than its namespace's the server counts the budget."""
    world, pools = process.world, process.machine.context.pools
    if not isinstance(effect, DeletePod) or pools is None:
        return
    pod = process.parts.cluster.pods_seen.get(effect.pod.key)
    node = process.parts.cluster.node_of(pod.spec.node_name) if pod is not None else None
    if node is not None and pools.with_labels(node.labels) != pools.of_namespace(
        effect.pod.namespace
    ):
        world.ledger.complain(f"{effect.pod.key} of another pool's namespace is deleted")


def namespace_of(pod: Json) -> str:
    namespace: str = pod["metadata"]["namespace"]
    return namespace


def pool_of_node(node: Mapping[str, Any]) -> str:
    pool: str = node["metadata"]["labels"].get(names.POOL_LABEL, DEFAULT)
    return pool
