"""How much of the cluster the requests of one namespace may hold: a percentage of each resource.

A held place has no pod that a ResourceQuota would count.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from asched.core.config.args import CheckAndHoldArgs
from asched.core.config.validate_args import PERCENT_MAX
from asched.core.cycle.request_book import Bookings, times
from asched.core.model.requests import PODS, written
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo


def beyond_share(
    cluster: Cluster,
    namespace: str,
    by_set: Iterable[tuple[PodInfo, int]],
    args: CheckAndHoldArgs,
) -> str:
    """Why a namespace may not hold places for so many pods as well; empty if it may. Resources that
    no node has are left to the trial.
    """
    if args.max_namespace_percentage == PERCENT_MAX:
        return ""
    wanted = cluster.singleton(Bookings).held_by(namespace)
    asked = Counter[str]()
    for like, count in by_set:
        asked.update(times(like, count))
    wanted.update(asked)
    for name in asked:
        total = _total(cluster, name)
        most = int(total * args.max_namespace_percentage // 100)
        if asked[name] and total and wanted[name] > most:
            return (
                f"namespace {namespace} would hold {written(name, wanted[name])} {name}, and may"
                f" hold {written(name, most)}: {args.max_namespace_percentage} % of the cluster"
                " (maxNamespacePercentage)"
            )
    return ""


def _total(cluster: Cluster, name: str) -> float:
    nodes = cluster.nodes
    read = nodes.columns.read
    live = read("live")[: nodes.height]
    if name == PODS:
        amounts = read("allowed_pods")[: nodes.height]
    else:
        place = nodes.find_resource(name)
        if place is None:
            return 0.0
        amounts = read("allocatable")[place, : nodes.height]
    return float(np.where(live, amounts, 0).sum(dtype=np.float64))
