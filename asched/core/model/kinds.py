"""The kinds of objects that a scheduler watches: their API paths and their records.

`KINDS` is the only table; the client derives URLs from it, the cluster its stores, RBAC its rules.
"""

from typing import Final, NamedTuple

from asched.core.model import claim, node, pod, provisioning, quota, volume, workload
from asched.core.model.meta import ObjectMeta, ObjectReference, Record


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

POD: Final = Kind("Pod", "pods", "v1", pod.Pod, True, "Pod")
NODE: Final = Kind("Node", "nodes", "v1", node.Node, False, "Node")
NAMESPACE: Final = Kind("Namespace", "namespaces", "v1", workload.Namespace, False, "Namespace")
SERVICE: Final = Kind("Service", "services", "v1", workload.Service, True, "Service")
REPLICATION_CONTROLLER: Final = Kind(
    "ReplicationController",
    "replicationcontrollers",
    "v1",
    workload.ReplicationController,
    True,
    "ReplicationController",
)
REPLICA_SET: Final = Kind(
    "ReplicaSet", "replicasets", "apps/v1", workload.ReplicaSet, True, "ReplicaSet"
)
STATEFUL_SET: Final = Kind(
    "StatefulSet", "statefulsets", "apps/v1", workload.StatefulSet, True, "StatefulSet"
)
POD_DISRUPTION_BUDGET: Final = Kind(
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    "policy/v1",
    workload.PodDisruptionBudget,
    True,
    "PodDisruptionBudget",
)
PERSISTENT_VOLUME: Final = Kind(
    "PersistentVolume",
    "persistentvolumes",
    "v1",
    volume.PersistentVolume,
    False,
    "PersistentVolume",
)
PERSISTENT_VOLUME_CLAIM: Final = Kind(
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    "v1",
    volume.PersistentVolumeClaim,
    True,
    "PersistentVolumeClaim",
)
STORAGE_CLASS: Final = Kind(
    "StorageClass",
    "storageclasses",
    _STORAGE,
    volume.StorageClass,
    False,
    "storage.k8s.io/StorageClass",
)
CSI_NODE: Final = Kind(
    "CSINode", "csinodes", _STORAGE, volume.CsiNode, False, "storage.k8s.io/CSINode"
)
CSI_DRIVER: Final = Kind(
    "CSIDriver", "csidrivers", _STORAGE, volume.CsiDriver, False, "storage.k8s.io/CSIDriver"
)
CSI_STORAGE_CAPACITY: Final = Kind(
    "CSIStorageCapacity",
    "csistoragecapacities",
    _STORAGE,
    volume.CsiStorageCapacity,
    True,
    "storage.k8s.io/CSIStorageCapacity",
)
VOLUME_ATTACHMENT: Final = Kind(
    "VolumeAttachment",
    "volumeattachments",
    _STORAGE,
    volume.VolumeAttachment,
    False,
    "storage.k8s.io/VolumeAttachment",
)
RESOURCE_CLAIM: Final = Kind(
    "ResourceClaim",
    "resourceclaims",
    _RESOURCE,
    claim.ResourceClaim,
    True,
    "resource.k8s.io/ResourceClaim",
)
RESOURCE_SLICE: Final = Kind(
    "ResourceSlice",
    "resourceslices",
    _RESOURCE,
    claim.ResourceSlice,
    False,
    "resource.k8s.io/ResourceSlice",
)
DEVICE_CLASS: Final = Kind(
    "DeviceClass",
    "deviceclasses",
    _RESOURCE,
    claim.DeviceClass,
    False,
    "resource.k8s.io/DeviceClass",
)
#: Taints that administrators put on devices: v1 since 1.37, v1beta2 in 1.36, v1alpha3 before.
DEVICE_TAINT_RULE: Final = Kind(
    "DeviceTaintRule",
    "devicetaintrules",
    "resource.k8s.io/v1",
    claim.DeviceTaintRule,
    False,
    "resource.k8s.io/DeviceTaintRule",
)
_POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
#: As in Kubernetes 1.36 ...
POD_GROUP: Final = Kind(
    "PodGroup", "podgroups", "scheduling.k8s.io/v1alpha2", workload.PodGroup, True, _POD_GROUP
)
#: ... and 1.37, without v1alpha2. One record and one store for all versions.
POD_GROUP_V1ALPHA3: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1alpha3")
POD_GROUP_V1BETA1: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1beta1")
POD_GROUP_V1: Final = POD_GROUP._replace(group_version="scheduling.k8s.io/v1")  # 1.38, a preview
#: Groups of groups, since 1.37 with their gate.
COMPOSITE_POD_GROUP: Final = Kind(
    "CompositePodGroup",
    "compositepodgroups",
    "scheduling.k8s.io/v1alpha3",
    workload.CompositePodGroup,
    True,
    "scheduling.k8s.io/CompositePodGroup",
)

#: The PodGroup of kubernetes-sigs/scheduler-plugins, which pods name with a label.
COSCHEDULING_GROUP: Final = Kind(
    "PodGroup",
    "podgroups",
    "scheduling.x-k8s.io/v1alpha1",
    workload.CoschedulingGroup,
    True,
    "scheduling.x-k8s.io/PodGroup",
)

#: A request of cluster-autoscaler's API, and the template of its pods.
PROVISIONING_REQUEST: Final = Kind(
    "ProvisioningRequest",
    "provisioningrequests",
    "autoscaling.x-k8s.io/v1",
    provisioning.ProvisioningRequest,
    True,
    "autoscaling.x-k8s.io/ProvisioningRequest",
)
PROVISIONING_REQUEST_V1BETA1: Final = PROVISIONING_REQUEST._replace(
    group_version="autoscaling.x-k8s.io/v1beta1"
)
POD_TEMPLATE: Final = Kind(
    "PodTemplate", "podtemplates", "v1", provisioning.PodTemplate, True, "PodTemplate"
)

#: A quota of kubernetes-sigs/scheduler-plugins, and the object that marks namespaces with quotas by
#: Kueue.
ELASTIC_QUOTA: Final = Kind(
    "ElasticQuota",
    "elasticquotas",
    "scheduling.x-k8s.io/v1alpha1",
    quota.ElasticQuota,
    True,
    "scheduling.x-k8s.io/ElasticQuota",
)
LOCAL_QUEUE: Final = Kind(
    "LocalQueue",
    "localqueues",
    "kueue.x-k8s.io/v1beta2",
    quota.LocalQueue,
    True,
    "kueue.x-k8s.io/LocalQueue",
)
LOCAL_QUEUE_V1BETA1: Final = LOCAL_QUEUE._replace(group_version="kueue.x-k8s.io/v1beta1")

#: Has the deadline of its pods.
JOB: Final = Kind("Job", "jobs", "batch/v1", workload.Job, True, "batch/Job")

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
