"""Dynamic provisioning: whether a volume can be made for a claim on a node, and whether there is
room.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
        (checkVolumeProvisions, hasEnoughCapacity)
"""

from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Mask
from asched.core.model.kinds import CSI_DRIVER, CSI_STORAGE_CAPACITY, STORAGE_CLASS
from asched.core.model.quantity import Quantity, whole
from asched.core.model.storage import STORAGE, claim_class
from asched.core.model.volume import CsiStorageCapacity, PersistentVolumeClaim, StorageClass
from asched.core.plugins.volumes import topology

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

#: The capacity where the volume would be made is unknown.
UNTOLD: Final = -1


class Provision(NamedTuple):
    """Whether a volume can be made for one claim, by row."""

    possible: Mask  # bool[M]: the class makes volumes there
    roomy: Mask  # bool[M]: ... and there is room, as far as is known
    capacity_bytes: I64 | None  # int64[M] of what was found, UNTOLD elsewhere; None if not asked


def provision(cluster: Cluster, claim: PersistentVolumeClaim, nodes: NodeView) -> Provision:
    """Judge one claim on all rows of a view."""
    found: StorageClass | None = cluster.stored(STORAGE_CLASS, claim_class(claim))
    nowhere: Mask = np.zeros(nodes.size, dtype=np.bool_)
    if found is None or found.provisioner in ("", NO_PROVISIONER):
        return Provision(nowhere, nowhere, None)
    possible = topology.allowed(nodes, found.allowed_topologies)
    requested = storage_request(claim)
    driver = cluster.stored(CSI_DRIVER, found.provisioner)
    if requested is None or driver is None or not driver.spec.storage_capacity:
        return Provision(possible, ~nowhere, None)
    wanted_bytes = whole(requested)
    roomy = nowhere
    capacity_bytes = np.full(nodes.size, UNTOLD, dtype=np.int64)
    for _, capacity in sorted(cluster.all(CSI_STORAGE_CAPACITY).items()):
        if capacity.storage_class_name != found.metadata.name:
            continue
        if volume_limit_bytes(capacity) < wanted_bytes:
            continue
        fresh = topology.selected(nodes, capacity.node_topology) & ~roomy
        capacity_bytes[fresh] = whole(capacity.capacity or 0)
        roomy = roomy | fresh
    return Provision(possible, roomy, capacity_bytes)


def volume_limit_bytes(capacity: CsiStorageCapacity) -> int:
    """Size of the largest volume that can be made: maximumVolumeSize, else the capacity; -1 if
    neither is set.
    """
    stated = capacity.maximum_volume_size
    if stated is None:
        stated = capacity.capacity
    return -1 if stated is None else whole(stated)


def storage_request(claim: PersistentVolumeClaim) -> Quantity | None:
    return (claim.spec.resources.requests or {}).get(STORAGE)
