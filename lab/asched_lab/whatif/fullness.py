"""Fullness of a simulated cluster, of its nodes, and its fragmentation.

Fullness is requests divided by allocatable resources; nodes that take no pods are left out of the
sums. Fragmentation is measured with a typical pod, whose requests are the means of all placed pods:
how many more of it the nodes would take as they are, and how many if all their free resources were
in one piece. `0.25` says that a quarter of the pods that fit by the sum find no node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.model.requests import CPU, MEMORY, PODS

#: Resource -> (offered, asked for).
Amounts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Room:
    """One resource over all nodes that take pods, in milli-CPU, bytes or whole units: allocatable
    and requested before the changes, and after the simulation.
    """

    resource: str
    offered_before: int
    asked_before: int
    offered: int
    asked: int

    @property
    def before(self) -> float:
        """The requested share."""
        return self.asked_before / self.offered_before if self.offered_before else 0.0

    @property
    def after(self) -> float:
        return self.asked / self.offered if self.offered else 0.0


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """One node: the requested share of each resource at the end, its pods, and the new pods among
    them.
    """

    node: str
    shares: dict[str, float]
    pods: int
    new: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Typical:
    """The mean pod: its requests, how many more fit node by node and by the sum."""

    cpu: int
    memory: int
    fits: int
    fits_in_one_piece: int

    @property
    def fragmentation(self) -> float:
        """0 to 1; 0 where no more pods fit."""
        whole = self.fits_in_one_piece
        return 0.0 if not whole else 1.0 - self.fits / whole


def amounts(cluster: Cluster) -> Amounts:
    """Sums over the nodes that take pods."""
    read, height = cluster.nodes.columns.read, cluster.nodes.height
    is_open = read("live")[:height] & ~read("unschedulable")[:height]

    def total(column: npt.NDArray[np.int64]) -> int:
        return int(column[:height][is_open].sum())

    found = {
        name: (total(read("allocatable")[at]), total(read("requested")[at]))
        for name, at in _axis(cluster)
    }
    return {**found, PODS: (total(read("allowed_pods")), total(read("pod_count")))}


def _axis(cluster: Cluster) -> list[tuple[str, int]]:
    """Resources with their places on axis R."""
    nodes = cluster.nodes
    named = [str(name) for name in nodes.resources.values if name]
    found = [(name, nodes.find_resource(name)) for name in named]
    return [(name, at) for name, at in found if at is not None]


def rooms(cluster: Cluster, before: Amounts) -> list[Room]:
    after = amounts(cluster)
    nothing = (0, 0)
    found = [
        Room(name, *before.get(name, nothing), *after.get(name, nothing))
        for name in sorted(after.keys() | before.keys(), key=_order)
    ]
    return [room for room in found if room.offered or room.offered_before]


def _order(name: str) -> tuple[int, str]:
    first = (CPU, MEMORY, PODS)
    return (first.index(name) if name in first else len(first)), name


def nodes(cluster: Cluster, new: Mapping[str, int]) -> list[NodeRoom]:
    """Each node by name; `new`: number of pods that the simulation placed there."""
    table = cluster.nodes
    read, axis = table.columns.read, _axis(cluster)
    found = []
    for row, node in table.nodes():
        shares = {}
        for name, at in axis:
            offered = int(read("allocatable")[at, row])
            if offered:
                shares[name] = round(int(read("requested")[at, row]) / offered, 4)
        allowed, count = int(read("allowed_pods")[row]), int(read("pod_count")[row])
        if allowed:
            shares[PODS] = round(count / allowed, 4)
        ordered = {name: shares[name] for name in sorted(shares, key=_order)}
        is_open = not node.spec.unschedulable
        found.append(NodeRoom(node.name, ordered, count, new.get(node.name, 0), is_open))
    return sorted(found, key=lambda node: node.node)


def typical(cluster: Cluster) -> Typical | None:
    placed = [info for info in cluster.placed.values() if info.row >= 0]
    table = cluster.nodes
    if not placed or not table.count:
        return None
    means = [
        max(round(sum(info.cls.accounted.get(name, 0) for info in placed) / len(placed)), 1)
        for name in (CPU, MEMORY)
    ]
    height, read = table.height, table.columns.read
    takes = read("live")[:height] & ~read("unschedulable")[:height]
    free = [
        np.maximum(read("allocatable")[at, :height] - read("requested")[at, :height], 0)[takes]
        for at in (0, 1)
    ]
    slots = np.maximum(read("allowed_pods")[:height] - read("pod_count")[:height], 0)[takes]
    fits = np.minimum(np.minimum(free[0] // means[0], free[1] // means[1]), slots)
    whole = min(int(free[0].sum()) // means[0], int(free[1].sum()) // means[1], int(slots.sum()))
    return Typical(means[0], means[1], int(fits.sum()), whole)
