"""Tables, the form that `kubectl get` requests: columns by kind, one row per object.

A line of `COLUMNS` is a kind and its columns; every other kind shows its name and age. A column is
`Name=cell`, with `+` in front if only `-o wide` shows it and `_` for a space, and its type behind a
colon unless that is string. A cell is the path of a field, with the text for a field that is not
set behind `|`, or one of `CELLS`, functions from an object and the present time, with arguments.
"""

import calendar
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from asched_lab.apiserver.bodies import to_v1
from asched_lab.apiserver.resources import Resource


def age(moment: str | None, now_s: float) -> str:
    """The age, as kubectl prints it: `5s`, `3m20s`, `2h`, `4d`."""
    if not moment:
        return "<unknown>"
    return duration(int(max(0, now_s - seconds(moment))))


def seconds(moment: str) -> int:
    """A timestamp of an object in whole seconds since the epoch."""
    return calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))


def duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        rest = hours % 24
        return f"{days}d{rest}h" if rest else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"


JsonObject = dict[str, Any]
Cell = Callable[[JsonObject, float], Any]
NONE: Final = "<none>"
#: Access modes in short.
ACCESS: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def field(path: str, default: Any = NONE) -> Cell:
    steps = path.split(".")

    def cell(obj: JsonObject, _now_s: float) -> Any:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return default if value is None or value == "" else value

    return cell


def count(path: str) -> Cell:
    get = field(path, {})
    return lambda obj, now_s: len(get(obj, now_s))


def joined(path: str) -> Cell:
    get = field(path, ())
    return lambda obj, now_s: ",".join(map(str, get(obj, now_s))) or NONE


def text(path: str, default: str) -> Cell:
    get = field(path, default)
    return lambda obj, now_s: str(get(obj, now_s))


def containers(member: str) -> Cell:
    get = field("spec.template.spec.containers", ())
    return lambda obj, now_s: ",".join(str(c.get(member, "")) for c in get(obj, now_s))


def modes(path: str) -> Cell:
    get = field(path, ())
    return lambda obj, now_s: ",".join(ACCESS.get(mode, mode) for mode in get(obj, now_s))


def selector_text(obj: JsonObject, _now_s: float) -> str:
    """A workload's selector as kubectl writes it."""
    selector = obj["spec"].get("selector") or {}
    pairs = [f"{k}={v}" for k, v in selector.get("matchLabels", selector).items() if v]
    return ",".join(pairs) or NONE


def endpoints(obj: JsonObject, _now_s: float) -> str:
    shown = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    return ",".join(shown) or NONE


def external(service: JsonObject, now_s: float) -> str:
    if service["spec"].get("type") == "ExternalName":
        return str(service["spec"].get("externalName", ""))
    return str(joined("spec.externalIPs")(service, now_s))


def age_of(obj: JsonObject, now_s: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now_s)


def selector(path: str) -> Cell:
    get = field(path, {})
    return lambda obj, now_s: ",".join(f"{k}={v}" for k, v in get(obj, now_s).items()) or NONE


def pod_statuses(pod: JsonObject) -> list[JsonObject]:
    return pod.get("status", {}).get("containerStatuses") or []


def pod_ready(pod: JsonObject, _now_s: float) -> str:
    containers = pod.get("spec", {}).get("containers") or ()
    return f"{sum(bool(s['ready']) for s in pod_statuses(pod))}/{len(containers)}"


