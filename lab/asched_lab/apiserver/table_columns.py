"""The columns of `kubectl get`, kind by kind: what each cell shows. Descriptions are our own."""

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
AGE: Final = Column("Age", cells.age_of, "Time since the object was made.")
_REPLICAS: Final = (
    Column("Desired", cells.field("spec.replicas", 0), "Replicas wanted.", "integer"),
    Column("Current", cells.field("status.replicas", 0), "Replicas there are.", "integer"),
    Column("Ready", cells.field("status.readyReplicas", 0), "Replicas that are ready.", "integer"),
)
_CONTAINERS: Final = (
    Column("Containers", cells.containers("name"), "Names of its containers.", priority=1),
    Column("Images", cells.containers("image"), "Images of its containers.", priority=1),
)
_WORKLOAD: Final = (
    *_CONTAINERS,
    Column("Selector", cells.selector_text, "How it finds pods.", priority=1),
)
#: kind -> its columns. Kinds that are not here show name and age.
COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "Pod": (
        NAME,
        Column("Ready", cells.pod_ready, "Ready containers of all containers."),
        Column("Status", cells.pod_status, "What the pod is doing."),
        Column("Restarts", cells.pod_restarts, "How often containers were restarted."),
        AGE,
        Column("IP", cells.field("status.podIP"), "The pod's address.", priority=1),
        Column("Node", cells.field("spec.nodeName"), "Where the pod is bound to.", priority=1),
        Column(
            "Nominated Node",
            cells.field("status.nominatedNodeName"),
            "Where room is made.",
            priority=1,
        ),
        Column("Readiness Gates", cells.pod_gates, "Gates that are open, of all.", priority=1),
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
            "Its system.",
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
            "What runs its containers.",
            priority=1,
        ),
    ),
    "Event": (
        Column(
            "Last Seen",
            cells.event_time("lastTimestamp", "eventTime", "firstTimestamp"),
            "When it happened last.",
        ),
        Column("Type", cells.field("type", ""), "Normal or Warning."),
        Column("Reason", cells.field("reason", ""), "Why, as one word."),
        Column("Object", cells.event_object, "What it is about."),
        Column(
            "Subobject",
            cells.field("involvedObject.fieldPath", ""),
            "Which part of it.",
            priority=1,
        ),
        Column("Source", cells.event_source, "Who says so.", priority=1),
        Column("Message", cells.field("message", ""), "What happened, for people."),
        Column(
            "First Seen",
            cells.event_time("firstTimestamp", "eventTime"),
            "When it happened first.",
            priority=1,
        ),
        Column("Count", cells.event_count, "How often.", priority=1),
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
            "Pods that may be away.",
        ),
        Column(
            "Allowed Disruptions",
            cells.field("status.disruptionsAllowed", 0),
            "Pods that may go now.",
            "integer",
        ),
        AGE,
    ),
    "Lease": (NAME, Column("Holder", cells.field("spec.holderIdentity", ""), "Who holds it."), AGE),
    "ConfigMap": (NAME, Column("Data", cells.count_of("data"), "Entries."), AGE),
    "Secret": (
        NAME,
        Column("Type", cells.field("type"), "What it is for."),
        Column("Data", cells.count_of("data"), "Entries."),
        AGE,
    ),
    "Endpoints": (NAME, Column("Endpoints", cells.endpoints, "Where it is served."), AGE),
    "Service": (
        NAME,
        Column("Type", cells.field("spec.type"), "How it is reached."),
        Column("Cluster-IP", cells.field("spec.clusterIP"), "Its address inside."),
        Column("External-IP", cells.external, "Its addresses outside."),
        Column("Port(s)", cells.ports, "What it listens on."),
        AGE,
        Column("Selector", cells.selector("spec.selector"), "Whom it serves by.", priority=1),
    ),
    "Deployment": (
        NAME,
        Column("Ready", cells.ready_replicas, "Ready replicas of those wanted."),
        Column("Up-to-date", cells.field("status.updatedReplicas", 0), "Replicas of now."),
        Column("Available", cells.field("status.availableReplicas", 0), "Replicas in use."),
        AGE,
        *_WORKLOAD,
    ),
    "ReplicaSet": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "ReplicationController": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "Job": (
        NAME,
        Column("Status", cells.job_status, "Whether it runs, is complete or has failed."),
        Column("Completions", cells.job_completions, "Pods that ended well, of those wanted."),
        Column("Duration", cells.job_duration, "How long it has taken."),
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
        Column("Access Modes", cells.access_modes("spec.accessModes"), "How it may be mounted."),
        Column(
            "Reclaim Policy",
            cells.field("spec.persistentVolumeReclaimPolicy"),
            "What happens after.",
        ),
        Column("Status", cells.field("status.phase"), "Its phase."),
        Column("Claim", cells.claim_of, "Who has it."),
        Column("StorageClass", cells.field("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass",
            cells.field("spec.volumeAttributesClassName", UNSET),
            "Its other.",
        ),
        Column("Reason", cells.field("status.reason", ""), "Why it is as it is."),
        AGE,
        Column(
            "VolumeMode", cells.field("spec.volumeMode", UNSET), "Files or a device.", priority=1
        ),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", cells.field("status.phase"), "Its phase."),
        Column("Volume", cells.field("spec.volumeName", ""), "What it got."),
        Column("Capacity", cells.field("status.capacity.storage", ""), "How much it got."),
        Column("Access Modes", cells.access_modes("spec.accessModes"), "How it may be mounted."),
        Column("StorageClass", cells.field("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass",
            cells.field("spec.volumeAttributesClassName", UNSET),
            "Its other.",
        ),
        AGE,
        Column(
            "VolumeMode", cells.field("spec.volumeMode", UNSET), "Files or a device.", priority=1
        ),
    ),
    "StorageClass": (
        NAME,
        Column("Provisioner", cells.field("provisioner"), "Who makes its volumes."),
        Column("ReclaimPolicy", cells.field("reclaimPolicy", "Delete"), "What happens after."),
        Column("VolumeBindingMode", cells.field("volumeBindingMode"), "When volumes are bound."),
        Column(
            "AllowVolumeExpansion", cells.field("allowVolumeExpansion", False), "Whether they grow."
        ),
        AGE,
    ),
    "ResourceSlice": (
        NAME,
        Column("Node", cells.field("spec.nodeName", ""), "Where its devices are."),
        Column("Driver", cells.field("spec.driver", ""), "Who drives them."),
        Column("Pool", cells.field("spec.pool.name", ""), "What they belong to."),
        AGE,
    ),
    "CSIDriver": (
        NAME,
        Column("AttachRequired", cells.field("spec.attachRequired", True), "Attaching.", "boolean"),
        Column(
            "PodInfoOnMount", cells.field("spec.podInfoOnMount", False), "Pod details.", "boolean"
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
