"""Plans of moves on small random clusters, against brute force.

    python -m asched_lab.measure.moves [--clusters 500] [--seed 0] [--verbose]

In each cluster some pods of controllers are placed at random by the rules of `sim/checker.py`, and
a pod or a small gang waits. Brute force tries every set of up to MOVES_MAX pods, every place of
each and every order; its rules are a second implementation. Compared are: whether a plan is found
where there is one, with the least number of moves, and whether each found plan keeps the rules in
every intermediate state.

Exit status: 0 if at least 95 % of the plans were found, 90 % of these with the fewest moves, and
none breaks a rule.
"""

# ruff: noqa: T201 - a command prints

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any, Final

from asched.batch.extensions import EXTENSIONS
from asched.batch.rebalance.movable import Movable
from asched.batch.rebalance.search import MovePlan, NoPlan, PlanSearch
from asched.core.cluster.facts import Seen, WallClock
from asched.core.config.args import RebalanceArgs
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.machine import Machine
from asched.core.framework.runner import run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET, REPLICA_SET
from asched.core.model.pod import Pod
from asched.core.plugins import IN_TREE_POINTS, in_tree
from asched.host.assemble import Parts, build_machine, build_runners
from asched_lab.sim.checker import EndState, requests_of

Json = dict[str, Any]

MOVES_MAX: Final = 3
NODES: Final = (3, 6)
PODS: Final = (6, 14)
NOW_S: Final = 1_700_000_000.0
LONG_AGO: Final = "2023-11-14T00:00:00Z"
OPEN, CLOSED = "open", "closed"
ARGS: Final = RebalanceArgs(namespaces=(OPEN,), max_moves_per_unit=MOVES_MAX)


@dataclass
class SmallCluster:
    """Manifests. `unit`: the pods that wait, all of which need a place."""

    nodes: list[Json]
    pods: list[Json] = field(default_factory=list)
    sets: list[Json] = field(default_factory=list)
    budgets: list[Json] = field(default_factory=list)
    unit: list[Json] = field(default_factory=list)

    @property
    def movable(self) -> list[Json]:
        """The pods that may move, by the rules of the page *Batch*."""
        barred = {b["spec"]["selector"]["matchLabels"]["app"] for b in self.spent_budgets}
        return [
            pod
            for pod in self.pods
            if pod["metadata"]["namespace"] == OPEN
            and pod["spec"]["priority"] <= self.unit[0]["spec"]["priority"]
            and pod["metadata"]["labels"]["app"] not in barred
        ]

    @property
    def spent_budgets(self) -> list[Json]:
        return [b for b in self.budgets if not b["status"]["disruptionsAllowed"]]


def drawn(seed: int) -> SmallCluster:
    """A random cluster in which the unit fits nowhere, although there is CPU for it in pieces."""
    rng = random.Random(seed)
    while True:
        cluster = _drawn(rng)
        free = EndState(cluster.nodes, cluster.pods).free.values()
        has_cpu = sum(amounts["cpu"] for amounts in free) >= sum(
            requests_of(pod)["cpu"] for pod in cluster.unit
        )
        if cluster.movable and has_cpu and not _assigned(cluster, ()):
            return cluster


