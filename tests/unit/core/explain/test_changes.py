"""Each suggested change makes its pod fit and no smaller one of its kind does: judged over API
objects by the checker, which knows nothing of the scheduler's code.
"""

import copy
import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.insight.explain.changes import changes
from asched.insight.explain.of_nodes import another
from asched.insight.explain.suggestions import SuggestedChange
from asched_lab.sim.checker import EndState, amount
from tests.playbook import Play

Json = dict[str, Any]

WORLDS: Final = 15
PODS_EACH: Final = 20
TAINTS: Final = tuple(
    {"key": key, "value": value, "effect": effect}
    for key, value, effect in (
        ("team", "a", "NoSchedule"),
        ("team", "b", "NoExecute"),
        ("spot", "", "NoSchedule"),
        ("soft", "", "PreferNoSchedule"),
    )
)
VALUES: Final = {"zone": ("a", "b", "c"), "disk": ("ssd", "hdd"), "cores": ("2", "8")}
PRIORITIES: Final = (-10, 0, 5, 100)


def a_node(rng: random.Random, name: str) -> Json:
    labels = {key: rng.choice(values) for key, values in VALUES.items() if rng.random() < 0.8}
    amounts = {"cpu": rng.choice(("2", "4", "3500m")), "memory": rng.choice(("4Gi", "8Gi"))}
    taints = [taint for taint in TAINTS if rng.random() < 0.2]
    labels["kubernetes.io/hostname"] = name
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": rng.random() < 0.15},
        "status": {"allocatable": {**amounts, "pods": str(rng.choice((3, 110)))}},
    }


def a_pod(rng: random.Random, name: str, node: str = "") -> Json:
    requests = {
        "cpu": rng.choice(("100m", "1", "1500m") if node else ("1", "2500m", "5")),
        "memory": rng.choice(("256Mi", "1Gi") if node else ("1Gi", "3Gi", "9Gi")),
    }
    containers = [{"name": "main", "image": "a", "resources": {"requests": requests}}]
    spec: Json = {"containers": containers, "schedulerName": "default-scheduler"}
    spec["priority"] = rng.choice(PRIORITIES)
    labels = {"app": rng.choice("xy")}
    if node:
        spec["nodeName"] = node
    else:
        spec |= wishes(rng, labels)
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {}}


def wishes(rng: random.Random, labels: Json) -> Json:
    """What a pod may ask of nodes and of others."""
    spec: Json = {}
    mine = {"labelSelector": {"matchLabels": labels}}
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd", "nvme"))}
    if rng.random() < 0.25:
        terms = [{"matchExpressions": [an_expression(rng)]} for _ in range(rng.randint(1, 2))]
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }
    if rng.random() < 0.2:
        apart = [{**mine, "topologyKey": rng.choice(("zone", "kubernetes.io/hostname"))}]
        affinity = spec.setdefault("affinity", {})
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": apart}
    if rng.random() < 0.45:
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**spread, **mine}]
    if rng.random() < 0.3:
        spec["tolerations"] = [{**rng.choice(TAINTS), "operator": "Equal"}]
    return spec


