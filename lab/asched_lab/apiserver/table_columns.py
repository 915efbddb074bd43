"""The columns of `kubectl get`, kind by kind. The descriptions are asched's own."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from asched_lab.apiserver import table_cells as cells
from asched_lab.apiserver.table_cells import UNSET, Cell


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 show with `-o wide` only."""

    name: str
    cell: Cell
    description: str = ""
    type: str = "string"
    priority: int = 0


NAME: Final = Column(
    "Name", cells.field("metadata.name", ""), "The object's name, unique in its namespace."
)
AGE: Final = Column("Age", cells.age_of, "Time since the creation of the object.")
_REPLICAS: Final = (
    Column("Desired", cells.field("spec.replicas", 0), "Replicas wanted.", "integer"),
    Column("Current", cells.field("status.replicas", 0), "Existing replicas.", "integer"),
    Column("Ready", cells.field("status.readyReplicas", 0), "Replicas that are ready.", "integer"),
)
_CONTAINERS: Final = (
    Column("Containers", cells.containers("name"), "Names of its containers.", priority=1),
    Column("Images", cells.containers("image"), "Images of its containers.", priority=1),
)
_WORKLOAD: Final = (
    *_CONTAINERS,
    Column("Selector", cells.selector_text, "Its pod selector.", priority=1),
)
#: kind -> its columns. Other kinds show name and age.
COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "Pod": (
        NAME,
        Column("Ready", cells.pod_ready, "Ready containers of all containers."),
        Column("Status", cells.pod_status, "The state of the pod."),
        Column("Restarts", cells.pod_restarts, "How often containers were restarted."),
        AGE,
        Column("IP", cells.field("status.podIP"), "The pod's address.", priority=1),
        Column("Node", cells.field("spec.nodeName"), "The node of the pod.", priority=1),
        Column(
            "Nominated Node",
            cells.field("status.nominatedNodeName"),
            "The node on which room is made.",
            priority=1,
        ),
        Column("Readiness Gates", cells.pod_gates, "Ready gates of all gates.", priority=1),
    ),
    "Node": (
        NAME,
        Column("Status", cells.node_status, "Whether the node is ready and takes pods."),
        Column("Roles", cells.node_roles, "Its roles, from its labels."),
        AGE,
        Column(
            "Version", cells.field("status.nodeInfo.kubeletVersion", ""), "Version of its kubelet."
        ),
        Column("Internal-IP", cells.node_address("InternalIP"), "Its inner address.", priority=1),
        Column("External-IP", cells.node_address("ExternalIP"), "Its outer address.", priority=1),
        Column(
            "OS-Image",
            cells.field("status.nodeInfo.osImage", "<unknown>"),
            "Its operating system image.",
            priority=1,
        ),
        Column(
            "Kernel-Version",
            cells.field("status.nodeInfo.kernelVersion", "<unknown>"),
            "Its kernel.",
            priority=1,
        ),
        Column(
            "Container-Runtime",
            cells.field("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
            "Its container runtime.",
            priority=1,
        ),
    ),
    "Event": (
        Column(
            "Last Seen",
            cells.event_time("lastTimestamp", "eventTime", "firstTimestamp"),
            "Time of the last occurrence.",
        ),
        Column("Type", cells.field("type", ""), "Normal or Warning."),
        Column("Reason", cells.field("reason", ""), "The reason, as one word."),
        Column("Object", cells.event_object, "The object of the event."),
        Column(
            "Subobject",
            cells.field("involvedObject.fieldPath", ""),
            "The part of the object.",
            priority=1,
        ),
        Column("Source", cells.event_source, "The component that reports it.", priority=1),
        Column("Message", cells.field("message", ""), "The message."),
        Column(
            "First Seen",
            cells.event_time("firstTimestamp", "eventTime"),
            "Time of the first occurrence.",
            priority=1,
        ),
        Column("Count", cells.event_count, "Number of occurrences.", priority=1),
        Column("Name", cells.field("metadata.name", ""), "The event's own name.", priority=1),
    ),
    "Namespace": (
        NAME,
        Column("Status", cells.field("status.phase"), "Active or Terminating."),
        AGE,
    ),
    "PriorityClass": (
        NAME,
        Column("Value", cells.field("value", 0), "The priority its pods get.", "integer"),
        Column(
            "Global-Default", cells.field("globalDefault", False), "For pods without.", "boolean"
        ),
        AGE,
        Column("PreemptionPolicy", cells.field("preemptionPolicy"), "Whether its pods preempt."),
    ),
    "PodDisruptionBudget": (
        NAME,
        Column(
            "Min Available", cells.field_text("spec.minAvailable", "N/A"), "Pods that must stay."
        ),
        Column(
            "Max Unavailable",
            cells.field_text("spec.maxUnavailable", "N/A"),
            "Pods that may be unavailable.",
        ),
        Column(
            "Allowed Disruptions",
            cells.field("status.disruptionsAllowed", 0),
            "Pods that may be evicted now.",
            "integer",
        ),
        AGE,
    ),
    "Lease": (NAME, Column("Holder", cells.field("spec.holderIdentity", ""), "Its holder."), AGE),
    "ConfigMap": (NAME, Column("Data", cells.count_of("data"), "Entries."), AGE),
    "Secret": (
        NAME,
        Column("Type", cells.field("type"), "Its type."),
        Column("Data", cells.count_of("data"), "Entries."),
        AGE,
    ),
    "Endpoints": (NAME, Column("Endpoints", cells.endpoints, "Its addresses."), AGE),
    "Service": (
        NAME,
        Column("Type", cells.field("spec.type"), "Its type."),
        Column("Cluster-IP", cells.field("spec.clusterIP"), "Its address in the cluster."),
        Column("External-IP", cells.external, "Its external addresses."),
        Column("Port(s)", cells.ports, "Its ports."),
        AGE,
        Column("Selector", cells.selector("spec.selector"), "Its pod selector.", priority=1),
    ),
    "Deployment": (
        NAME,
        Column("Ready", cells.ready_replicas, "Ready replicas of those wanted."),
        Column(
            "Up-to-date", cells.field("status.updatedReplicas", 0), "Replicas of this template."
        ),
        Column("Available", cells.field("status.availableReplicas", 0), "Available replicas."),
        AGE,
        *_WORKLOAD,
    ),
    "ReplicaSet": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "ReplicationController": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "Job": (
        NAME,
        Column("Status", cells.job_status, "Whether it runs, is complete or has failed."),
        Column("Completions", cells.job_completions, "Succeeded pods of those wanted."),
        Column("Duration", cells.job_duration, "Its duration so far."),
        AGE,
        *_WORKLOAD,
    ),
    "StatefulSet": (
        NAME,
        Column("Ready", cells.ready_replicas, "Ready replicas of those wanted."),
        AGE,
        *_CONTAINERS,
    ),
    "PersistentVolume": (
        NAME,
        Column("Capacity", cells.field("spec.capacity.storage", ""), "Its size."),
        Column("Access Modes", cells.access_modes("spec.accessModes"), "Its access modes."),
        Column(
            "Reclaim Policy",
            cells.field("spec.persistentVolumeReclaimPolicy"),
            "What happens when it is released.",
        ),
        Column("Status", cells.field("status.phase"), "Its phase."),
        Column("Claim", cells.claim_of, "The claim that it is bound to."),
        Column("StorageClass", cells.field("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass",
            cells.field("spec.volumeAttributesClassName", UNSET),
            "Its attributes class.",
        ),
        Column("Reason", cells.field("status.reason", ""), "The reason of its phase."),
        AGE,
        Column(
            "VolumeMode", cells.field("spec.volumeMode", UNSET), "Filesystem or Block.", priority=1
        ),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", cells.field("status.phase"), "Its phase."),
        Column("Volume", cells.field("spec.volumeName", ""), "The volume that it is bound to."),
        Column("Capacity", cells.field("status.capacity.storage", ""), "The size of its volume."),
        Column("Access Modes", cells.access_modes("spec.accessModes"), "Its access modes."),
        Column("StorageClass", cells.field("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass",
            cells.field("spec.volumeAttributesClassName", UNSET),
            "Its attributes class.",
        ),
        AGE,
        Column(
            "VolumeMode", cells.field("spec.volumeMode", UNSET), "Filesystem or Block.", priority=1
        ),
    ),
    "StorageClass": (
        NAME,
        Column("Provisioner", cells.field("provisioner"), "The driver of its volumes."),
        Column("ReclaimPolicy", cells.field("reclaimPolicy", "Delete"), "For released volumes."),
        Column("VolumeBindingMode", cells.field("volumeBindingMode"), "When volumes are bound."),
        Column(
            "AllowVolumeExpansion", cells.field("allowVolumeExpansion", False), "Can be expanded."
        ),
        AGE,
    ),
    "ResourceSlice": (
        NAME,
        Column("Node", cells.field("spec.nodeName", ""), "The node of its devices."),
        Column("Driver", cells.field("spec.driver", ""), "The driver of its devices."),
        Column("Pool", cells.field("spec.pool.name", ""), "The pool of its devices."),
        AGE,
    ),
    "CSIDriver": (
        NAME,
        Column("AttachRequired", cells.field("spec.attachRequired", True), "Attaching.", "boolean"),
        Column(
            "PodInfoOnMount",
            cells.field("spec.podInfoOnMount", False),
            "Passes pod details.",
            "boolean",
        ),
        Column(
            "StorageCapacity", cells.field("spec.storageCapacity", False), "Capacity.", "boolean"
        ),
        AGE,
    ),
    "CSINode": (
        NAME,
        Column("Drivers", cells.count_of("spec.drivers"), "Drivers it has.", "integer"),
        AGE,
    ),
}


@lru_cache(maxsize=128)
def columns(kind: str) -> tuple[Column, ...]:
    return COLUMNS.get(kind, (NAME, AGE))
