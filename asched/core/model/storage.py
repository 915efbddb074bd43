"""What a pod's volumes use: claims, inline disks, and the owners of claims.

Everything in this file depends on a single object. A claim is *direct* (named by the pod) or
*ephemeral* (made for the pod from a template, named `<pod>-<volume>`, and usable only if the pod
controls it).

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-helpers/storage,
        pkg/scheduler/framework/plugins/volumerestrictions
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from asched.core.model.meta import ObjectMeta
from asched.core.model.migration import (
    CsiVolume,
    MigrationError,
    inline_volume,
    is_inline_migratable,
)
from asched.core.model.pod import Pod, Volume
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
#: Storage classes were annotations before they became fields; the annotation takes precedence.
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
STORAGE: Final = "storage"


class ClaimUse(NamedTuple):
    """A claim that a volume of a pod uses. `owner` is the uid of the pod if it was generated for
    it.
    """

    key: str  # "namespace/name"
    name: str
    owner: str = ""  # "" for a direct claim


class Disk(NamedTuple):
    """An inline disk that may conflict with one of another pod on the node: if any identity is
    shared.

    `identities`: keys of the disk; an RBD image has one for each of its monitors.
    """

    identities: tuple[tuple[str, ...], ...]
    shares: bool  # read-only, and of a kind that several read-only pods may share


class PodStorage(NamedTuple):
    """The volumes of a pod that any volume rule reads."""

    claims: tuple[ClaimUse, ...]  # in order, direct and ephemeral
    disks: tuple[Disk, ...]
    migrated: tuple[CsiVolume, ...]  # inline in-tree disks, translated to their CSI drivers
    has_migratable: bool  # any inline volume of a kind that has moved to CSI
    broken: str = ""  # why an inline volume cannot be translated

    @property
    def direct(self) -> tuple[str, ...]:
        """Names of the direct claims, in order."""
        return tuple(use.name for use in self.claims if not use.owner)


NO_STORAGE: Final = PodStorage((), (), (), has_migratable=False)


def storage_of(pod: Pod) -> PodStorage:
    """The storage of a pod's volumes; NO_STORAGE for most pods."""
    volumes = pod.spec.volumes
    if not volumes:
        return NO_STORAGE
    claims: list[ClaimUse] = []
    disks: list[Disk] = []
    migrated: list[CsiVolume] = []
    has_migratable, broken = False, ""
    for volume in volumes:
        use = claim_use(pod, volume)
        if use is not None:
            claims.append(use)
            continue
        disk = _disk(volume)
        if disk is not None:
            disks.append(disk)
        if is_inline_migratable(volume):
            has_migratable = True
            try:
                found = inline_volume(volume)
            except MigrationError as error:
                broken = broken or f"converting volume({volume.name}) from inline to csi: {error}"
            else:
                if found is not None:
                    migrated.append(found)
    if not (claims or disks or has_migratable):
        return NO_STORAGE
    return PodStorage(tuple(claims), tuple(disks), tuple(migrated), has_migratable, broken)


def claim_use(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim a volume uses, or None if it uses none."""
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
        return ClaimUse(f"{pod.metadata.namespace}/{name}", name)
    if volume.ephemeral is not None:
        name = f"{pod.metadata.name}-{volume.name}"
        return ClaimUse(f"{pod.metadata.namespace}/{name}", name, pod.uid or "?")
    return None


def uses_claim(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool) -> bool:
    """Whether any volume of the pod names this claim, with or without generated claims."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    name = claim.metadata.name
    for volume in pod.spec.volumes or ():
        direct = volume.persistent_volume_claim
        if direct is not None and direct.claim_name == name:
            return True
        is_made = ephemeral and volume.ephemeral is not None
        if is_made and f"{pod.metadata.name}-{volume.name}" == name:
            return True
    return False


def has_direct_claims(pod: Pod) -> bool:
    """Whether any volume names a claim. Cheap, because each event calls it for each waiting pod,
    which may have thousands of volumes.
    """
    return any(v.persistent_volume_claim is not None for v in pod.spec.volumes or ())


def has_claims(pod: Pod) -> bool:
    """The same, including generated claims."""
    return has_direct_claims(pod) or any(v.ephemeral is not None for v in pod.spec.volumes or ())


def any_conflict(wanted: Iterable[Disk], held: Iterable[Disk]) -> bool:
    """Whether two pods with these disks must not share a node: they have a disk in common that one
    of them does not share. Linear in both numbers.
    """
    alone: set[tuple[str, ...]] = set()
    every: set[tuple[str, ...]] = set()
    for disk in held:
        every.update(disk.identities)
        if not disk.shares:
            alone.update(disk.identities)
    return any(not (alone if d.shares else every).isdisjoint(d.identities) for d in wanted)


def is_owned(claim: PersistentVolumeClaim, owner_uid: str) -> bool:
    """Whether a claim was generated for the pod with this uid."""
    controller = claim.metadata.controller
    return controller is not None and controller.uid == owner_uid


def claim_class(claim: PersistentVolumeClaim) -> str:
    return _class(claim.metadata, claim.spec.storage_class_name)


def volume_class(volume: PersistentVolume) -> str:
    return _class(volume.metadata, volume.spec.storage_class_name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume are bound to each other."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def _class(metadata: ObjectMeta, field: str | None) -> str:
    annotations = metadata.annotations or {}
    return annotations.get(BETA_CLASS, field or "")


def _disk(volume: Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk((("gce", gce.pd_name),), gce.read_only)
    if (ebs := volume.aws_elastic_block_store) is not None:
        return Disk((("ebs", ebs.volume_id),), shares=False)
    if (iscsi := volume.iscsi) is not None:
        return Disk((("iscsi", iscsi.iqn),), iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        images = tuple(("rbd", monitor, rbd.pool, rbd.image) for monitor in rbd.monitors or ())
        return Disk(images, rbd.read_only)
    return None
