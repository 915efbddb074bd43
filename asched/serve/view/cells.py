"""A cell per node: its usage and scarcest resource; and one node with all details.

    share    usage of the scarcest resource in percent of the allocatable amount; more than 100 if
             pods use more than the node offers now
    scarce   that resource, an index into `resources`
    flags    1 cordoned, 2 has other taints that keep pods off

Bounds  NODES_MAX cells, RESOURCES_MAX resources (by age of their first node), PODS_MAX pods of one
        node, with the total. Linear in nodes times resources, in slices.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import NodeTable
from asched.core.model.requests import PODS, written
from asched.core.model.taint import spelt
from asched.serve.view.slices import in_slices

NODES_MAX: Final = 20_000
RESOURCES_MAX: Final = 64
PODS_MAX: Final = 500
#: Resources per slice: a millisecond at 5,000 nodes.
RESOURCES_A_SLICE: Final = 16
SHARE_MAX: Final = 999
CORDONED: Final = 1
TAINTED: Final = 2

I64 = npt.NDArray[np.int64]


def amounts(nodes: NodeTable, resource: str, height: int) -> tuple[I64, I64]:
    """(offered, held) int64[height]; rows of deleted nodes offer nothing."""
    offered, held = np.zeros((2, height), dtype=np.int64)
    read, now = nodes.columns.read, min(height, nodes.height)
    if resource == PODS:
        offered[:now] = read("allowed_pods")[:now]
        held[:now] = read("pod_count")[:now]
    elif (at := nodes.find_resource(resource)) is not None:
        offered[:now] = read("allocatable")[at, :now]
        held[:now] = read("requested")[at, :now]
    return offered, held


def percent(offered: I64, held: I64) -> I64:
    """int64[N] in 0..SHARE_MAX, rounded down; 0 where nothing is offered."""
    shares = np.floor(held / np.maximum(offered, 1) * 100)
    found: I64 = np.where(offered > 0, np.clip(shares, 0, SHARE_MAX), 0).astype(np.int64)
    return found


def resources(nodes: NodeTable) -> list[str]:
    """The resources of nodes, pods first."""
    offered = [name for name in nodes.resources.values[1:] if name]
    return [PODS, *offered][:RESOURCES_MAX]


async def cells(cluster: Cluster) -> dict[str, Any]:
    """All nodes in row order; the names belong to `generation`."""
    nodes = cluster.nodes
    height = nodes.height
    fullest, scarce = np.full(height, -1, dtype=np.int64), np.zeros(height, dtype=np.int64)
    names = resources(nodes)
    async for part in in_slices(range(len(names)), RESOURCES_A_SLICE):
        for at in part:
            share = percent(*amounts(nodes, names[at], height))
            is_more = share > fullest
            fullest[is_more], scarce[is_more] = share[is_more], at
    now = min(height, nodes.height)
    read = nodes.columns.read
    live = np.flatnonzero(read("live")[:now])[:NODES_MAX]
    hard = np.array([any(taint.is_hard for taint in taints) for taints in nodes.taint_sets.values])
    flags = read("unschedulable")[live] * CORDONED + hard[read("taint_set")[live]] * TAINTED
    return {
        "generation": nodes.labels_moved,
        "count": nodes.count,
        "names": [node.name if (node := nodes.node_at[row]) else "" for row in live.tolist()],
        "resources": names,
        "share": fullest[live].tolist(),
        "scarce": scarce[live].tolist(),
        "flags": flags.tolist(),
    }


def one_node(cluster: Cluster, name: str) -> Mapping[str, Any] | None:
    """A node with its resources and pods; None if it does not exist."""
    nodes = cluster.nodes
    row, node = nodes.row_of.get(name), cluster.node_of(name)
    if row is None or node is None:
        return None
    read, shown = nodes.columns.read, []
    for resource in resources(nodes):
        if resource == PODS:
            offered, held = read("allowed_pods")[row], read("pod_count")[row]
        else:
            at = nodes.find_resource(resource)
            offered, held = read("allocatable")[at, row], read("requested")[at, row]
        if offered or held:
            shown.append(
                {
                    "resource": resource,
                    "offered": written(resource, int(offered)),
                    "held": written(resource, int(held)),
                    "share": int(percent(np.array([offered]), np.array([held]))[0]),
                }
            )
    pods = list(cluster.pods_on(row).values())
    return {
        "node": name,
        "cordoned": node.spec.unschedulable,
        "taints": [spelt(taint) for taint in node.spec.taints or ()],
        "resources": sorted(shown, key=lambda entry: -int(entry["share"])),
        "podCount": len(pods),
        "pods": [
            {"pod": info.pod.key, "priority": info.pod.priority, "assumed": info.assumed}
            for info in pods[:PODS_MAX]
        ],
    }