def pod_status(pod: JsonObject, _now_s: float) -> str:
    status = pod.get("status", {})
    reason: str = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for state in (container["state"] for container in reversed(pod_statuses(pod))):
        for kind in ("waiting", "terminated"):
            if state.get(kind, {}).get("reason"):
                reason = state[kind]["reason"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def pod_restarts(pod: JsonObject, _now_s: float) -> str:
    return str(sum(container["restartCount"] for container in pod_statuses(pod)))


def pod_gates(pod: JsonObject, _now_s: float) -> str:
    gates = pod.get("spec", {}).get("readinessGates") or ()
    if not gates:
        return NONE
    true = {
        condition["type"]
        for condition in pod["status"].get("conditions") or ()
        if condition["status"] == "True"
    }
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


def node_status(node: JsonObject, _now_s: float) -> str:
    words = []
    for condition in node["status"].get("conditions") or ():
        if condition["type"] == "Ready":
            words = ["Ready" if condition["status"] == "True" else "NotReady"]
    words = words or ["Unknown"]
    if node["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: JsonObject, _now_s: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(k.removeprefix(prefix) for k in labels if k.startswith(prefix))) or NONE


def node_address(kind: str) -> Cell:
    def cell(node: JsonObject, _now_s: float) -> str:
        for address in node["status"].get("addresses") or ():
            if address["type"] == kind:
                return str(address["address"])
        return NONE

    return cell


def event_time(*members: str) -> Cell:
    def cell(event: JsonObject, now_s: float) -> str:
        series = event.get("series") or {}
        times = [series.get("lastObservedTime") if members[0] == "lastTimestamp" else None]
        times += [event.get(member) for member in members]
        return age(next((t for t in times if t), None), now_s)

    return cell


def event_object(event: JsonObject, _now_s: float) -> str:
    about = event["involvedObject"]
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def event_source(event: JsonObject, _now_s: float) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def event_count(event: JsonObject, _now_s: float) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def ports(service: JsonObject, _now_s: float) -> str:
    shown = []
    for port in service["spec"].get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port['port']}{node}/{port['protocol']}")
    return ",".join(shown) or NONE


def claim_of(volume: JsonObject, _now_s: float) -> str:
    ref = volume["spec"].get("claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def ready_replicas(obj: JsonObject, _now_s: float) -> str:
    return f"{obj['status'].get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


def job_status(job: JsonObject, _now_s: float) -> str:
    true_types = {entry["type"] for entry in _conditions(job) if entry["status"] == "True"}
    return next(
        (kind for kind in ("Complete", "Failed", "Suspended") if kind in true_types), "Running"
    )


def job_completions(job: JsonObject, _now_s: float) -> str:
    succeeded, spec = (job.get("status") or {}).get("succeeded", 0), job["spec"]
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallel = spec.get("parallelism", 1)
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def job_duration(job: JsonObject, now_s: float) -> str:
    status = job.get("status") or {}
    if "startTime" not in status:
        return ""
    end_s = seconds(status["completionTime"]) if "completionTime" in status else now_s
    return age(status["startTime"], end_s)


def _conditions(job: JsonObject) -> list[JsonObject]:
    return (job.get("status") or {}).get("conditions") or []


COLUMNS: Final = """
Pod Name Ready=pod_ready Status=pod_status Restarts=pod_restarts Age +IP=status.podIP
  +Node=spec.nodeName +Nominated_Node=status.nominatedNodeName +Readiness_Gates=pod_gates
Node Name Status=node_status Roles=node_roles Age Version=status.nodeInfo.kubeletVersion|
  +Internal-IP=node_address(InternalIP) +External-IP=node_address(ExternalIP)
  +OS-Image=status.nodeInfo.osImage|<unknown>
  +Kernel-Version=status.nodeInfo.kernelVersion|<unknown>
  +Container-Runtime=status.nodeInfo.containerRuntimeVersion|<unknown>
Event Last_Seen=event_time(lastTimestamp,eventTime,firstTimestamp) Type=type| Reason=reason|
  Object=event_object +Subobject=involvedObject.fieldPath| +Source=event_source Message=message|
  +First_Seen=event_time(firstTimestamp,eventTime) +Count=event_count +Name
Namespace Name Status=status.phase Age
PriorityClass Name Value=value|0:integer Global-Default=globalDefault|false:boolean Age
  PreemptionPolicy=preemptionPolicy
PodDisruptionBudget Name Min_Available=text(spec.minAvailable,N/A)
  Max_Unavailable=text(spec.maxUnavailable,N/A)
  Allowed_Disruptions=status.disruptionsAllowed|0:integer Age
Lease Name Holder=spec.holderIdentity| Age
ConfigMap Name Data=count(data) Age
Secret Name Type=type Data=count(data) Age
Endpoints Name Endpoints=endpoints Age
Service Name Type=spec.type Cluster-IP=spec.clusterIP External-IP=external Port(s)=ports Age
  +Selector=selector(spec.selector)
Deployment Name Ready=ready_replicas Up-to-date=status.updatedReplicas|0
  Available=status.availableReplicas|0 Age {containers} +Selector=selector_text
ReplicaSet Name {replicas} Age {containers} +Selector=selector_text
ReplicationController Name {replicas} Age {containers} +Selector=selector_text
Job Name Status=job_status Completions=job_completions Duration=job_duration Age {containers}
  +Selector=selector_text
StatefulSet Name Ready=ready_replicas Age {containers}
PersistentVolume Name Capacity=spec.capacity.storage| Access_Modes=modes(spec.accessModes)
  Reclaim_Policy=spec.persistentVolumeReclaimPolicy Status=status.phase Claim=claim_of
  StorageClass=spec.storageClassName|
  VolumeAttributesClass=spec.volumeAttributesClassName|<unset> Reason=status.reason| Age
  +VolumeMode=spec.volumeMode|<unset>
PersistentVolumeClaim Name Status=status.phase Volume=spec.volumeName|
  Capacity=status.capacity.storage| Access_Modes=modes(spec.accessModes)
  StorageClass=spec.storageClassName|
  VolumeAttributesClass=spec.volumeAttributesClassName|<unset> Age
  +VolumeMode=spec.volumeMode|<unset>
StorageClass Name Provisioner=provisioner ReclaimPolicy=reclaimPolicy|Delete
  VolumeBindingMode=volumeBindingMode AllowVolumeExpansion=allowVolumeExpansion|false Age
ResourceSlice Name Node=spec.nodeName| Driver=spec.driver| Pool=spec.pool.name| Age
CSIDriver Name AttachRequired=spec.attachRequired|true:boolean
  PodInfoOnMount=spec.podInfoOnMount|false:boolean
  StorageCapacity=spec.storageCapacity|false:boolean Age
CSINode Name Drivers=count(spec.drivers):integer Age
"""
#: Columns of several kinds.
PARTS: Final = {
    "{containers}": "+Containers=containers(name) +Images=containers(image)",
    "{replicas}": "Desired=spec.replicas|0:integer Current=status.replicas|0:integer"
    " Ready=status.readyReplicas|0:integer",
}
CELLS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        age_of, claim_of, containers, count, endpoints, event_count, event_object, event_source,
        event_time, external, job_completions, job_duration, job_status, modes, node_address,
        node_roles, node_status, pod_gates, pod_ready, pod_restarts, pod_status, ports,
        ready_replicas, selector, selector_text, text,
    )
}  # fmt: skip
DEFAULTS: Final = {"0": 0, "false": False, "true": True}


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 show with `-o wide` only."""

    name: str
    cell: Cell
    type: str
    priority: int


def _column(line: str) -> Column:
    name, _, shown = line.lstrip("+").partition("=")
    shown, _, type_ = (shown or {"Name": "metadata.name|", "Age": "age_of"}[name]).partition(":")
    call = re.fullmatch(r"(\w+)(?:\((.*)\))?", shown)
    if call is not None and call[1] in CELLS:
        cell = CELLS[call[1]]
        cell = cell(*call[2].split(",")) if call[2] else cell
    else:
        path, has_default, default = shown.partition("|")
        cell = field(path, DEFAULTS.get(default, default) if has_default else NONE)
    return Column(name.replace("_", " "), cell, type_ or "string", int(line.startswith("+")))


@lru_cache(maxsize=1)
def _all_columns() -> dict[str, tuple[Column, ...]]:
    """Kind -> its columns."""
    table = COLUMNS.replace("\n  ", " ")
    for name, part in PARTS.items():
        table = table.replace(name, part)
    lines = (line.split() for line in table.strip().splitlines())
    return {kind: tuple(map(_column, columns)) for kind, *columns in lines}


def columns(kind: str) -> tuple[Column, ...]:
    return _all_columns().get(kind) or (_column("Name"), _column("Age"))


@lru_cache(maxsize=128)
def definitions(kind: str) -> tuple[JsonObject, ...]:
    """The column definitions of a kind."""
    return tuple(
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": column.priority,
        }
        for column in columns(kind)
    )


def table(
    res: Resource,
    objects: Sequence[JsonObject],
    metadata: JsonObject,
    now_s: float,
    *,
    include: str = "Metadata",
    with_columns: bool = True,
) -> JsonObject:
    """A whole table; `include`: what each row has besides its cells."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": list(definitions(res.kind)) if with_columns else None,
        "rows": [row(res, obj, now_s, include) for obj in objects],
    }


def row(res: Resource, obj: JsonObject, now_s: float, include: str) -> JsonObject:
    cells = [column.cell(obj, now_s) for column in columns(res.kind)]
    if include == "None":
        carried = None
    elif include == "Object":
        content = to_v1(obj) if res.kind == "Event" and res.group else obj
        carried = {"kind": res.kind, "apiVersion": res.api_version, **content}
    else:
        carried = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return {"cells": cells, "object": carried}
