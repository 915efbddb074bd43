"""Clusters and waiting pods of the benchmark's rows, as API objects.

Each crowd is deterministic. The shapes are those of scheduler_perf: small pods, nodes of 4 cores in
three zones, a few images.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = 3
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "bench-high"},
    "value": 1000,
}
TEAM = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "bench", "labels": {"team": "devops"}},
}


def node(index: int, zones: int = ZONES) -> JsonObject:
    """Four cores, 32 GiB, up to four images."""
    name = f"node-{index:06d}"
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    images = [
        {"names": [f"registry.example/app-{k}:1"], "sizeBytes": 50_000_000 * (k + 1)}
        for k in range(index % 5)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{index % zones}"}},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": images,
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    labels: dict[str, str] | None = None,
    image: str = "registry.k8s.io/pause:3.10",
    **spec: Any,
) -> JsonObject:
    """A pod of one container; `spec` adds to it.

    It has the token volume that the API server mounts in every pod, with a name of its own in each:
    a real server adds it, but admission of service accounts is switched off here.
    """
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    volume = {"name": f"kube-api-access-{name}", "projected": {"sources": [token]}}
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "serviceAccountName": "default",  # the token's account
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": image, "resources": {"requests": requests}}],
            "volumes": [volume],
            **spec,
        },
    }


def _term(key: str, labels: dict[str, str]) -> JsonObject:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def affinity(member: str, key: str, labels: dict[str, str], *, weight: int = 0) -> JsonObject:
    """PodAffinity or podAntiAffinity, required or, with a weight, preferred."""
    term = _term(key, labels)
    if weight:
        preferred = [{"weight": weight, "podAffinityTerm": term}]
        return {member: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {member: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str, labels: dict[str, str], skew: int, *, is_hard: bool) -> list[JsonObject]:
    """One topology spread constraint."""
    when = "DoNotSchedule" if is_hard else "ScheduleAnyway"
    return [{"maxSkew": skew, "whenUnsatisfiable": when, **_term(key, labels)}]


def _node_affinity() -> JsonObject:
    wanted = {"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}
    terms = [{"matchExpressions": [wanted]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


Maker = Callable[[int, int], JsonObject]


def plain(i: int, _nodes: int) -> JsonObject:
    return pod(f"plain-{i:06d}")


def affine(i: int, _nodes: int) -> JsonObject:
    labels = {"color": "blue"}
    return pod(f"affine-{i:06d}", labels=labels, affinity=affinity("podAffinity", ZONE, labels))


def apart(i: int, nodes: int) -> JsonObject:
    """Groups that each fill half of the nodes, one pod to a node."""
    labels = {"color": f"group-{i // max(1, nodes // 2)}"}
    rule = affinity("podAntiAffinity", HOSTNAME, labels)
    return pod(f"apart-{i:06d}", labels=labels, affinity=rule)


def preferring(i: int, _nodes: int) -> JsonObject:
    labels = {"color": "red"}
    rule = affinity("podAntiAffinity", HOSTNAME, labels, weight=100)
    return pod(f"preferring-{i:06d}", labels=labels, affinity=rule)


def spreading(i: int, _nodes: int) -> JsonObject:
    labels = {"app": "spread"}
    rule = spread(ZONE, labels, 5, is_hard=True)
    return pod(f"spreading-{i:06d}", labels=labels, topologySpreadConstraints=rule)


def softly_spreading(i: int, _nodes: int) -> JsonObject:
    labels = {"app": "soft"}
    rule = spread(HOSTNAME, labels, 1, is_hard=False)
    return pod(f"soft-{i:06d}", labels=labels, topologySpreadConstraints=rule)


def choosing(i: int, _nodes: int) -> JsonObject:
    return pod(f"choosing-{i:06d}", affinity=_node_affinity())


def different(i: int, _nodes: int) -> JsonObject:
    """All different: label and requests differ."""
    requests = {"cpu": f"{50 + i % 97}m", "memory": f"{64 + i % 89}Mi"}
    return pod(f"different-{i:06d}", labels={"app": f"app-{i}"}, **requests)


def mixed(i: int, _nodes: int) -> JsonObject:
    """Fifty apps of several sizes and images, with all kinds of constraints."""
    rng = random.Random(i)
    app = {"app": f"app-{rng.randrange(50)}"}
    more: JsonObject = {
        "labels": app,
        "cpu": rng.choice(["50m", "100m", "250m", "500m"]),
        "memory": rng.choice(["64Mi", "256Mi", "1Gi"]),
        "image": f"registry.example/app-{rng.randrange(5)}:1",
    }
    roll = rng.random()
    if roll < 0.2:
        more["topologySpreadConstraints"] = spread(ZONE, app, 3, is_hard=True)
    elif roll < 0.35:
        more["affinity"] = affinity("podAntiAffinity", HOSTNAME, app, weight=100)
    elif roll < 0.45:
        more["affinity"] = affinity("podAffinity", ZONE, app, weight=100)
    elif roll < 0.6:
        more["nodeSelector"] = {ZONE: f"zone-{rng.randrange(ZONES)}"}
    elif roll < 0.7:
        more["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return pod(f"mixed-{i:06d}", **more)


def drawn_to_teams(i: int, _nodes: int) -> JsonObject:
    """Near pods of the same colour in the zones of every namespace of a team."""
    labels = {"color": "blue"}
    rule = affinity("podAffinity", ZONE, labels)
    (term,) = rule["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["namespaceSelector"] = {"matchLabels": {"team": "devops"}}
    return pod(f"drawn-{i:06d}", labels=labels, affinity=rule)


def giant(i: int, _nodes: int) -> JsonObject:
    """Larger than every node."""
    return pod(f"giant-{i:06d}", cpu="100")


def low(i: int, nodes: int) -> JsonObject:
    """One of four that fill a node."""
    return pod(f"low-{i:06d}", cpu="900m", nodeName=f"node-{i % nodes:06d}")


def high(i: int, _nodes: int) -> JsonObject:
    """Needs the resources of three of the four."""
    return pod(f"high-{i:06d}", cpu="3", priorityClassName="bench-high", priority=1000)


def alike(i: int) -> JsonObject:
    """One of many that request a CPU."""
    return pod(f"job-{i:06d}", cpu="1", memory="1Mi")


def indexed(i: int) -> JsonObject:
    """The same, as the Job controller makes the pods of an Indexed Job."""
    index = {"batch.kubernetes.io/job-completion-index": str(i)}
    made = pod(f"job-{i:06d}", cpu="1", memory="1Mi", labels=index, hostname=f"job-{i}")
    made["metadata"]["annotations"] = index
    return made


def indexed_small(i: int) -> JsonObject:
    """The same, with requests of which a node has room for forty."""
    made = indexed(i)
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m", "memory": "500Mi"}
    return made


def stateful(i: int) -> JsonObject:
    """The same, as the StatefulSet controller makes its pods."""
    labels = {
        "statefulset.kubernetes.io/pod-name": f"set-{i}",
        "apps.kubernetes.io/pod-index": str(i),
    }
    return pod(f"set-{i}", cpu="1", memory="1Mi", labels=labels, hostname=f"set-{i}")


def sized(i: int) -> JsonObject:
    """Each requests another amount; no two fit into the resources of one."""
    return pod(f"job-{i:06d}", cpu=f"{900 + i}m", memory=f"{1 + i}Mi")


def pod_group(name: str, size: int) -> JsonObject:
    """A gang that starts with all its pods."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def member(gang: str, i: int) -> JsonObject:
    group = {"podGroupName": gang}
    return pod(f"{gang}-{i}", cpu="1", memory="1Mi", labels={"gang": gang}, schedulingGroup=group)