def _drawn(rng: random.Random) -> SmallCluster:
    nodes = []
    for number in range(rng.randint(*NODES)):
        name, cpu = f"n{number}", rng.choice((4, 4, 8))
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": rng.choice("aab")}
        amounts = {"cpu": str(cpu), "memory": "16Gi", "pods": rng.choice(("4", "8"))}
        node: Json = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
            "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        if rng.random() < 0.1:
            node["spec"]["taints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
        nodes.append(node)
    cluster, wanted = SmallCluster(nodes), rng.randint(*PODS)
    number = 0
    while len(cluster.pods) < wanted and number < wanted:
        _add_controller(
            cluster, rng, f"app{number}", min(rng.randint(1, 3), wanted - len(cluster.pods))
        )
        number += 1
    like = rng.choice(cluster.sets)["metadata"]["name"] if cluster.sets else "app0"
    like = like if rng.random() < 0.3 else "unit"
    cpu = rng.choice((2, 3, 3, 4, 4))
    spec = _rules(rng, like)
    for index in range(rng.choice((1, 1, 2))):
        pod = _pod(f"unit-{index}", OPEN, like, cpu, 5, spec)
        cluster.unit.append(pod)
    return cluster


def _add_controller(cluster: SmallCluster, rng: random.Random, app: str, count: int) -> None:
    namespace, priority = rng.choice((OPEN, OPEN, OPEN, OPEN, CLOSED)), rng.choice((0, 0, 5, 9))
    cpu, spec = rng.choice((1, 1, 2, 2, 3)), _rules(rng, app)
    placed = []
    for index in range(count):
        pod = _pod(f"{app}-{index}", namespace, app, cpu, priority, spec)
        state = EndState(cluster.nodes, cluster.pods)
        fitting = [name for name in state.nodes if state.fits(name, pod)]
        if fitting:
            pod["spec"]["nodeName"] = rng.choice(fitting)
            cluster.pods.append(pod)
            placed.append(pod)
    if not placed:
        return
    metadata = {"name": app, "namespace": namespace, "uid": f"uid-{app}"}
    cluster.sets.append({"metadata": metadata, "spec": {"replicas": len(placed)}})
    if rng.random() < 0.2:
        selector = {"matchLabels": {"app": app}}
        cluster.budgets.append(
            {
                "metadata": {"name": app, "namespace": namespace, "uid": f"uid-budget-{app}"},
                "spec": {"selector": selector},
                "status": {"disruptionsAllowed": rng.choice((0, 1, 1, 2))},
            }
        )


def _rules(rng: random.Random, app: str) -> Json:
    """The rules of a controller's pods."""
    spec: Json = {}
    chosen = {"matchLabels": {"app": app}}
    roll = rng.random()
    key = rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
    term = {"labelSelector": chosen, "topologyKey": key}
    if roll < 0.2:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": rule}
    elif roll < 0.35:
        spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**spread, "labelSelector": chosen}]
    elif roll < 0.42:
        other = {"matchLabels": {"app": f"app{rng.randint(0, 3)}"}}
        rule = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{**term, "labelSelector": other}]
        }
        spec["affinity"] = {rng.choice(("podAffinity", "podAntiAffinity")): rule}
    elif roll < 0.52:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice("ab")}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    return spec


def _pod(name: str, namespace: str, app: str, cpu: int, priority: int, spec: Json) -> Json:
    requests = {"cpu": str(cpu), "memory": "1Gi"}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"uid-{app}"}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": app},
            "creationTimestamp": LONG_AGO,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "containers": [container],
            "schedulerName": "default-scheduler",
            "priority": priority,
            **spec,
        },
        "status": {"phase": "Running"},
    }


# --- brute force ---------------------------------------------------------------------------------

#: Name of a pod to its new node.
Places = dict[str, str]


def fewest_moves(cluster: SmallCluster) -> int | None:
    """The least number of moves of any plan; None without one of up to MOVES_MAX."""
    for count in range(1, MOVES_MAX + 1):
        for chosen in combinations(cluster.movable, count):
            if _assigned(cluster, chosen):
                return count
    return None


def _assigned(cluster: SmallCluster, chosen: Sequence[Json]) -> bool:
    """Whether the unit and these pods have places, with an order of the moves."""
    return any(keeps_rules(cluster, chosen, places) for places in _assignments(cluster, chosen))


def _assignments(cluster: SmallCluster, chosen: Sequence[Json]) -> Iterator[Places]:
    """All ways to place the unit and the pods that leave, by amounts and by node."""
    names = {pod["metadata"]["name"] for pod in chosen}
    staying = [pod for pod in cluster.pods if pod["metadata"]["name"] not in names]
    seekers = [*cluster.unit, *chosen]

    def place(at: int, state: EndState, places: Places) -> Iterator[Places]:
        if at == len(seekers):
            yield places
            return
        pod = seekers[at]
        name, home = pod["metadata"]["name"], pod["spec"].get("nodeName")
        bare = {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "nodeName"}}
        for node in state.nodes:
            if node != home and state.has_place(node, bare):
                further = EndState(cluster.nodes, state.placed)
                further.place(bare, node)
                yield from place(at + 1, further, {**places, name: node})

    yield from place(0, EndState(cluster.nodes, staying), {})


