"""TopologyPlacementGenerator: a pod group with a topology constraint stays within one domain.

Offers    one placement for each value that the constraint's label has among the nodes; all nodes
          for a group without such a constraint. Once pods of the group have places, only theirs.
Rejects   a group whose pods are in several domains already, or on a node without the label.
Retry     nothing by itself: pods of a group come back by backoff alone.
Cost      one pass over the label's column.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/topologyaware
"""

from collections.abc import Sequence

import numpy as np

from asched import names
from asched.core.framework.placements import Placement, PlacementGeneratePlugin
from asched.core.framework.points import Registration
from asched.core.framework.status import Status, failure
from asched.core.model.kinds import POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.state.cluster import Cluster


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    name = names.TOPOLOGY_PLACEMENT_GENERATOR

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registrations(self) -> Sequence[Registration]:
        return ()

    def generate_placements(self, group: str, parent: Placement) -> Sequence[Placement] | Status:
        known: PodGroup | None = self._cluster.get(POD_GROUP, group)
        if known is None:
            name = group.rpartition("/")[2]
            return failure(f'podgroup.scheduling.k8s.io "{name}" not found')
        key = known.topology_key
        if not key:
            return [parent]
        domain = self._domain_of_placed(group, key)
        if isinstance(domain, Status):
            return domain
        nodes = self._cluster.nodes
        column = nodes.label_column(key)
        ids = np.where(parent.mask(nodes), column.ids[: nodes.height], 0)
        found = {column.values.values[id_]: ids == id_ for id_ in np.unique(ids).tolist() if id_}
        if domain is not None:
            found = {value: rows for value, rows in found.items() if value == domain}
        return [Placement(value, found[value]) for value in sorted(found)]

    def _domain_of_placed(self, group: str, key: str) -> str | Status | None:
        """Where the group's pods are already; None if none of them has a place."""
        domain: str | None = None
        for uid, pod in self._cluster.pod_groups.get(group).placed.items():
            node = self._cluster.node_of(name := self._cluster.placed[uid].node_name)
            if node is None:
                lost = f'nodeinfo not found for node name "{name}"'
                return _undetermined(f"getting node for pod {pod.key}: {lost}")
            value = node.labels.get(key)
            if value is None:
                return _undetermined(f"no topology domain found for pod {pod.key}")
            if domain is not None and domain != value:
                both = f"{domain}, {value}"
                return _undetermined(f"more than 1 domain found for pod group: {both}")
            domain = value
        return domain


def _undetermined(why: str) -> Status:
    return failure(f"cannot determine domain for already scheduled pods: {why}")
