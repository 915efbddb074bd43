"""The columns of `kubectl get`, kind by kind: what each cell shows. Descriptions are our own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from asched.lab.apiserver.ages import age

JsonObject = dict[str, Any]
Cell = Callable[[JsonObject, float], Any]
NONE: Final = "<none>"
UNSET: Final = "<unset>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 show with `-o wide` only."""

    name: str
    cell: Cell
    description: str = ""
    type: str = "string"
    priority: int = 0


def _get(path: str, default: Any = NONE) -> Cell:
    steps = path.split(".")

    def cell(obj: JsonObject, _now_s: float) -> Any:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return default if value is None or value == "" else value

    return cell


def _keys(path: str) -> Cell:
    get = _get(path, {})
    return lambda obj, now_s: len(get(obj, now_s))


def _joined(path: str) -> Cell:
    get = _get(path, ())
    return lambda obj, now_s: ",".join(map(str, get(obj, now_s))) or NONE


def _text(path: str, default: Any = NONE) -> Cell:
    get = _get(path, default)
    return lambda obj, now_s: str(get(obj, now_s))


def _containers(member: str) -> Cell:
    get = _get("spec.template.spec.containers", ())
    return lambda obj, now_s: ",".join(str(c.get(member, "")) for c in get(obj, now_s))


def _access_modes(path: str) -> Cell:
    get = _get(path, ())
    return lambda obj, now_s: ",".join(ACCESS.get(mode, mode) for mode in get(obj, now_s))


def _labels(obj: JsonObject, _now_s: float) -> str:
    """A workload's selector as kubectl writes it."""
    selector = obj["spec"].get("selector") or {}
    pairs = [f"{k}={v}" for k, v in selector.get("matchLabels", selector).items() if v]
    return ",".join(pairs) or NONE


def _endpoints(obj: JsonObject, _now_s: float) -> str:
    shown = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    return ",".join(shown) or NONE


def _external(service: JsonObject, now_s: float) -> str:
    if service["spec"].get("type") == "ExternalName":
        return str(service["spec"].get("externalName", ""))
    return str(_joined("spec.externalIPs")(service, now_s))


def _age(obj: JsonObject, now_s: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now_s)


def _selector(path: str) -> Cell:
    get = _get(path, {})
    return lambda obj, now_s: ",".join(f"{k}={v}" for k, v in get(obj, now_s).items()) or NONE


def _pod_statuses(pod: JsonObject) -> list[JsonObject]:
    return pod.get("status", {}).get("containerStatuses") or []


def _pod_ready(pod: JsonObject, _now_s: float) -> str:
    containers = pod.get("spec", {}).get("containers") or ()
    return f"{sum(bool(s['ready']) for s in _pod_statuses(pod))}/{len(containers)}"


