"""Missing resources and untolerated taints of a pod, as data."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.requests import PODS, written
from asched.core.model.taint import Taint, Tolerations, spelt
from asched.insight.explain.of_pod import hard_taints

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


def asked_of(info: PodInfo) -> dict[str, int]:
    """The pod's requests by resource, in milli-CPU or whole units, with one of `pods`."""
    asked = {name: amount for name, amount in info.cls.requests.items() if amount > 0}
    return {**asked, PODS: 1}


def free(cluster: Cluster, resource: str) -> I64:
    """int64[N]: the free amount of a resource; negative where more is requested."""
    nodes = cluster.nodes
    read, height = nodes.columns.read, nodes.height
    left: I64
    if resource == PODS:
        left = read("allowed_pods")[:height].astype(np.int64) - read("pod_count")[:height]
        return left
    at = nodes.find_resource(resource)
    if at is None:
        return np.zeros(height, dtype=np.int64)
    left = read("allocatable")[at, :height] - read("requested")[at, :height]
    return left


def missing_shares(cluster: Cluster, info: PodInfo) -> F64:
    """float64[N]: the sum over resources of the missing share of the pod's request."""
    total: F64 = np.zeros(cluster.nodes.height)
    for resource, amount in asked_of(info).items():
        total += np.clip(amount - free(cluster, resource), 0, amount) / amount
    return total


def missing_everywhere(cluster: Cluster, info: PodInfo) -> list[dict[str, Any]]:
    """The resources of which no node has enough, with the largest free amount of a node."""
    live = np.flatnonzero(cluster.nodes.columns.read("live")[: cluster.nodes.height])
    found = []
    for resource, amount in asked_of(info).items():
        left = free(cluster, resource)[live]
        if len(left) and int(left.max()) < amount:
            node = cluster.nodes.node_at[int(live[left.argmax()])]
            assert node is not None
            most = max(int(left.max()), 0)
            found.append(
                {
                    "resource": resource,
                    "asked": written(resource, amount),
                    "mostFree": written(resource, most),
                    "node": node.name,
                }
            )
    return found


def missing_on(cluster: Cluster, info: PodInfo, row: int) -> dict[str, dict[str, str]]:
    """The resources that one node has too little of: resource -> asked and free."""
    found = {}
    for resource, amount in asked_of(info).items():
        left = int(free(cluster, resource)[row])
        if left < amount:
            amounts = {"asked": written(resource, amount), "free": written(resource, max(left, 0))}
            found[resource] = amounts
    return found


def untolerated(node: Node, pod: Pod) -> list[Taint]:
    """The taints of a node that the pod does not tolerate, that of a cordon included."""
    tolerations = Tolerations(pod.spec.tolerations or ())
    return [taint for taint in hard_taints(node) if not tolerations.tolerate(taint)]


def taints_in_the_way(cluster: Cluster, info: PodInfo) -> list[dict[str, Any]]:
    """Taints that the pod does not tolerate, by key and effect, and how many nodes have one; most
    nodes first.
    """
    counts: Counter[tuple[str, str]] = Counter()
    values: dict[tuple[str, str], dict[Taint, None]] = {}
    tolerations = Tolerations(info.pod.spec.tolerations or ())
    for _, node in cluster.nodes.nodes():
        missing = [taint for taint in hard_taints(node) if not tolerations.tolerate(taint)]
        for taint in missing:
            values.setdefault((taint.key, taint.effect), {})[taint] = None
        counts.update({(taint.key, taint.effect) for taint in missing})
    return [
        {"taint": _of_all(list(values[kind])), "nodes": count}
        for kind, count in counts.most_common()
    ]


def _of_all(alike: list[Taint]) -> str:
    """Taints with one key and effect."""
    first = alike[0]
    if len(alike) == 1:
        return spelt(first)
    return f"{first.key}:{first.effect} with {len(alike)} values"