def an_expression(rng: random.Random) -> Json:
    return rng.choice(
        (
            {"key": "zone", "operator": "In", "values": ["b", "z"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd", "ssd"]},
            {"key": "gpu", "operator": "Exists"},
            {"key": "zone", "operator": "DoesNotExist"},
            {"key": "cores", "operator": "Gt", "values": ["8"]},
        )
    )


class World:
    """A random cluster, as objects and as a scheduler that has seen them."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.nodes = [a_node(rng, f"n{i}") for i in range(rng.randint(2, 7))]
        names = [node["metadata"]["name"] for node in self.nodes]
        self.placed = [a_pod(rng, f"p{i}", rng.choice(names)) for i in range(rng.randint(0, 16))]
        self.pending = [a_pod(rng, f"w{i}") for i in range(PODS_EACH)]
        self.play = Play()
        self.play.turn(*(Seen(NODE, decode(NODE.record, node)) for node in self.nodes))
        self.play.turn(*(Seen(POD, decode(POD.record, pod)) for pod in self.placed))

    def fits(self, pod: Json, nodes: list[Json] | None = None, on: str = "") -> bool:
        """Whether the pod fits some node, or one, by the checker."""
        state = EndState(self.nodes if nodes is None else nodes, self.placed)
        return any(state.fits(name, pod) for name in state.nodes if on in ("", name))

    def changes(self, pod: Json) -> list[SuggestedChange]:
        context = self.play.machine.context
        runner = context.runners["default-scheduler"]
        return changes(runner, context.nominator, decode(POD.record, pod))

    def node(self, name: str) -> Json:
        return next(node for node in self.nodes if node["metadata"]["name"] == name)

    # --- each kind: (fits with the change, smaller ones that fit, too) ---------------------------

    def toleration(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        def tolerating(more: Any) -> bool:
            changed = copy.deepcopy(pod)
            changed["spec"].setdefault("tolerations", []).extend(
                {**one, "operator": "Equal"} for one in more
            )
            return self.fits(changed)

        fewer = combinations(TAINTS, len(details["tolerations"]) - 1)
        return tolerating(details["tolerations"]), [few for few in fewer if tolerating(few)]

    def cordon(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        changed = copy.deepcopy(self.node(details["node"]))
        changed["spec"]["unschedulable"] = False
        others = [node for node in self.nodes if node["metadata"]["name"] != details["node"]]
        return self.fits(pod, [*others, changed], on=details["node"]), []

    def request(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        def asking(much: str) -> bool:
            changed = copy.deepcopy(pod)
            (container,) = changed["spec"]["containers"]
            container["resources"]["requests"][details["resource"]] = much
            return self.fits(changed)

        exact = amount(details["to"])
        more = f"{exact * 1000 + 1}m" if details["resource"] == "cpu" else str(exact + 1)
        return asking(details["to"]), [more] if asking(more) else []

    def maxSkew(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:  # noqa: N802
        def loosened(to: int) -> bool:
            changed = copy.deepcopy(pod)
            changed["spec"]["topologySpreadConstraints"][details["constraint"]]["maxSkew"] = to
            return self.fits(changed)

        return loosened(details["to"]), [n for n in range(1, details["to"]) if loosened(n)]

    def label(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        def relabelled(name: str, labels: Json) -> bool:
            changed = copy.deepcopy(self.node(name))
            for key, value in labels.items():
                changed["metadata"]["labels"].pop(key, None)
                if value is not None:
                    changed["metadata"]["labels"][key] = value
            others = [node for node in self.nodes if node["metadata"]["name"] != name]
            return self.fits(pod, [*others, changed], on=name)

        single = [
            {key: value}
            for key, values in {**VALUES, "gpu": ("true",)}.items()
            for value in (*values, "z", "nvme", "9", None)
        ]
        fewer = single if len(details["labels"]) == 2 else [{}]
        every = [node["metadata"]["name"] for node in self.nodes]
        smaller = [(n, few) for n in every for few in fewer if relabelled(n, few)]
        return relabelled(details["node"], details["labels"]), smaller

    def node_like(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        def helps(node: Json) -> bool:
            more = copy.deepcopy(node)
            record = another(decode(NODE.record, node), ())
            more["metadata"] |= {"name": record.name, "labels": dict(record.labels)}
            return self.fits(pod, [*self.nodes, more], on=record.name)

        chosen = self.node(details["like"])
        smaller = [node for node in self.nodes if size(node) < size(chosen)]
        return helps(chosen), [node for node in smaller if helps(node)]

    def eviction(self, pod: Json, details: Json) -> tuple[bool, list[Any]]:
        def without(name: str, priority: int) -> bool:
            stay = [
                one
                for one in self.placed
                if one["spec"]["nodeName"] != name or one["spec"]["priority"] > priority
            ]
            return EndState(self.nodes, stay).fits(name, pod)

        lower = [level for level in PRIORITIES if level < details["priority"]]
        every = [node["metadata"]["name"] for node in self.nodes]
        smaller = [(n, level) for n in every for level in lower if without(n, level)]
        return without(details["node"], details["priority"]), smaller


def size(node: Json) -> tuple[int, int]:
    offered = node["status"]["allocatable"]
    cpu = {"2": 2000, "3500m": 3500, "4": 4000}[offered["cpu"]]
    return cpu, int(offered["memory"].removesuffix("Gi"))


def judged(world: World, pod: Json) -> Iterator[str]:
    """The kinds of a pod's changes, each judged."""
    for change in world.changes(pod):
        judge = {"node": world.node_like}.get(change.kind) or getattr(world, change.kind)
        fits, smaller = judge(pod, change.details)
        assert fits, (change, pod)
        assert not smaller, (change, smaller, pod)
        yield change.kind


def test_each_change_of_a_few_hundred_pods_helps_and_none_smaller_does() -> None:
    kinds: Counter[str] = Counter()
    waiting = 0
    for seed in range(WORLDS):
        world = World(seed)
        for pod in world.pending:
            if world.fits(pod):
                assert world.changes(pod) == []
                continue
            waiting += 1
            kinds.update(judged(world, pod))
            assert not world.play.machine.context.cluster.nodes.row_of.keys() - {
                node["metadata"]["name"] for node in world.nodes
            }
    assert waiting >= 250
    assert kinds.keys() == {
        "toleration",
        "cordon",
        "request",
        "maxSkew",
        "label",
        "node",
        "eviction",
    }
    rare = ("maxSkew", "cordon")
    assert min(count for kind, count in kinds.items() if kind not in rare) > 5, kinds
