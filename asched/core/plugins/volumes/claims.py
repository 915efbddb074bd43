"""The claims of a pod, sorted by what the volume binder has to do for them.

    bound      nothing: their volumes must be reachable from the node
    delayed    their class waits for the first consumer: a volume is found or made for the node
    immediate  they should have been bound without us: the pod waits

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding (podHasPVCs,
        GetPodVolumeClaims, checkBoundClaims, tryTranslatePVToCSI)
"""

from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Mask
from asched.core.framework.status import Status, failure, unresolvable
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from asched.core.model.migration import plugin_of, translated_affinity
from asched.core.model.selector import NodeSelector
from asched.core.model.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claim_class,
    is_fully_bound,
    is_owned,
)
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from asched.core.plugins.volumes import topology

UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"


class VolumeAffinity(NamedTuple):
    """Nodes from which a bound claim's volume can be reached."""

    required: NodeSelector | None
    #: the in-tree plugin that may have moved to CSI on a node, and the affinity that applies there
    plugin: str = ""
    moved: NodeSelector | None = None
    is_missing: bool = False  # there is no such volume

    @property
    def is_anywhere(self) -> bool:
        return self.required is None and self.moved is None and not self.is_missing


class PodClaims(NamedTuple):
    """Claims in the order of the pod's volumes."""

    bound: tuple[VolumeAffinity, ...] = ()  # only those with a restriction, without duplicates
    delayed: tuple[PersistentVolumeClaim, ...] = ()


def affinity_of(volume: PersistentVolume | None) -> VolumeAffinity:
    """The affinity of a volume, in both readings where its plugin may have moved."""
    if volume is None:
        return VolumeAffinity(None, is_missing=True)
    required, moved = topology.required_of(volume), plugin_of(volume)
    if moved is not None and (translated := translated_affinity(volume, moved)) != required:
        return VolumeAffinity(required, moved.plugin, translated)
    return VolumeAffinity(required)


def accepts(affinity: VolumeAffinity, nodes: NodeView, cluster: Cluster) -> Mask:
    """bool[M]: rows from which the volume, which exists, can be reached."""
    mask = topology.reachable(nodes, affinity.required)
    if affinity.plugin:
        moved = cluster.volumes.moved(affinity.plugin)
        if moved is not None:
            mask = np.where(nodes.gather(moved), topology.reachable(nodes, affinity.moved), mask)
    return mask


def sort_claims(cluster: Cluster, pod: PodInfo) -> PodClaims | Status:
    """The pod's claims, or why it cannot be placed anywhere."""
    sorted_claims = []
    for use in pod.cls.storage.claims:
        claim = cluster.get(PERSISTENT_VOLUME_CLAIM, use.key)
        problem = _problem(use, claim, pod)
        if problem:
            return unresolvable(problem)
        sorted_claims.append(claim)
    bound: dict[VolumeAffinity, None] = {}
    delayed = []
    is_waiting = False
    for claim in sorted_claims:
        if is_fully_bound(claim):
            affinity = affinity_of(cluster.get(PERSISTENT_VOLUME, claim.spec.volume_name))
            if not affinity.is_anywhere:
                bound[affinity] = None
            continue
        waits = waits_for_consumer(cluster, claim)
        if isinstance(waits, Status):
            return waits
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            is_waiting = True
    return (
        unresolvable(UNBOUND_IMMEDIATE) if is_waiting else PodClaims(tuple(bound), tuple(delayed))
    )


def waits_for_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool | Status:
    """Whether a claim's class delays binding; an error if the class does not say."""
    name = claim_class(claim)
    found: StorageClass | None = cluster.stored(STORAGE_CLASS, name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        return failure(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _problem(use: ClaimUse, claim: PersistentVolumeClaim | None, pod: PodInfo) -> str:
    if claim is None:
        missing = f'persistentvolumeclaim "{use.name}"'
        if use.owner:
            return f"waiting for ephemeral volume controller to create the {missing}"
        return f"{missing} not found"
    if claim.status.phase == "Lost":
        return (
            f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume'
            f' "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    if use.owner and not is_owned(claim, use.owner):
        return f"PVC {use.key} was not created for pod {pod.pod.key} (pod is not owner)"
    return ""
