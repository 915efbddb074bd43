"""Instances: a cluster, a gang, and whether the gang can be placed. The format stands in README.md.

`small` draws those that brute force can decide, `planted` large ones around a hidden placement.
"""

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gangs import claims

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass
class Instance:
    """`expected`: "feasible", "infeasible", or "" if nobody knows."""

    name: str
    nodes: list[Json]
    pods: list[Json]
    group: Json
    expected: str = ""
    namespaces: list[Json] = field(default_factory=list)
    objects: list[Json] = field(default_factory=list)

    @property
    def gang(self) -> list[Json]:
        name = self.group["metadata"]["name"]
        named = [p for p in self.pods if not p["spec"].get("nodeName")]
        return [
            p for p in named if (p["spec"].get("schedulingGroup") or {}).get("podGroupName") == name
        ]

    @property
    def others(self) -> list[Json]:
        return [p for p in self.pods if p["spec"].get("nodeName")]

    @property
    def needed(self) -> int:
        """How many of the waiting pods must get places."""
        group = self.group["metadata"]["name"]
        there = sum(
            (p["spec"].get("schedulingGroup") or {}).get("podGroupName") == group
            for p in self.others
        )
        return int(self.group["spec"]["schedulingPolicy"]["gang"]["minCount"]) - there


def read(path: Path) -> Iterator[Instance]:
    """One instance a line, or one in the whole file. Raises OSError, ValueError, KeyError."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    try:
        whole = json.loads(text)
        listed = whole if isinstance(whole, list) else [whole]
    except json.JSONDecodeError:
        listed = [json.loads(line) for line in text.splitlines() if line.strip()]
    for number, one in enumerate(listed):
        yield Instance(
            name=one.get("name") or f"{path.name}:{number}",
            nodes=one["nodes"],
            pods=one["pods"],
            group=one["group"],
            expected=one.get("expected", ""),
            namespaces=one.get("namespaces", []),
            objects=one.get("objects", []),
        )


def a_node(name: str, allocatable: dict[str, str], **labels: str) -> Json:
    named = {key.replace("_", "/", 1): value for key, value in labels.items()}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOST: name, **named}},
        "spec": {},
        "status": {"allocatable": allocatable},
    }


def a_pod(name: str, requests: dict[str, str], labels: dict[str, str], **spec: Any) -> Json:
    container: Json = {"name": "main", "resources": {"requests": requests}}
    ports = spec.pop("ports", ())
    if ports:
        container["ports"] = [{"containerPort": p, "hostPort": p, "protocol": "TCP"} for p in ports]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def a_group(min_count: int) -> Json:
    return {
        "metadata": {"name": "gang", "namespace": "default", "uid": "uid-gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


# --- small ----------------------------------------------------------------------------------------


def small(seed: int) -> Instance:
    """At most 12 nodes and 8 pods, most of them fewer, with every kind of rule."""
    rng = random.Random(seed)
    is_large = rng.random() < 0.02
    count = rng.randint(5, 12) if is_large else rng.randint(1, 5)
    nodes = [_small_node(rng, f"n{i}") for i in range(count)]
    others = []
    for i in range(rng.choice((0, 0, 1, 2))):
        pod = _small_pod(rng, f"old{i}", {"app": rng.choice("abc")})
        others.append(
            {**pod, "spec": {**pod["spec"], "nodeName": rng.choice(nodes)["metadata"]["name"]}}
        )
    kinds = rng.randint(1, 3)
    size = rng.randint(4, 8) if is_large else rng.randint(2, 5)
    rules = [_small_rules(rng, kinds) for _ in range(kinds)]
    gang = []
    for i in range(size):
        k = rng.randrange(kinds)
        pod = _small_pod(random.Random(seed * 31 + k), f"p{i}", {"app": "abc"[k]})
        pod["spec"].update(rules[k])
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
        gang.append(pod)
    needed = size if rng.random() < 0.7 else rng.randint(1, size)
    objects = claims.draw(rng, nodes, others, gang)
    whole = [*others, *gang]
    return Instance(f"small-{seed}", nodes, whole, a_group(needed), objects=objects)


def _small_node(rng: random.Random, name: str) -> Json:
    allocatable = {
        "cpu": str(rng.randint(1, 4)),
        "memory": f"{rng.randint(1, 6)}Gi",
        "pods": str(rng.choice((1, 2, 3, 10, 10))),
    }
    node = a_node(name, allocatable)
    if rng.random() < 0.95:
        node["metadata"]["labels"][ZONE] = rng.choice("xxyyz")
    if rng.random() < 0.1:
        node["spec"]["taints"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    if rng.random() < 0.1:
        node["spec"]["unschedulable"] = True
    return node


def _small_pod(rng: random.Random, name: str, labels: dict[str, str]) -> Json:
    requests = {
        "cpu": rng.choice(("500m", "1", "1500m", "2")),
        "memory": rng.choice(("512Mi", "1Gi")),
    }
    more: Json = {}
    if rng.random() < 0.15:
        more["ports"] = [rng.choice((80, 81))]
    if rng.random() < 0.15:
        more["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if rng.random() < 0.1:
        more["nodeSelector"] = {ZONE: rng.choice("xyz")}
    return a_pod(name, requests, labels, **more)


def _small_rules(rng: random.Random, kinds: int) -> Json:
    def term() -> Json:
        return {
            "topologyKey": rng.choice((ZONE, ZONE, HOST)),
            "labelSelector": {"matchLabels": {"app": rng.choice("aaabbc"[: 2 * kinds])}},
        }

    rules: Json = {}
    affinity: Json = {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if rng.random() < 0.3:
        affinity["podAffinity"] = {required: [term() for _ in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.3:
        affinity["podAntiAffinity"] = {required: [term()]}
    if affinity:
        rules["affinity"] = affinity
    if rng.random() < 0.3:
        rules["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice((1, 1, 2)),
                "whenUnsatisfiable": "DoNotSchedule",
                **term(),
                **({"minDomains": rng.randint(1, 3)} if rng.random() < 0.3 else {}),
            }
        ]
    return rules
