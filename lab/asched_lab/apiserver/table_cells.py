"""The cells of `kubectl get`: functions from an object and the present time to a cell."""

from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver.ages import age, seconds

JsonObject = dict[str, Any]
Cell = Callable[[JsonObject, float], Any]
NONE: Final = "<none>"
UNSET: Final = "<unset>"
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


def count_of(path: str) -> Cell:
    get = field(path, {})
    return lambda obj, now_s: len(get(obj, now_s))


def joined(path: str) -> Cell:
    get = field(path, ())
    return lambda obj, now_s: ",".join(map(str, get(obj, now_s))) or NONE


def field_text(path: str, default: Any = NONE) -> Cell:
    get = field(path, default)
    return lambda obj, now_s: str(get(obj, now_s))


def containers(member: str) -> Cell:
    get = field("spec.template.spec.containers", ())
    return lambda obj, now_s: ",".join(str(c.get(member, "")) for c in get(obj, now_s))


def access_modes(path: str) -> Cell:
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