def _pod_status(pod: JsonObject, _now_s: float) -> str:
    status = pod.get("status", {})
    reason: str = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for state in (container["state"] for container in reversed(_pod_statuses(pod))):
        for kind in ("waiting", "terminated"):
            if state.get(kind, {}).get("reason"):
                reason = state[kind]["reason"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _pod_restarts(pod: JsonObject, _now_s: float) -> str:
    return str(sum(container["restartCount"] for container in _pod_statuses(pod)))


def _pod_gates(pod: JsonObject, _now_s: float) -> str:
    gates = pod.get("spec", {}).get("readinessGates") or ()
    if not gates:
        return NONE
    true = {
        condition["type"]
        for condition in pod["status"].get("conditions") or ()
        if condition["status"] == "True"
    }
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


def _node_status(node: JsonObject, _now_s: float) -> str:
    words = []
    for condition in node["status"].get("conditions") or ():
        if condition["type"] == "Ready":
            words = ["Ready" if condition["status"] == "True" else "NotReady"]
    words = words or ["Unknown"]
    if node["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: JsonObject, _now_s: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(k.removeprefix(prefix) for k in labels if k.startswith(prefix))) or NONE


def _node_address(kind: str) -> Cell:
    def cell(node: JsonObject, _now_s: float) -> str:
        for address in node["status"].get("addresses") or ():
            if address["type"] == kind:
                return str(address["address"])
        return NONE

    return cell


def _event_time(*members: str) -> Cell:
    def cell(event: JsonObject, now_s: float) -> str:
        series = event.get("series") or {}
        times = [series.get("lastObservedTime") if members[0] == "lastTimestamp" else None]
        times += [event.get(member) for member in members]
        return age(next((t for t in times if t), None), now_s)

    return cell


def _event_object(event: JsonObject, _now_s: float) -> str:
    about = event["involvedObject"]
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(event: JsonObject, _now_s: float) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def _event_count(event: JsonObject, _now_s: float) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def _ports(service: JsonObject, _now_s: float) -> str:
    shown = []
    for port in service["spec"].get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port['port']}{node}/{port['protocol']}")
    return ",".join(shown) or NONE


def _claim_of(volume: JsonObject, _now_s: float) -> str:
    ref = volume["spec"].get("claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def _ready_replicas(obj: JsonObject, _now_s: float) -> str:
    return f"{obj['status'].get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


#: Access modes in short.
ACCESS: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
NAME: Final = Column(
    "Name", _get("metadata.name", ""), "The object's name, unique in its namespace."
)
AGE: Final = Column("Age", _age, "Time since the object was made.")
_REPLICAS: Final = (
    Column("Desired", _get("spec.replicas", 0), "Replicas wanted.", "integer"),
    Column("Current", _get("status.replicas", 0), "Replicas there are.", "integer"),
    Column("Ready", _get("status.readyReplicas", 0), "Replicas that are ready.", "integer"),
)
_CONTAINERS: Final = (
    Column("Containers", _containers("name"), "Names of its containers.", priority=1),
    Column("Images", _containers("image"), "Images of its containers.", priority=1),
)
_WORKLOAD: Final = (*_CONTAINERS, Column("Selector", _labels, "How it finds pods.", priority=1))
#: kind -> its columns. Kinds that are not here show name and age.
COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "Pod": (
        NAME,
        Column("Ready", _pod_ready, "Ready containers of all containers."),
        Column("Status", _pod_status, "What the pod is doing."),
        Column("Restarts", _pod_restarts, "How often containers were restarted."),
        AGE,
        Column("IP", _get("status.podIP"), "The pod's address.", priority=1),
        Column("Node", _get("spec.nodeName"), "Where the pod is bound to.", priority=1),
        Column(
            "Nominated Node", _get("status.nominatedNodeName"), "Where room is made.", priority=1
        ),
        Column("Readiness Gates", _pod_gates, "Gates that are open, of all.", priority=1),
    ),
    "Node": (
        NAME,
        Column("Status", _node_status, "Whether the node is ready and takes pods."),
        Column("Roles", _node_roles, "Its roles, from its labels."),
        AGE,
        Column("Version", _get("status.nodeInfo.kubeletVersion", ""), "Version of its kubelet."),
        Column("Internal-IP", _node_address("InternalIP"), "Its inner address.", priority=1),
        Column("External-IP", _node_address("ExternalIP"), "Its outer address.", priority=1),
        Column("OS-Image", _get("status.nodeInfo.osImage", "<unknown>"), "Its system.", priority=1),
        Column(
            "Kernel-Version",
            _get("status.nodeInfo.kernelVersion", "<unknown>"),
            "Its kernel.",
            priority=1,
        ),
        Column(
            "Container-Runtime",
            _get("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
            "What runs its containers.",
            priority=1,
        ),
    ),
    "Event": (
        Column(
            "Last Seen",
            _event_time("lastTimestamp", "eventTime", "firstTimestamp"),
            "When it happened last.",
        ),
        Column("Type", _get("type", ""), "Normal or Warning."),
        Column("Reason", _get("reason", ""), "Why, as one word."),
        Column("Object", _event_object, "What it is about."),
        Column("Subobject", _get("involvedObject.fieldPath", ""), "Which part of it.", priority=1),
        Column("Source", _event_source, "Who says so.", priority=1),
        Column("Message", _get("message", ""), "What happened, for people."),
        Column(
            "First Seen",
            _event_time("firstTimestamp", "eventTime"),
            "When it happened first.",
            priority=1,
        ),
        Column("Count", _event_count, "How often.", priority=1),
        Column("Name", _get("metadata.name", ""), "The event's own name.", priority=1),
    ),
    "Namespace": (NAME, Column("Status", _get("status.phase"), "Active or Terminating."), AGE),
    "PriorityClass": (
        NAME,
        Column("Value", _get("value", 0), "The priority its pods get.", "integer"),
        Column("Global-Default", _get("globalDefault", False), "For pods without.", "boolean"),
        AGE,
        Column("PreemptionPolicy", _get("preemptionPolicy"), "Whether its pods preempt."),
    ),
    "PodDisruptionBudget": (
        NAME,
        Column("Min Available", _text("spec.minAvailable", "N/A"), "Pods that must stay."),
        Column("Max Unavailable", _text("spec.maxUnavailable", "N/A"), "Pods that may be away."),
        Column(
            "Allowed Disruptions",
            _get("status.disruptionsAllowed", 0),
            "Pods that may go now.",
            "integer",
        ),
        AGE,
    ),
    "Lease": (NAME, Column("Holder", _get("spec.holderIdentity", ""), "Who holds it."), AGE),
    "ConfigMap": (NAME, Column("Data", _keys("data"), "Entries."), AGE),
    "Secret": (
        NAME,
        Column("Type", _get("type"), "What it is for."),
        Column("Data", _keys("data"), "Entries."),
        AGE,
    ),
    "Endpoints": (NAME, Column("Endpoints", _endpoints, "Where it is served."), AGE),
    "Service": (
        NAME,
        Column("Type", _get("spec.type"), "How it is reached."),
        Column("Cluster-IP", _get("spec.clusterIP"), "Its address inside."),
        Column("External-IP", _external, "Its addresses outside."),
        Column("Port(s)", _ports, "What it listens on."),
        AGE,
        Column("Selector", _selector("spec.selector"), "Whom it serves by.", priority=1),
    ),
    "Deployment": (
        NAME,
        Column("Ready", _ready_replicas, "Ready replicas of those wanted."),
        Column("Up-to-date", _get("status.updatedReplicas", 0), "Replicas of now."),
        Column("Available", _get("status.availableReplicas", 0), "Replicas in use."),
        AGE,
        *_WORKLOAD,
    ),
    "ReplicaSet": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "ReplicationController": (NAME, *_REPLICAS, AGE, *_WORKLOAD),
    "StatefulSet": (
        NAME,
        Column("Ready", _ready_replicas, "Ready replicas of those wanted."),
        AGE,
        *_CONTAINERS,
    ),
    "PersistentVolume": (
        NAME,
        Column("Capacity", _get("spec.capacity.storage", ""), "Its size."),
        Column("Access Modes", _access_modes("spec.accessModes"), "How it may be mounted."),
        Column("Reclaim Policy", _get("spec.persistentVolumeReclaimPolicy"), "What happens after."),
        Column("Status", _get("status.phase"), "Its phase."),
        Column("Claim", _claim_of, "Who has it."),
        Column("StorageClass", _get("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass", _get("spec.volumeAttributesClassName", UNSET), "Its other."
        ),
        Column("Reason", _get("status.reason", ""), "Why it is as it is."),
        AGE,
        Column("VolumeMode", _get("spec.volumeMode", UNSET), "Files or a device.", priority=1),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", _get("status.phase"), "Its phase."),
        Column("Volume", _get("spec.volumeName", ""), "What it got."),
        Column("Capacity", _get("status.capacity.storage", ""), "How much it got."),
        Column("Access Modes", _access_modes("spec.accessModes"), "How it may be mounted."),
        Column("StorageClass", _get("spec.storageClassName", ""), "Its class."),
        Column(
            "VolumeAttributesClass", _get("spec.volumeAttributesClassName", UNSET), "Its other."
        ),
        AGE,
        Column("VolumeMode", _get("spec.volumeMode", UNSET), "Files or a device.", priority=1),
    ),
    "StorageClass": (
        NAME,
        Column("Provisioner", _get("provisioner"), "Who makes its volumes."),
        Column("ReclaimPolicy", _get("reclaimPolicy", "Delete"), "What happens after."),
        Column("VolumeBindingMode", _get("volumeBindingMode"), "When volumes are bound."),
        Column("AllowVolumeExpansion", _get("allowVolumeExpansion", False), "Whether they grow."),
        AGE,
    ),
    "ResourceSlice": (
        NAME,
        Column("Node", _get("spec.nodeName", ""), "Where its devices are."),
        Column("Driver", _get("spec.driver", ""), "Who drives them."),
        Column("Pool", _get("spec.pool.name", ""), "What they belong to."),
        AGE,
    ),
    "CSIDriver": (
        NAME,
        Column("AttachRequired", _get("spec.attachRequired", True), "Attaching.", "boolean"),
        Column("PodInfoOnMount", _get("spec.podInfoOnMount", False), "Pod details.", "boolean"),
        Column("StorageCapacity", _get("spec.storageCapacity", False), "Capacity.", "boolean"),
        AGE,
    ),
    "CSINode": (NAME, Column("Drivers", _keys("spec.drivers"), "Drivers it has.", "integer"), AGE),
}


@lru_cache(maxsize=128)
def columns(kind: str) -> tuple[Column, ...]:
    return COLUMNS.get(kind, (NAME, AGE))
