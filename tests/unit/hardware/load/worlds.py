"""Random clusters with measurements, as JSON for the twins and as a Cluster for the plugins."""

import random
from dataclasses import dataclass, field
from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Listed, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.timestamp import rfc3339
from asched.hardware.load.node_metrics import NODE_METRICS, NodeMetrics
from asched.kube.polling import ListedObjects

Json = dict[str, Any]
NOW_S = 1_800_000_000.0


def a_node(name: str, cpu: int = 4000, memory: int = 16 << 30, reserved: int = 100) -> Json:
    """CPU in thousandths."""
    return {
        "metadata": {"name": name, "uid": f"node-{name}"},
        "status": {
            "capacity": {"cpu": f"{cpu}m"},
            "allocatable": {"cpu": f"{cpu - reserved}m", "memory": str(memory), "pods": "110"},
        },
    }


def a_pod(name: str, on: str = "", since_s: float = 0.0, **resources: Json) -> Json:
    """`resources` as `requests={...}, limits={...}` of one container."""
    status: Json = {}
    if on:
        told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(since_s)}
        status = {"conditions": [told]}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"pod-{name}"},
        "spec": {
            "containers": [{"name": "c", "image": "app", "resources": resources}],
            **({"nodeName": on} if on else {}),
        },
        "status": status,
    }


@dataclass
class World:
    """Nodes, placed pods by node, and the samples of each node, newest first."""

    cluster: Cluster = field(default_factory=Cluster)
    nodes: dict[str, Json] = field(default_factory=dict)
    placed: dict[str, list[Json]] = field(default_factory=dict)
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    end_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._past = ListedObjects()
        self.at(NOW_S)

    def at(self, now_s: float) -> None:
        self.cluster.begin_turn(now_s, is_quiet=True)

    def add(self, *objects: Json) -> None:
        for obj in objects:
            if "spec" not in obj:
                self.nodes[obj["metadata"]["name"]] = obj
                self.cluster.apply(Seen(NODE, decode(Node, obj)))
                continue
            self.placed.setdefault(obj["spec"]["nodeName"], []).append(obj)
            self.cluster.apply(Seen(POD, decode(Pod, obj)))

    def measure(self, told: dict[str, tuple[str, str]], end_s: float) -> None:
        """One answer of the metrics API: node to (cpu, memory)."""
        at = rfc3339(end_s)
        usage = {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in told.items()}
        self.tell(
            *(
                {"metadata": {"name": name}, "timestamp": at, "usage": used}
                for name, used in usage.items()
            )
        )

    def tell(self, *metrics: Json) -> None:
        """One answer of the metrics API."""
        listed = [decode(NodeMetrics, one) for one in metrics]
        self.cluster.apply(Listed(NODE_METRICS, self._past.with_it(listed)))

    def pending(self, pod: Json) -> PodInfo:
        decoded = decode(Pod, pod)
        return PodInfo(decoded, self.cluster.classes.class_of(decoded))


def random_world(rng: random.Random, nodes: int) -> World:
    """Some nodes are not measured, some lately again, some pods placed just now."""
    world = World()
    for number in range(nodes):
        cpu, memory = rng.choice((2000, 4000, 64_000)), rng.randrange(2 << 30, 64 << 30)
        world.add(a_node(f"n{number}", cpu, memory, reserved=rng.choice((0, 250))))
        for at in range(rng.randrange(4)):
            since_s = NOW_S - rng.choice((0, 20, 59, 60, 61, 90, 500))
            world.add(random_pod(rng, f"p{number}-{at}", on=f"n{number}", since_s=since_s))
    for poll in range(rng.randrange(1, 6)):
        end_s, told = NOW_S - 100 + 15 * poll, {}
        for name, node in world.nodes.items():
            if rng.random() < 0.1:
                continue
            share = rng.random() * 1.1
            cpu = round(share * int(node["status"]["capacity"]["cpu"][:-1]) * 1_000_000)
            memory = round(rng.random() * int(node["status"]["allocatable"]["memory"]))
            told[name] = (f"{cpu}n", f"{memory // 1024}Ki")
            sample = (cpu / 1e6, float(memory // 1024 * 1024))
            world.samples.setdefault(name, []).insert(0, sample)
            world.end_s[name] = end_s
        world.measure(told, end_s)
    return world


def random_pod(rng: random.Random, name: str, on: str = "", since_s: float = 0.0) -> Json:
    resources: Json = {}
    for kind in ("requests", "limits"):
        amounts = {}
        if rng.random() < 0.7:
            amounts["cpu"] = f"{rng.randrange(1, 3000)}m"
        if rng.random() < 0.7:
            amounts["memory"] = f"{rng.randrange(1, 4000)}Mi"
        resources[kind] = amounts
    pod = a_pod(name, on, since_s, **resources)
    if rng.random() < 0.2:
        init = {"name": "i", "image": "app", "resources": {"requests": {"cpu": "2"}}}
        pod["spec"]["initContainers"] = [init]
    if rng.random() < 0.2:
        pod["spec"]["overhead"] = {"cpu": "120m", "memory": "64Mi"}
    return pod