def keeps_rules(cluster: SmallCluster, chosen: Sequence[Json], places: Places) -> bool:
    """Whether every pod fits on its place in the end, and in some order of the moves when its own
    pod has just left.
    """
    old = {pod["metadata"]["name"]: pod for pod in chosen}
    staying = [pod for pod in cluster.pods if pod["metadata"]["name"] not in old]
    new = {
        pod["metadata"]["name"]: _on(pod, places[pod["metadata"]["name"]])
        for pod in (*cluster.unit, *chosen)
    }

    def fits(name: str, there: Sequence[str]) -> bool:
        """Whether a new pod fits, with these old pods still there."""
        others = [pod for other, pod in new.items() if other != name]
        state = EndState(cluster.nodes, [*staying, *others, *(old[other] for other in there)])
        pod = new[name]
        bare = {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "nodeName"}}
        return state.fits(places[name], bare)

    if not all(fits(name, ()) for name in new):
        return False
    return any(
        all(fits(name, order[at + 1 :]) for at, name in enumerate(order))
        for order in permutations(old)
    )


def _on(pod: Json, node: str) -> Json:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


# --- ours ----------------------------------------------------------------------------------------


def search(cluster: SmallCluster) -> MovePlan | NoPlan:
    """What the search finds."""
    machine = _machine()
    facts = [WallClock(NOW_S - 1000.0)]
    facts += [Seen(NODE, decode(NODE.record, node)) for node in cluster.nodes]  # type: ignore[misc]
    facts += [Seen(REPLICA_SET, decode(REPLICA_SET.record, made)) for made in cluster.sets]  # type: ignore[misc]
    budget = POD_DISRUPTION_BUDGET
    facts += [Seen(budget, decode(budget.record, made)) for made in cluster.budgets]  # type: ignore[misc]
    facts += [Seen(POD, decode(POD.record, pod)) for pod in cluster.pods]  # type: ignore[misc]
    machine.handle(facts, 1000.0)
    context = machine.context
    unit = [context.cluster.classes.info_of(decode(Pod, pod)) for pod in cluster.unit]
    rules = Movable(context, ARGS, unit[0].pod.priority)
    run_alone(rules.count())
    movable = run_alone(rules.find())
    search = PlanSearch(context, unit, rules, movable, MOVES_MAX)
    found: MovePlan | NoPlan = run_alone(search.find())
    return found


def _machine() -> Machine:
    parts, effective = Parts.fresh(), configuration({})
    factories = in_tree(DEFAULT_GATES)
    runners = build_runners(effective, parts, factories=factories, known=IN_TREE_POINTS)
    return build_machine(effective, parts, runners, monotonic_s=lambda: 0.0, extensions=EXTENSIONS)


def judged(seed: int) -> tuple[str, str]:
    """The verdict about one cluster, and a line about it."""
    cluster = drawn(seed)
    fewest, found = fewest_moves(cluster), search(cluster)
    if isinstance(found, NoPlan):
        return ("none" if fewest is None else "missed"), f"{fewest} moves: {found.why}"
    moves = {move.pod.pod.metadata.name: move.node for move in found.moves}
    places = {info.pod.metadata.name: node for info, node in found.places} | moves
    chosen = [pod for pod in cluster.pods if pod["metadata"]["name"] in moves]
    text = f"{fewest} moves: {moves}"
    is_right = all(pod in cluster.movable for pod in chosen)
    if not is_right or not keeps_rules(cluster, chosen, places):
        return "wrong", text
    if fewest is None:
        return "unknown to brute force", text
    return ("fewest" if len(moves) == fewest else "more"), text


def summary(verdicts: Counter[str]) -> tuple[float, float]:
    """The shares of plans that were found, and of these with the fewest moves."""
    found = verdicts["fewest"] + verdicts["more"]
    existing = found + verdicts["missed"]
    return (found / existing if existing else 1.0), (verdicts["fewest"] / found if found else 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.moves", description=__doc__)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    parser.add_argument("--verbose", action="store_true", help="a line for each cluster")
    options = parser.parse_args(arguments)
    verdicts = Counter[str]()
    for seed in range(options.seed, options.seed + options.clusters):
        verdict, text = judged(seed)
        verdicts[verdict] += 1
        if options.verbose or verdict in ("wrong", "missed", "unknown to brute force"):
            print(f"seed {seed}: {verdict}, {text}")
    found, fewest = summary(verdicts)
    existing = verdicts["fewest"] + verdicts["more"] + verdicts["missed"]
    print("| clusters | with a plan | found | with the fewest moves | against a rule |")
    print("|---|---|---|---|---|")
    print(f"| {options.clusters} | {existing} | {found:.1%} | {fewest:.1%} | {verdicts['wrong']} |")
    return int(found < 0.95 or fewest < 0.9 or verdicts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
