"""The kinds of objects that a scheduler watches: their API paths and their records.

`KINDS` is the only table; the client derives URLs from it, the cluster its stores, RBAC its rules.
"""

from typing import Final, NamedTuple

from asched.core.model import claim, node, pod, provisioning, quotas, volume, workload
from asched.core.model.meta import ObjectMeta, ObjectReference, Record

#: Groups whose kinds have no prefix in changes and hints.
_BARE_GROUPS: Final = frozenset({"", "apps", "policy"})


class Kind(NamedTuple):
    """One kind. `resource` is its name in changes and queueing hints.

    `poll_s`: interval of listing, where the API cannot be watched; 0: it is watched.
    """

    name: str
    plural: str
    group_version: str  # "v1" for the core group
    record: type[Record]
    namespaced: bool
    resource: str
    poll_s: float = 0.0

    @classmethod
    def of(
        cls,
        record: type[Record],
        group_version: str,
        name: str = "",
        plural: str = "",
        *,
        namespaced: bool = True,
        poll_s: float = 0.0,
    ) -> "Kind":
        """The kind of a record, which usually has its name, with a regular plural."""
        name, group = name or record.__name__, group_version.rpartition("/")[0]
        resource = name if group in _BARE_GROUPS else f"{group}/{name}"
        plural = plural or f"{name.lower()}s"
        return cls(name, plural, group_version, record, namespaced, resource, poll_s)

    @property
    def path(self) -> str:
        """The path under which all of its objects are listed."""
        root = "/api/v1" if self.group_version == "v1" else f"/apis/{self.group_version}"
        return f"{root}/{self.plural}"

    def object_path(self, namespace: str, name: str) -> str:
        root = "/api/v1" if self.group_version == "v1" else f"/apis/{self.group_version}"
        scope = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{scope}/{self.plural}/{name}"

    def reference(self, metadata: ObjectMeta) -> ObjectReference:
        """Reference for an event: the object in this version."""
        return ObjectReference(
            api_version=self.group_version,
            kind=self.name,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )


_STORAGE: Final = "storage.k8s.io/v1"
_RESOURCE: Final = "resource.k8s.io/v1"

