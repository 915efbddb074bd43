"""Validation of objects other than pods; kinds that are not listed are not validated."""

from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver import names
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import matches_label_selector
from asched_lab.apiserver.statuses import (
    FieldError,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from asched_lab.apiserver.validation_pod import EFFECTS, template_complaints

JsonObject = dict[str, Any]

USER_PRIORITY_MAX: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
NOTE_LENGTH_MAX: Final = 1024


def complaints(res: Resource, obj: JsonObject) -> list[FieldError]:
    if res.kind == "Event":
        return event(obj, strict=bool(res.group))
    check = CHECKS.get(res.kind)
    return check(obj) if check is not None else []


def node(obj: JsonObject) -> list[FieldError]:
    found = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj["spec"].get("taints") or ()):
        field = f"metadata.taints[{index}]"
        key, effect = taint["key"], taint["effect"]
        found += [bad_value(f"{field}.key", key, fault) for fault in names.qualified_faults(key)]
        value = taint.get("value", "")
        found += [bad_value(f"{field}.value", value, fault) for fault in names.value_faults(value)]
        if not effect:
            found.append(required(f"{field}.effect"))
        elif effect not in EFFECTS:
            found.append(unsupported(f"{field}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            internal = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            why = "taints must be unique by key and effect pair"
            complaint = duplicate(field, internal)
            found.append(FieldError(field, complaint.reason, f"{complaint.detail}: {why}"))
        seen.add((key, effect))
    return found


def budget(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    if "minAvailable" not in spec or "maxUnavailable" not in spec:
        return []
    internal = {
        "MinAvailable": spec["minAvailable"],
        "Selector": spec.get("selector"),
        "MaxUnavailable": spec["maxUnavailable"],
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
    return [bad_value("spec", internal, "minAvailable and maxUnavailable cannot be both set")]


def priority_class(obj: JsonObject) -> list[FieldError]:
    name, value = obj["metadata"].get("name", ""), obj["value"]
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) == value:
            return []
        why = (
            "priority class names with 'system-' prefix are reserved for system use only. error:"
            f" {name} is not a known system priority class"
        )
        return [forbidden_field("metadata.name", why)]
    if value > USER_PRIORITY_MAX:
        why = f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
        return [forbidden_field("value", why)]
    return []


def lease(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    found = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        bad = spec["leaseDurationSeconds"]
        found.append(bad_value("spec.leaseDurationSeconds", bad, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        bad = spec["leaseTransitions"]
        why = "must be greater than or equal to 0"
        found.append(bad_value("spec.leaseTransitions", bad, why))
    return found


def event(obj: JsonObject, *, strict: bool) -> list[FieldError]:
    """Events of the newer group need all fields; those of the older only matching namespaces."""
    found = event_namespace(obj, strict=strict)
    if not strict:
        return found
    if obj["eventTime"] is None:
        found.append(required("eventTime"))
    controller = obj.get("reportingComponent", "")
    if not controller:
        found.append(required("reportingController"))
    found += [
        bad_value("reportingController", controller, fault)
        for fault in names.qualified_faults(controller)
    ]
    for member in ("reportingInstance", "action", "reason"):
        if not obj.get(member):
            found.append(required(member))
    kind = obj.get("type", "")
    if kind not in {"Normal", "Warning"}:
        found.append(bad_value("type", "", f"has invalid value: {kind}"))
    if len(obj.get("message", "")) > NOTE_LENGTH_MAX:
        found.append(bad_value("message", "", f"can have at most {NOTE_LENGTH_MAX} characters"))
    return found


def event_namespace(obj: JsonObject, *, strict: bool) -> list[FieldError]:
    about = obj["involvedObject"].get("namespace", "")
    own = obj["metadata"]["namespace"]
    expected = {"default", "kube-system"} if not about else {about}
    if own in expected or (strict and about):
        return []
    return [bad_value("involvedObject.namespace", about, "does not match event.namespace")]


def service(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    if spec.get("ports") or spec.get("clusterIP") == "None" or spec["type"] == "ExternalName":
        return []
    return [required("spec.ports")]


def workload(obj: JsonObject) -> list[FieldError]:
    """Selector and template must belong together."""
    spec = obj["spec"]
    selector = spec.get("selector") or {}
    found = [] if selector else [required("spec.selector")]
    labels = (spec["template"]["metadata"] or {}).get("labels") or {}
    if not selector or not matches_label_selector(selector, labels):
        why = "`selector` does not match template `labels`"
        found.append(bad_value("spec.template.metadata.labels", labels or None, why))
    return found + template_complaints(spec["template"])


def claim(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    found = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes", "at least 1 access mode is required"))
    if "storage" not in spec["resources"].get("requests", {}):
        found.append(required("spec.resources[storage]"))
    return found


def volume(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    found = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes"))
    if not spec.get("capacity"):
        found.append(required("spec.capacity"))
    return found


def storage_class(obj: JsonObject) -> list[FieldError]:
    return [] if obj["provisioner"] else [required("provisioner")]


CHECKS: Final[dict[str, Callable[[JsonObject], list[FieldError]]]] = {
    "Node": node,
    "PodDisruptionBudget": budget,
    "PriorityClass": priority_class,
    "Lease": lease,
    "Service": service,
    "Deployment": workload,
    "ReplicaSet": workload,
    "StatefulSet": workload,
    "DaemonSet": workload,
    "PersistentVolumeClaim": claim,
    "PersistentVolume": volume,
    "StorageClass": storage_class,
}
