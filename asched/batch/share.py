"""Limit the share of the cluster that is held for or promised to one namespace: a percentage of
each resource (maxNamespacePercentage). A ResourceQuota does not count such room, which has no pod.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from asched.batch.backfill.reservations import Reservations
from asched.batch.provisioning.book import Bookings, times
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import PERCENT_MAX, CheckAndHoldArgs
from asched.core.cycle.context import SchedulerContext
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
    asked, percentage = Counter[str](), args.max_namespace_percentage
    for like, count in by_set:
        asked.update(times(like, count))
    held = cluster.singleton(Bookings).held_by(namespace)
    found = _beyond(cluster, asked, held, percentage)
    if found is None:
        return ""
    name, amount, most = found
    return (
        f"namespace {namespace} would hold {written(name, amount)} {name}, and may"
        f" hold {written(name, most)}: {percentage} % of the cluster (maxNamespacePercentage)"
    )


def is_beyond_share(
    context: SchedulerContext, owner: str, infos: Sequence[PodInfo], percentage: int
) -> bool:
    """Whether a start of these pods would reserve too much, together with all promises to other
    owners in their namespace.
    """
    namespace = infos[0].pod.metadata.namespace
    asked = Counter({PODS: len(infos)})
    for info in infos:
        asked.update(info.cls.accounted)
    promised = (
        {**need.accounted, PODS: need.pods}
        for reservation in context.cluster.singleton(Reservations).all()
        if reservation.owner != owner and reservation.namespace == namespace
        for need in reservation.needs.values()
    )
    return _beyond(context.cluster, asked, promised, percentage) is not None


def _beyond(
    cluster: Cluster, asked: Mapping[str, int], had: Iterable[Mapping[str, int]], percentage: int
) -> tuple[str, int, int] | None:
    """The first requested resource that the namespace would have too much of: (name, amount with
    what it has, limit). Resources that no node has are left to the trial.
    """
    if percentage == PERCENT_MAX:
        return None
    together = Counter(asked)
    for amounts in had:
        together.update(amounts)
    for name, amount in asked.items():
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