POD: Final = Kind.of(pod.Pod, "v1")
NODE: Final = Kind.of(node.Node, "v1", namespaced=False)
NAMESPACE: Final = Kind.of(workload.Namespace, "v1", namespaced=False)
SERVICE: Final = Kind.of(workload.Service, "v1")
REPLICATION_CONTROLLER: Final = Kind.of(workload.ReplicationController, "v1")
REPLICA_SET: Final = Kind.of(workload.ReplicaSet, "apps/v1")
STATEFUL_SET: Final = Kind.of(workload.StatefulSet, "apps/v1")
POD_DISRUPTION_BUDGET: Final = Kind.of(workload.PodDisruptionBudget, "policy/v1")
PERSISTENT_VOLUME: Final = Kind.of(volume.PersistentVolume, "v1", namespaced=False)
PERSISTENT_VOLUME_CLAIM: Final = Kind.of(volume.PersistentVolumeClaim, "v1")
STORAGE_CLASS: Final = Kind.of(
    volume.StorageClass, _STORAGE, plural="storageclasses", namespaced=False
)
CSI_NODE: Final = Kind.of(volume.CsiNode, _STORAGE, "CSINode", namespaced=False)
CSI_DRIVER: Final = Kind.of(volume.CsiDriver, _STORAGE, "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITY: Final = Kind.of(
    volume.CsiStorageCapacity, _STORAGE, "CSIStorageCapacity", "csistoragecapacities"
)
VOLUME_ATTACHMENT: Final = Kind.of(volume.VolumeAttachment, _STORAGE, namespaced=False)
RESOURCE_CLAIM: Final = Kind.of(claim.ResourceClaim, _RESOURCE)
RESOURCE_SLICE: Final = Kind.of(claim.ResourceSlice, _RESOURCE, namespaced=False)
DEVICE_CLASS: Final = Kind.of(
    claim.DeviceClass, _RESOURCE, plural="deviceclasses", namespaced=False
)
#: Taints that administrators put on devices: v1 since 1.37, v1beta2 in 1.36, v1alpha3 before.
DEVICE_TAINT_RULE: Final = Kind.of(claim.DeviceTaintRule, _RESOURCE, namespaced=False)
#: As in Kubernetes 1.36 ...
POD_GROUP: Final = Kind.of(workload.PodGroup, "scheduling.k8s.io/v1alpha2")
#: ... and 1.37, without v1alpha2. One record and one store for all versions.
POD_GROUP_V1ALPHA3: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1alpha3")
POD_GROUP_V1BETA1: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1beta1")
POD_GROUP_V1: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1")  # 1.38, a preview
#: Groups of groups, since 1.37 with their gate.
COMPOSITE_POD_GROUP: Final = Kind.of(workload.CompositePodGroup, "scheduling.k8s.io/v1alpha3")
#: The PodGroup of kubernetes-sigs/scheduler-plugins, which pods name with a label.
COSCHEDULING_GROUP: Final = Kind.of(
    workload.CoschedulingGroup, "scheduling.x-k8s.io/v1alpha1", "PodGroup"
)
#: A request of cluster-autoscaler's API, and the template of its pods.
PROVISIONING_REQUEST: Final = Kind.of(provisioning.ProvisioningRequest, "autoscaling.x-k8s.io/v1")
PROVISIONING_REQUEST_V1BETA1: Final = PROVISIONING_REQUEST._replace(
    group_version="autoscaling.x-k8s.io/v1beta1"
)
POD_TEMPLATE: Final = Kind.of(provisioning.PodTemplate, "v1")
#: A quota of kubernetes-sigs/scheduler-plugins, and the object that marks namespaces with quotas by
#: Kueue.
ELASTIC_QUOTA: Final = Kind.of(quotas.ElasticQuota, "scheduling.x-k8s.io/v1alpha1")
LOCAL_QUEUE: Final = Kind.of(quotas.LocalQueue, "kueue.x-k8s.io/v1beta2")
LOCAL_QUEUE_V1BETA1: Final = LOCAL_QUEUE._replace(group_version="kueue.x-k8s.io/v1beta1")
#: Has the deadline of its pods.
JOB: Final = Kind.of(workload.Job, "batch/v1")

#: Kinds that servers have in one version or another: the preferred version first.
VERSIONS: Final = {
    POD_GROUP.resource: (POD_GROUP_V1, POD_GROUP_V1BETA1, POD_GROUP_V1ALPHA3, POD_GROUP),
    PROVISIONING_REQUEST.resource: (PROVISIONING_REQUEST, PROVISIONING_REQUEST_V1BETA1),
    DEVICE_TAINT_RULE.resource: (
        DEVICE_TAINT_RULE,
        DEVICE_TAINT_RULE._replace(group_version="resource.k8s.io/v1beta2"),
        DEVICE_TAINT_RULE._replace(group_version="resource.k8s.io/v1alpha3"),
    ),
    LOCAL_QUEUE.resource: (LOCAL_QUEUE, LOCAL_QUEUE_V1BETA1),
}

#: Every kind that a scheduler with the default profile watches, in the order in which it starts.
KINDS: Final[tuple[Kind, ...]] = (
    NODE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    SERVICE,
    REPLICATION_CONTROLLER,
    REPLICA_SET,
    STATEFUL_SET,
    POD_DISRUPTION_BUDGET,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    POD,
)
BY_PLURAL: Final = {kind.plural: kind for kind in (*KINDS, DEVICE_TAINT_RULE, POD_GROUP)}
_OPTIONAL: Final = (
    DEVICE_TAINT_RULE,
    POD_GROUP,
    COMPOSITE_POD_GROUP,
    COSCHEDULING_GROUP,
    PROVISIONING_REQUEST,
    POD_TEMPLATE,
    ELASTIC_QUOTA,
    LOCAL_QUEUE,
    JOB,
)
#: Every kind that may be watched; two of them share a plural.
BY_RESOURCE: Final = {kind.resource: kind for kind in (*KINDS, *_OPTIONAL)}
