"""Volumes, claims, storage classes and the CSI objects: the fields that volume rules read."""

import msgspec

from asched.core.model.meta import ApiObject, LabelSelector, ObjectReference, Record
from asched.core.model.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    GcePersistentDisk,
    ResourceList,
    ResourceRequirements,
    VolumeById,
)
from asched.core.model.quantity import Quantity, check
from asched.core.model.selector import NodeSelector


class CsiPersistentVolume(Record, frozen=True, gc=False):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Record, frozen=True, gc=False):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Record, frozen=True, gc=False):
    capacity: ResourceList | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiPersistentVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeById | None = None
    portworx_volume: VolumeById | None = None

    def __post_init__(self) -> None:
        if self.capacity is not None:
            check(self.capacity.values())


class VolumePhase(Record, frozen=True, gc=False):
    phase: str = ""


class PersistentVolume(ApiObject, frozen=True, gc=False):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class PersistentVolumeClaimSpec(Record, frozen=True, gc=False):
    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(ApiObject, frozen=True, gc=False):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class TopologyRequirement(Record, frozen=True, gc=False):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(Record, frozen=True, gc=False):
    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(ApiObject, frozen=True, gc=False):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class CsiNodeAllocatable(Record, frozen=True, gc=False):
    count: int | None = None


class CsiNodeDriver(Record, frozen=True, gc=False):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    allocatable: CsiNodeAllocatable | None = None


class CsiNodeSpec(Record, frozen=True, gc=False):
    drivers: tuple[CsiNodeDriver, ...] | None = None


class CsiNode(ApiObject, frozen=True, gc=False):
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Record, frozen=True, gc=False):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(ApiObject, frozen=True, gc=False):
    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(ApiObject, frozen=True, gc=False):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    def __post_init__(self) -> None:
        check((self.capacity, self.maximum_volume_size))


class VolumeAttachmentSource(Record, frozen=True, gc=False):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Record, frozen=True, gc=False):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True, gc=False):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
