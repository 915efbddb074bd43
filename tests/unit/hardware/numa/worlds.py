"""Random nodes with NUMA zones and pods, as JSON for the twins and as a Cluster for the plugin."""

import random
from dataclasses import dataclass, field
from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY, NodeResourceTopology

Json = dict[str, Any]
GPU, DISK = "example.com/gpu", "example.com/disk"


def a_node(name: str, **resources: str) -> Json:
    offered = {"cpu": "64", "memory": "256Gi", "pods": "110", **resources}
    return {"metadata": {"name": name, "uid": f"node-{name}"}, "status": {"allocatable": offered}}


def a_zone(number: int, costs: Json | None = None, **resources: str) -> Json:
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": [{"name": f"node-{n}", "value": v} for n, v in (costs or {}).items()],
        "resources": [{"name": name, "available": amount} for name, amount in resources.items()],
    }


def a_topology(node: str, *zones: Json, **attributes: str) -> Json:
    """Attributes by their last word: `policy`, `scope`, `zones_max`, `fingerprint`, `method`."""
    spelled = {
        "policy": "topologyManagerPolicy",
        "scope": "topologyManagerScope",
        "zones_max": "topologyManagerMaxNUMANodes",
        "fingerprint": "nodeTopologyPodsFingerprint",
        "method": "nodeTopologyPodsFingerprintMethod",
    }
    told = {"policy": "single-numa-node", **attributes}
    listed = [{"name": spelled[name], "value": value} for name, value in told.items()]
    return {"metadata": {"name": node}, "attributes": listed, "zones": list(zones)}


def a_pod(name: str, *containers: Json, inits: tuple[Json, ...] = (), on: str = "") -> Json:
    """Containers by their requests; `limits` equal them, unless the request has `_burst`."""

    def made(at: int, asked: Json) -> Json:
        plain = {key: value for key, value in asked.items() if key != "_burst"}
        resources = {"requests": plain} | ({} if "_burst" in asked else {"limits": plain})
        return {"name": f"c{at}", "image": "app", "resources": resources}

    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"pod-{name}"},
        "spec": {
            "schedulerName": "asched",
            "containers": [made(at, one) for at, one in enumerate(containers)],
            "initContainers": [made(at, one) for at, one in enumerate(inits)],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


@dataclass
class World:
    cluster: Cluster = field(default_factory=Cluster)
    nodes: dict[str, Json] = field(default_factory=dict)
    topologies: dict[str, Json] = field(default_factory=dict)

    def add(self, node: Json) -> None:
        self.nodes[node["metadata"]["name"]] = node
        self.cluster.apply(Seen(NODE, decode(Node, node)))

    def tell(self, topology: Json) -> None:
        self.topologies[topology["metadata"]["name"]] = topology
        told = decode(NodeResourceTopology, topology)
        self.cluster.apply(Seen(NODE_RESOURCE_TOPOLOGY, told))

    def see(self, pod: Json) -> None:
        self.cluster.apply(Seen(POD, decode(Pod, pod)))

    def pending(self, pod: Json) -> PodInfo:
        decoded = decode(Pod, pod)
        return PodInfo(decoded, self.cluster.classes.class_of(decoded))


def random_topology(rng: random.Random, node: str) -> Json:
    zones = []
    numbers = range(rng.randrange(1, 5))
    for number in numbers:
        held = {"cpu": f"{rng.randrange(0, 24_000, 500)}m", "memory": f"{rng.randrange(0, 64)}Gi"}
        if rng.random() < 0.6:
            held[GPU] = str(rng.randrange(0, 5))
        if rng.random() < 0.2:
            held["hugepages-2Mi"] = f"{rng.randrange(0, 64) * 2}Mi"
        if rng.random() < 0.05:
            del held["memory"]
        costs = {other: 10 if other == number else rng.choice((11, 20, 31)) for other in numbers}
        if rng.random() < 0.1:
            costs.popitem()
        zones.append(a_zone(number, costs, **held))
    if rng.random() < 0.2:
        zones.append({"name": "socket-0", "type": "Socket", "costs": [], "resources": []})
    return a_topology(
        node,
        *zones,
        policy=rng.choice(("single-numa-node",) * 4 + ("restricted",)),
        scope=rng.choice(("container", "pod")),
        zones_max=rng.choice(("8", "4", "2000"))[:1],
    )


def random_request(rng: random.Random) -> Json:
    asked = {"cpu": f"{rng.randrange(500, 16_000, 250)}m", "memory": f"{rng.randrange(1, 40)}Gi"}
    if rng.random() < 0.3:
        asked[GPU] = str(rng.randrange(0, 4))
    if rng.random() < 0.1:
        asked[DISK] = "1"
    if rng.random() < 0.1:
        asked["hugepages-2Mi"] = f"{rng.randrange(1, 32) * 2}Mi"
    if rng.random() < 0.1:
        asked["ephemeral-storage"] = "1Gi"
    return asked


def random_pod(rng: random.Random, name: str) -> Json:
    containers = [random_request(rng) for _ in range(rng.randrange(1, 4))]
    inits = tuple(random_request(rng) for _ in range(rng.randrange(3)))
    if rng.random() < 0.3:
        containers[0]["_burst"] = True
    if rng.random() < 0.1:
        containers = [{GPU: "1", "_burst": True} if rng.random() < 0.5 else {}]
        inits = ()
    return a_pod(name, *containers, inits=inits)
