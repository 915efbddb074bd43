"""How much of the cluster the promised starts of one namespace may reserve: a percentage of what
all nodes offer of each resource. Room that is reserved has no pod that a ResourceQuota would count.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from asched.core.config.validate_args import PERCENT_MAX
from asched.core.cycle.context import SchedulerContext
from asched.core.model.requests import PODS
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo
from asched.core.state.reservations import Reservations

BEYOND_SHARE: Final = (
    "; no start is promised: promises to its namespace may reserve {} % of the cluster"
    " (maxNamespacePercentage)"
)


def is_beyond_share(
    context: SchedulerContext, owner: str, infos: Sequence[PodInfo], percentage: int
) -> bool:
    """Whether a start of these pods would reserve too much, beside what is promised to other owners
    in their namespace at whatever time. Resources that no node has are left to the search.
    """
    if percentage == PERCENT_MAX:
        return False
    cluster, namespace = context.cluster, infos[0].pod.metadata.namespace
    asked = Counter({PODS: len(infos)})
    for info in infos:
        asked.update(info.cls.accounted)
    reserved = Counter(asked)
    for one in cluster.singleton(Reservations).all():
        if one.owner != owner and one.namespace == namespace:
            for need in one.needs.values():
                reserved.update({**need.accounted, PODS: need.pods})
    return any(
        asked[name] and 0.0 < _offered(cluster, name) * percentage < amount * 100
        for name, amount in reserved.items()
    )


def _offered(cluster: Cluster, name: str) -> float:
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
