"""TopologyPlacementGenerator: a pod group with a topology constraint stays within one domain.

Offers    one placement for each value that the constraint's label has among the nodes; all nodes
          for a group without such a constraint. Once pods of the group have places, only theirs.
Rejects   a group whose pods are in several domains already, or on a node without the label.
Retry     nothing by itself: pods of a group are retried after backoff.
Cost      one pass over the label's column; where no node changed its labels since the last group
          with this constraint, nothing.
Bounds    BYTES_MAX of placements are cached, the most recently used.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/topologyaware
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import object_of
from asched.core.framework.placements import Placement, PlacementGeneratePlugin
from asched.core.framework.registrations import Registration
from asched.core.framework.status import Status, failure
from asched.core.model.lru import Lru
from asched.core.model.workload import PodGroup

#: Of the rows of all placements, a byte each: 50 racks of 5,000 nodes are 250 kB.
BYTES_MAX: Final = 8 << 20


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    name = names.TOPOLOGY_PLACEMENT_GENERATOR

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._read_at = -1  # the version of all labels
        self._known: Lru[str, tuple[Placement, ...]] = Lru(BYTES_MAX)

    def registrations(self) -> Sequence[Registration]:
        return ()

    def generate_placements(self, group: str, parent: Placement) -> Sequence[Placement] | Status:
        known: PodGroup | None = object_of(self._cluster, group)
        if known is None:
            name = group.rpartition("/")[2]
            return failure(f'podgroup.scheduling.k8s.io "{name}" not found')
        key = known.topology_key
        if not key:
            return (parent,)
        domain = self._domain_of_placed(group, key)
        if isinstance(domain, Status):
            return domain
        found = self._of_label(key, parent)
        return found if domain is None else tuple([o for o in found if o.name == domain])

    def _of_label(self, key: str, parent: Placement) -> tuple[Placement, ...]:
        """One for each value, by name."""
        nodes = self._cluster.nodes
        if self._read_at != nodes.labels_moved:
            self._read_at, self._known = nodes.labels_moved, Lru(BYTES_MAX)
        known = self._known.get(key) if parent.rows is None else None
        if known is not None:
            return known
        column = nodes.label_column(key)
        ids = np.where(parent.mask(nodes), column.ids[: nodes.height], 0)
        rows = {column.values.values[id_]: ids == id_ for id_ in np.unique(ids).tolist() if id_}
        for mask in rows.values():
            mask.flags.writeable = False
        found = tuple([Placement(value, rows[value]) for value in sorted(rows)])
        if parent.rows is None:
            self._known.put(key, found, len(found) * len(ids))
        return found

    def _domain_of_placed(self, group: str, key: str) -> str | Status | None:
        """The domain of the group's placed pods; None if none is placed."""
        domain: str | None = None
        groups = self._cluster.pod_groups
        placed = (groups.get(key).placed.items() for key in groups.leaves_below(group))
        for uid, pod in chain.from_iterable(placed):
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