def running(i: int, nodes: int) -> JsonObject:
    """A small pod that has a node already."""
    labels = {"app": f"old-{i % 20}"}
    return pod(
        f"running-{i:06d}", cpu="10m", memory="64Mi", labels=labels,
        nodeName=f"node-{i % nodes:06d}", schedulerName="other",
    )  # fmt: skip


#: Rows of the first table: name -> maker of the waiting pods.
SHAPES: dict[str, Maker] = {
    "plain": plain,
    "affinity": affine,
    "anti-affinity": apart,
    "preferred": preferring,
    "spread": spreading,
    "soft-spread": softly_spreading,
    "node-affinity": choosing,
    "different": different,
    "mixed": mixed,
}


@dataclass(frozen=True)
class Crowd:
    """The objects of the cluster and the waiting pods. Makers, not lists, make the pods."""

    nodes: int
    waiting: tuple[tuple[Maker, int], ...]
    placed: tuple[Maker, int] | None = None
    also: tuple[JsonObject, ...] = field(default=())
    #: other objects of the namespace of the pods
    own: tuple[JsonObject, ...] = field(default=())
    #: priority class of the waiting pods; "": each has its own
    namespace: str = "bench"

    def waiting_pods(self) -> Iterator[JsonObject]:
        for maker, count in self.waiting:
            for index in range(count):
                yield maker(index, self.nodes)

    def placed_pods(self) -> Iterator[JsonObject]:
        if self.placed is not None:
            maker, count = self.placed
            for index in range(count):
                yield maker(index, self.nodes)

    @property
    def waiting_count(self) -> int:
        return sum(count for _, count in self.waiting)
