"""Pods: the fields that a scheduler reads, in the API's shape; patches of their conditions."""

from typing import Any, Final

import msgspec

from asched.core.model.meta import ApiObject, LabelSelector, Record
from asched.core.model.quantity import Quantity
from asched.core.model.selector import NodeSelector, PreferredSchedulingTerm
from asched.core.model.taint import Toleration
from asched.core.model.timestamp import rfc3339

ResourceList = dict[str, Quantity]


class ResourceRequirements(Record, frozen=True, gc=False):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple["ContainerClaim", ...] | None = None


class ContainerClaim(Record, frozen=True, gc=False):
    name: str = ""
    request: str = ""


class ContainerPort(Record, frozen=True, gc=False):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class RestartRule(Record, frozen=True, gc=False):
    action: str = ""


class Container(Record, frozen=True, gc=False):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None


class PodNodeAffinity(Record, frozen=True, gc=False):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[PreferredSchedulingTerm, ...] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )

    @property
    def node_names(self) -> frozenset[str] | None:
        """Union over the required terms of the names each allows; None if a term allows any."""
        terms = self.required.node_selector_terms if self.required else None
        if not terms:
            return None
        allowed: frozenset[str] = frozenset()
        for term in terms:
            lists = [
                frozenset(field.values or ())
                for field in term.match_fields or ()
                if field.key == "metadata.name" and field.operator == "In"
            ]
            if not lists:
                return None
            allowed |= frozenset.intersection(*lists)
        return allowed


class PodAffinityTerm(Record, frozen=True, gc=False):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Record, frozen=True, gc=False):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Record, frozen=True, gc=False):
    """The same shape serves podAffinity and podAntiAffinity."""

    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Record, frozen=True, gc=False):
    node_affinity: PodNodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Record, frozen=True, gc=False):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class ClaimVolumeSource(Record, frozen=True, gc=False):
    claim_name: str = ""
    read_only: bool = False


class PresentVolume(Record, frozen=True, gc=False):
    """Only the presence matters. The claim of a generic ephemeral volume is named after the
    pod and the volume.
    """


class VolumeById(Record, frozen=True, gc=False):
    volume_id: str = msgspec.field(name="volumeID", default="")


class GcePersistentDisk(Record, frozen=True, gc=False):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Record, frozen=True, gc=False):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class IscsiVolumeSource(Record, frozen=True, gc=False):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RbdVolumeSource(Record, frozen=True, gc=False):
    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CsiVolumeSource(Record, frozen=True, gc=False):
    driver: str = ""


class ImageVolumeSource(Record, frozen=True, gc=False):
    reference: str = ""


class AzureDisk(Record, frozen=True, gc=False):
    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")


class EmptyDir(Record, frozen=True, gc=False):
    medium: str = ""


class Volume(Record, frozen=True, gc=False):
    """No rule of scheduling reads `empty_dir` and `host_path`."""

    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: PresentVolume | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: PresentVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeById | None = None
    portworx_volume: VolumeById | None = None
    azure_file: PresentVolume | None = None
    vsphere_volume: PresentVolume | None = None
    iscsi: IscsiVolumeSource | None = None
    rbd: RbdVolumeSource | None = None
    csi: CsiVolumeSource | None = None
    image: ImageVolumeSource | None = None


class SchedulingGate(Record, frozen=True, gc=False):
    name: str = ""


class PodResourceClaim(Record, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Record, frozen=True, gc=False):
    pod_group_name: str | None = None


class PodSpec(Record, frozen=True, gc=False):
    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(Record, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None


class ContainerStatus(Record, frozen=True, gc=False):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(Record, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceClaimStatus(Record, frozen=True, gc=False):
    resource_claim_name: str = ""


class PodStatus(Record, frozen=True, gc=False):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(ApiObject, frozen=True, gc=False):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or NO_LABELS

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def on(self, node_name: str) -> "Pod":
        """The same pod, bound to a node."""
        return msgspec.structs.replace(
            self, spec=msgspec.structs.replace(self.spec, node_name=node_name)
        )

    def condition(self, type_: str) -> PodCondition | None:
        for condition in self.status.conditions or ():
            if condition.type == type_:
                return condition
        return None


#: Shared by all objects without labels; never written to, because records are frozen.
NO_LABELS: Final[dict[str, str]] = {}

_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")


def spec_key(pod: Pod, labelled: "Pod | None" = None) -> bytes:
    """Equal for pods with the same content as far as scheduling is concerned, whatever their names
    and nodes. `labelled`: as if the pod had the labels of that pod.

    Names count only where a rule derives something from them: generic ephemeral volumes are named
    after the pod. A volume whose source no rule reads is left out: the token that the API server
    mounts in every pod has a different name in each. Resource claims made from a template differ
    between pods as well, but the rule that reads them is evaluated for every pod. Gates, the
    scheduler's name and the pod group are left out: the effects of a group are handled before and
    after filtering.
    """
    spec, identity, read = pod.spec, None, None
    if spec.volumes:
        read = [v for v in spec.volumes if v != Volume(v.name, v.empty_dir, v.host_path)] or None
        if read and any(volume.ephemeral is not None for volume in read):
            identity = pod.metadata.name, pod.metadata.uid
    return _encoder.encode(
        (
            pod.metadata.namespace,
            (labelled or pod).metadata.labels,
            pod.metadata.owner_references and pod.metadata.controller,
            spec.priority,
            spec.preemption_policy,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            read,
            spec.host_network,
            spec.host_users,
            spec.resource_claims,
            identity,
        )
    )


def difference(old: PodCondition | None, new: PodCondition, now_s: float) -> dict[str, Any] | None:
    """The changed fields, with the type; a changed status has the time. None if equal."""
    before = old if old is not None else PodCondition(type=new.type)
    changed: dict[str, Any] = {}
    for field, wire in (
        ("status", "status"),
        ("reason", "reason"),
        ("message", "message"),
        ("observed_generation", "observedGeneration"),
    ):
        value = getattr(new, field)
        if value != getattr(before, field):
            changed[wire] = value
    if not changed:
        return None
    if before.status != new.status:
        changed["lastTransitionTime"] = rfc3339(now_s)
        if old is None:
            changed["lastProbeTime"] = None
    changed["type"] = new.type
    return changed
