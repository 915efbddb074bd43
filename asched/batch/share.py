"""Limit the share of the cluster that is held for or promised to one namespace: a percentage of
each resource, and of the nodes (maxNamespacePercentage). A ResourceQuota does not count such room,
which has no pod.

Nodes count, however little is held there: a place of 1m keeps pods off that need the whole node,
and keeps the node from being removed (keepNodes).
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from asched.batch.backfill.reservations import Reservations
from asched.batch.provisioning.book import Bookings, times
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, vector
from asched.core.config.args import PERCENT_MAX, CheckAndHoldArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.model.arrays import Mask
from asched.core.model.requests import PODS, written

BEYOND_SHARE: Final = (
    "; no start is promised: promises to its namespace may reserve {} % of the cluster"
    " (maxNamespacePercentage)"
)


def why_beyond_share(
    cluster: Cluster,
    namespace: str,
    by_set: Iterable[tuple[PodInfo, int]],
    args: CheckAndHoldArgs,
) -> str:
    """Why a namespace may not hold places for these pods as well; empty if it may."""
    requested, percentage = Counter[str](), args.max_namespace_percentage
    for like, count in by_set:
        requested.update(times(like, count))
    held = cluster.singleton(Bookings).held_by(namespace)
    found = _beyond(cluster, requested, held, percentage)
    if found is None:
        return ""
    name, amount, most = found
    return (
        f"namespace {namespace} would hold {written(name, amount)} {name}, and may"
        f" hold {written(name, most)}: {percentage} % of the cluster (maxNamespacePercentage)"
    )


class NodeShare:
    """The nodes on which a namespace holds places, and how many there may be."""

    def __init__(self, cluster: Cluster, namespace: str, args: CheckAndHoldArgs) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._percentage = args.max_namespace_percentage
        self._most, held = nodes_max(cluster, self._percentage), set[str]()
        if self._percentage < PERCENT_MAX:
            held = cluster.singleton(Bookings).nodes_of(namespace)
        self._known = {name for name in held if name in cluster.nodes.row_of}

    def why_beyond(self, nodes: Iterable[str]) -> str:
        """Why the namespace may not hold places on these nodes as well; empty if it may."""
        count = len(self._known.union(nodes))
        if count <= self._most:
            return ""
        return (
            f"namespace {self._namespace} would hold places on {count} nodes, and may on"
            f" {self._most}: {self._percentage} % of the cluster (maxNamespacePercentage)"
        )

    def rows(self, infos: Sequence[PodInfo], nodes: Iterable[str]) -> Mask:
        """bool[N]: as many rows as it may have: its own, then those of `nodes` that take most of
        these pods by amounts.
        """
        cluster = self._cluster
        row_of, counts = cluster.nodes.row_of, Counter(info.cls.number for info in infos)
        needs = [
            (vector(cluster.nodes, info.cls.accounted, 1), counts[number])
            for number, info in {info.cls.number: info for info in infos}.items()
        ]

        def taken_part(name: str) -> float:
            free = free_amounts(cluster.nodes, row_of[name])
            slots = [(count, int((free[n > 0] // n[n > 0]).min())) for n, count in needs]
            return sum(min(max(taken, 0) / count, 1.0) for count, taken in slots)

        others = sorted(set(nodes) - self._known, key=lambda name: (-taken_part(name), name))
        found: Mask = np.zeros(cluster.nodes.height, dtype=np.bool_)
        names = [*self._known, *others[: max(self._most - len(self._known), 0)]]
        found[[row_of[name] for name in names if name in row_of]] = True
        return found


def nodes_max(cluster: Cluster, percentage: int) -> int:
    """On how many nodes a namespace may hold places, or be promised room: one at least."""
    if percentage == PERCENT_MAX:
        return sys.maxsize
    return max(-(-cluster.nodes.count * percentage // 100), 1)


def is_beyond_share(
    context: SchedulerContext, owner: str, infos: Sequence[PodInfo], percentage: int
) -> bool:
    """Whether a start of these pods would reserve too much, together with all promises to other
    owners in their namespace.
    """
    namespace = infos[0].pod.metadata.namespace
    requested = Counter({PODS: len(infos)})
    for info in infos:
        requested.update(info.cls.accounted)
    promised = (
        {**need.accounted, PODS: need.pods}
        for reservation in context.cluster.singleton(Reservations).all()
        if reservation.owner != owner and reservation.namespace == namespace
        for need in reservation.needs.values()
    )
    return _beyond(context.cluster, requested, promised, percentage) is not None


def is_beyond_nodes(
    context: SchedulerContext, owner: str, namespace: str, nodes: Iterable[str], percentage: int
) -> bool:
    """The same for the nodes that are promised."""
    promised = [
        reservation.needs
        for reservation in context.cluster.singleton(Reservations).all()
        if reservation.owner != owner and reservation.namespace == namespace
    ]
    return len(set(nodes).union(*promised)) > nodes_max(context.cluster, percentage)


def _beyond(
    cluster: Cluster,
    requested: Mapping[str, int],
    had: Iterable[Mapping[str, int]],
    percentage: int,
) -> tuple[str, int, int] | None:
    """The first requested resource that the namespace would have too much of: (name, amount with
    what it has, limit). Resources that no node has are left to the trial.
    """
    if percentage == PERCENT_MAX:
        return None
    together = Counter(requested)
    for amounts in had:
        together.update(amounts)
    for name, amount in requested.items():
        total = _offered(cluster, name)
        most = int(total * percentage // 100)
        if amount and total and together[name] > most:
            return name, together[name], most
    return None


def _offered(cluster: Cluster, name: str) -> float:
    """How much of a resource all nodes have."""
    nodes, read = cluster.nodes, cluster.nodes.columns.read
    height = nodes.height
    if name == PODS:
        amounts = read("allowed_pods")[:height]
    else:
        place = nodes.find_resource(name)
        if place is None:
            return 0.0
        amounts = read("allocatable")[place, :height]
    return float(amounts[read("live")[:height]].sum(dtype=np.float64))
