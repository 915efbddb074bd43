"""Nodes from which volumes can be reached, or on which they can be made: masks over rows for the
selectors of storage objects.

    node affinity of a volume      node selector terms, by labels alone: names are not known
    allowedTopologies of a class   terms of `label In values`, any of which may hold
    nodeTopology of a capacity     a label selector; none at all reaches no node

Bounds  SELECTORS_MAX node selectors are kept compiled; of the terms of each the first TERMS_MAX
        count.
Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/helpers.go,
        pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms), volumebinding/binder.go
        (checkVolumeProvisions, hasEnoughCapacity)
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Mask
from asched.core.model.kinds import CSI_DRIVER, CSI_STORAGE_CAPACITY, STORAGE_CLASS
from asched.core.model.meta import LabelSelector
from asched.core.model.pod_limits import TERMS_MAX
from asched.core.model.quantity import Quantity, whole
from asched.core.model.selector import (
    NodeSelector,
    NodeTerm,
    Requirement,
    compile_selector,
    compile_term,
)
from asched.core.model.storage import STORAGE, claim_class
from asched.core.model.volume import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from asched.core.plugins.term_match import match_term

#: Cache of compiled node selectors. A guess: each local volume has its own, and there are thousands
#: of local volumes.
SELECTORS_MAX: Final = 16_384


def reachable(nodes: NodeView, required: NodeSelector | None) -> Mask:
    """bool[M]: rows that a volume's required node affinity accepts; None accepts all."""
    terms = compiled(required)
    if terms is None:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        found |= match_term(nodes, term) if term.expressions else np.True_
    return found


def required_of(volume: PersistentVolume) -> NodeSelector | None:
    """The node affinity that a volume requires."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


@lru_cache(maxsize=SELECTORS_MAX)
def compiled(required: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Terms without fields that can match at all; None is no restriction.

    Upstream compares a volume with a node without a name and ignores fields. A term that has only
    fields therefore matches every node.
    """
    if required is None:
        return None
    written = (required.node_selector_terms or ())[:TERMS_MAX]
    return tuple(
        NodeTerm(term.expressions, (), broken=False)
        for term in map(compile_term, written)
        if not term.broken and not term.is_empty
    )


def allowed(nodes: NodeView, terms: tuple[TopologyTerm, ...] | None) -> Mask:
    """bool[M]: rows on which a class may make volumes; no terms allow all rows."""
    if not terms:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        wanted = term.match_label_expressions or ()
        expressions = tuple(Requirement(e.key, "In", frozenset(e.values or ())) for e in wanted)
        found |= match_term(nodes, NodeTerm(expressions, (), broken=False))
    return found


def selected(nodes: NodeView, selector: LabelSelector | None) -> Mask:
    """bool[M]: rows a label selector selects; None, or an invalid selector, selects none."""
    try:
        found = compile_selector(selector)
    except ValueError:
        found = None
    if found is None:
        return np.zeros(nodes.size, dtype=np.bool_)
    if found.is_everything:
        return np.ones(nodes.size, dtype=np.bool_)
    return match_term(nodes, NodeTerm(found.requirements, (), broken=False))


NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

#: The capacity where the volume would be made is unknown.
UNTOLD: Final = -1


class Provision(NamedTuple):
    """Whether a volume can be made for one claim, by row."""

    possible: Mask  # bool[M]: the class makes volumes there
    roomy: Mask  # bool[M]: ... and there is room, as far as is known
    capacity_bytes: I64 | None  # int64[M] of what was found, UNTOLD elsewhere; None if not asked


def provision(cluster: Cluster, claim: PersistentVolumeClaim, nodes: NodeView) -> Provision:
    """Evaluate one claim on all rows of a view."""
    storage_class: StorageClass | None = cluster.stored(STORAGE_CLASS, claim_class(claim))
    nowhere: Mask = np.zeros(nodes.size, dtype=np.bool_)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return Provision(nowhere, nowhere, None)
    possible = allowed(nodes, storage_class.allowed_topologies)
    requested = storage_request(claim)
    driver = cluster.stored(CSI_DRIVER, storage_class.provisioner)
    if requested is None or driver is None or not driver.spec.storage_capacity:
        return Provision(possible, ~nowhere, None)
    wanted_bytes = whole(requested)
    roomy = nowhere
    capacity_bytes = np.full(nodes.size, UNTOLD, dtype=np.int64)
    for _, capacity in sorted(cluster.all(CSI_STORAGE_CAPACITY).items()):
        if capacity.storage_class_name != storage_class.metadata.name:
            continue
        if volume_limit_bytes(capacity) < wanted_bytes:
            continue
        fresh = selected(nodes, capacity.node_topology) & ~roomy
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
