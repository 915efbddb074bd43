"""Validation of names, metadata, updates, and objects other than pods.

Errors are collected and raised together as one 422, in kube-apiserver's order. Kinds that are not
listed are not validated. Pods are almost immutable, other kinds have a few immutable fields.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asched_lab.apiserver import selectors, validation_pod
from asched_lab.apiserver.refusals import (
    FieldError,
    bad_value,
    bad_values,
    duplicate,
    forbidden_field,
    invalid,
    invalid_options,
    required,
    unsupported,
)
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import matches_label_selector
from asched_lab.apiserver.strategy import qos_class
from asched_lab.apiserver.validation_pod import EFFECTS, template_complaints

JsonObject = dict[str, Any]

USER_PRIORITY_MAX: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
NOTE_LENGTH_MAX: Final = 1024


def kind_complaints(res: Resource, obj: JsonObject) -> list[FieldError]:
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
        found += bad_values(f"{field}.key", key, selectors.qualified_faults(key))
        value = taint.get("value", "")
        found += bad_values(f"{field}.value", value, selectors.value_faults(value))
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
    found += bad_values("reportingController", controller, selectors.qualified_faults(controller))
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
    """Selector and template must belong together. Containers of a StatefulSet may mount the claims
    of its claim templates.
    """
    spec = obj["spec"]
    selector = spec.get("selector") or {}
    found = [] if selector else [required("spec.selector")]
    labels = (spec["template"]["metadata"] or {}).get("labels") or {}
    if not selector or not matches_label_selector(selector, labels):
        why = "`selector` does not match template `labels`"
        found.append(bad_value("spec.template.metadata.labels", labels or None, why))
    if spec.get("replicas", 0) < 0:
        why = "must be greater than or equal to 0"
        found.insert(0, bad_value("spec.replicas", spec["replicas"], why))
    claims = [claim["metadata"].get("name") for claim in spec.get("volumeClaimTemplates") or ()]
    return found + template_complaints(spec["template"], claims)


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


MAY_NOT_CHANGE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions"
    " to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it"
    " was previously negative)"
)
IMMUTABLE: Final = "field is immutable"
#: What the subresource `resize` may change.
RESIZED: Final = ("cpu", "memory")
#: Kinds whose selector is immutable.
SELECTOR_IMMUTABLE: Final = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"}
)
#: What may change in an event of the newer group.
EVENT_CHANGES: Final = frozenset({"metadata", "series"})
#: Why a terminating claim takes no more users.
ENDING: Final = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)


def pod_complaints(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """A pod may get other images, more tolerations, a deadline, fewer gates; the node selection of
    a gated one may be narrowed. Other changes are one error of the spec.
    """
    after, before = new["spec"], old["spec"]
    found = tolerations(after.get("tolerations") or [], before.get("tolerations") or [])
    found += gates(after, before)
    for member in ("containers", "initContainers"):
        if len(after.get(member) or ()) != len(before.get(member) or ()):
            if member == "containers" and not after[member]:
                found.append(required("spec.containers"))
            why = "pod updates may not add or remove containers"
            found.append(forbidden_field(f"spec.{member}", why))
    leveled = dict(after)
    for member in ("containers", "initContainers"):
        leveled[member] = _with_images(after.get(member) or [], before.get(member) or [])
    for member in ("tolerations", "schedulingGates", "activeDeadlineSeconds"):
        leveled[member] = before.get(member)
    grace = "terminationGracePeriodSeconds"
    if before.get(grace, 0) < 0 and after.get(grace) == 1:
        leveled[grace] = before[grace]
    if before.get("schedulingGates"):
        found += narrowing(after, before)
        leveled["nodeSelector"] = before.get("nodeSelector")
        leveled["affinity"] = _with_node_affinity(after, before)
    if not found and _without_absent(leveled) != _without_absent(before):
        found.append(forbidden_field("spec", MAY_NOT_CHANGE))
    return found


def resize_complaints(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """A pod may get other amounts of cpu and memory, as long as its QoS class stays."""
    after, before = new["spec"], old["spec"]
    for member in ("containers", "initContainers"):
        changes, before_value = after.get(member) or [], before.get(member) or []
        if len(changes) != len(before_value):
            why = f"{member} may not be added or removed on resize"
            return [forbidden_field(f"spec.{member}", why)]
        for index, (change, container) in enumerate(zip(changes, before_value, strict=True)):
            if change["name"] != container["name"]:
                why = f"{member} may not be renamed or reordered on resize"
                return [forbidden_field(f"spec.{member}[{index}].name", why)]
    found = []
    if qos_class(after) != old["status"].get("qosClass"):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(bad_value("spec", old["status"].get("qosClass"), why))
    for member in ("containers", "initContainers"):
        for index, change in enumerate(after.get(member) or ()):
            container = before[member][index]
            found += _amounts_taken_away(change, container, f"spec.{member}[{index}].resources")
            if _fixed_amounts(change) != _fixed_amounts(container):
                found.append(forbidden_field("spec", "only cpu and memory resources are mutable"))
    return found


def _amounts_taken_away(change: JsonObject, container: JsonObject, field: str) -> list[FieldError]:
    """Amounts may change, but not be removed."""
    return [
        forbidden_field(f"{field}.{kind}", f"resource {kind} cannot be removed")
        for kind in ("requests", "limits")
        if set(container["resources"].get(kind) or ()) - set(change["resources"].get(kind) or ())
    ]


def _fixed_amounts(container: JsonObject) -> JsonObject:
    """All that a resize may not change."""
    return {
        kind: {
            n: a for n, a in (container["resources"].get(kind) or {}).items() if n not in RESIZED
        }
        for kind in ("requests", "limits")
    }


def _without_absent(spec: JsonObject) -> JsonObject:
    return {name: value for name, value in spec.items() if value not in (None, [], {})}


def _with_images(after: list[JsonObject], before: list[JsonObject]) -> list[JsonObject]:
    if len(after) != len(before):
        return after
    return [
        {**new, "image": old["image"]} if new.get("image") and "image" in old else new
        for new, old in zip(after, before, strict=True)
    ]


def _with_node_affinity(after: JsonObject, before: JsonObject) -> JsonObject | None:
    affinity = dict(after.get("affinity") or {})
    before_value = (before.get("affinity") or {}).get("nodeAffinity")
    affinity.pop("nodeAffinity", None)
    if before_value is not None:
        affinity["nodeAffinity"] = before_value
    return affinity or before.get("affinity")


def tolerations(after: list[JsonObject], before: list[JsonObject]) -> list[FieldError]:
    def bare(toleration: JsonObject) -> JsonObject:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    present = [bare(toleration) for toleration in after]
    if all(bare(toleration) in present for toleration in before if not _is_default(toleration)):
        return []
    why = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden_field("spec.tolerations", why)]


def _is_default(toleration: JsonObject) -> bool:
    """The two tolerations of admission; an update that drops them gets them back."""
    return toleration.get("key", "").startswith("node.kubernetes.io/") and (
        toleration.get("effect") == "NoExecute"
    )


def gates(after: JsonObject, before: JsonObject) -> list[FieldError]:
    present = {gate["name"] for gate in before.get("schedulingGates") or ()}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(after.get("schedulingGates") or ())
        if gate["name"] not in present
    ]


def narrowing(after: JsonObject, before: JsonObject) -> list[FieldError]:
    """While a pod has gates, its node selection may be narrowed, never widened."""
    selector = after.get("nodeSelector") or {}
    before_value = before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before_value.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        return [bad_value("spec.nodeSelector", selector, why)]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    path = f"spec.affinity.nodeAffinity.{required}"
    old_rule = ((before.get("affinity") or {}).get("nodeAffinity") or {}).get(required)
    new_rule = ((after.get("affinity") or {}).get("nodeAffinity") or {}).get(required)
    if not old_rule:
        return []
    old_terms = old_rule["nodeSelectorTerms"] or []
    new_terms = (new_rule or {}).get("nodeSelectorTerms") or []
    if len(old_terms) != len(new_terms):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [bad_value(f"{path}.nodeSelectorTerms", new_terms, why)]
    for index, (old, new) in enumerate(zip(old_terms, new_terms, strict=True)):
        for member in ("matchExpressions", "matchFields"):
            rules = new.get(member) or []
            if any(rule not in rules for rule in old.get(member) or ()):
                why = "only additions are allowed (no mutations or deletions)"
                return [bad_value(f"{path}.nodeSelectorTerms[{index}]", new, why)]
    return []


def claim_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Only an allocated claim may be reserved; it is deallocated before the next allocation."""
    status, before = new.get("status") or {}, old.get("status") or {}
    field = "status.reservedFor"
    found: list[FieldError] = []
    users = status.get("reservedFor") or []
    seen: set[str] = set()
    for index, user in enumerate(users):
        if user["uid"] in seen:
            found.append(duplicate(f"{field}[{index}].uid", user["uid"]))
        seen.add(user["uid"])
    if users and not status.get("allocation"):
        found.append(forbidden_field(field, "may not be specified when `allocated` is not set"))
    elif new["metadata"].get("deletionTimestamp") and any(
        user not in (before.get("reservedFor") or []) for user in users
    ):
        found.append(forbidden_field(field, ENDING))
    after = status.get("allocation")
    if after and before.get("allocation") and after != before["allocation"]:
        found.append(bad_value("status.allocation", after, IMMUTABLE))
    return found


def update_complaints(res: Resource, new: JsonObject, old: JsonObject) -> list[FieldError]:
    if res.kind == "Event" and res.group:
        return [
            bad_value(member, new.get(member), IMMUTABLE)
            for member in sorted(set(new) | set(old))
            if member not in EVENT_CHANGES and new.get(member) != old.get(member)
        ]
    if res.kind == "PriorityClass":
        return [
            forbidden_field(member, "may not be changed in an update.")
            for member in ("value", "preemptionPolicy")
            if new.get(member) != old.get(member)
        ]
    if res.kind in SELECTOR_IMMUTABLE:
        after, before = new["spec"].get("selector"), old["spec"].get("selector")
        return [bad_value("spec.selector", after, IMMUTABLE)] if after != before else []
    return []


MANAGER_LENGTH_MAX: Final = 128
LABEL_NAMED: Final = frozenset({"Namespace", "Service"})
PATH_NAMED: Final = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")


def on_create(res: Resource, obj: JsonObject) -> None:
    """Raises ApiError 422 with every error of a new object."""
    metadata = obj["metadata"]
    complaints = name_complaints(res, metadata) + metadata_complaints(metadata)
    if res.kind == "Pod":
        complaints += validation_pod.spec_complaints(obj["spec"])
    else:
        complaints += kind_complaints(res, obj)
    if complaints:
        raise invalid(res, metadata.get("name", ""), complaints)


def on_update(
    res: Resource, new: JsonObject, old: JsonObject, sub: str, complaints: list[FieldError]
) -> None:
    """Raises ApiError 422 with every error of a changed object."""
    metadata, stored = new["metadata"], old["metadata"]
    complaints += metadata_complaints(metadata) + finalizer_complaints(metadata, stored)
    if sub != "status":
        if res.kind == "Pod" and sub == "resize":
            complaints += resize_complaints(new, old)
        elif res.kind == "Pod":
            complaints += pod_complaints(new, old)
        else:
            complaints += update_complaints(res, new, old)
            complaints += kind_complaints(res, new)
    elif res.kind == "ResourceClaim":
        complaints += claim_status(new, old)
    if complaints:
        raise invalid(res, stored["name"], complaints)


def name_complaints(res: Resource, metadata: JsonObject) -> list[FieldError]:
    name = metadata.get("name", "")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if res.kind in PATH_NAMED:
        faults = selectors.path_segment_faults(name)
    elif res.kind in LABEL_NAMED:
        faults = selectors.label_faults(name)
    else:
        faults = selectors.subdomain_faults(name)
    return bad_values("metadata.name", name, faults)


def metadata_complaints(metadata: JsonObject) -> list[FieldError]:
    complaints = validation_pod.label_complaints(metadata.get("labels") or {}, "metadata.labels")
    for key in metadata.get("annotations") or ():
        complaints += bad_values(
            "metadata.annotations", key, selectors.qualified_faults(key.lower())
        )
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        complaints += bad_values(
            "metadata.finalizers", finalizer, selectors.qualified_faults(finalizer)
        )
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            complaints.append(bad_value(f"metadata.finalizers[{index}]", finalizer, why))
    return complaints


def finalizer_complaints(metadata: JsonObject, stored: JsonObject) -> list[FieldError]:
    if not stored.get("deletionTimestamp"):
        return []
    fresh = [
        f for f in metadata.get("finalizers") or () if f not in (stored.get("finalizers") or ())
    ]
    if not fresh:
        return []
    listed = ", ".join(f'"{finalizer}"' for finalizer in fresh)
    why = (
        "no new finalizers can be added if the object is being deleted, found new finalizers"
        f" []string{{{listed}}}"
    )
    return [forbidden_field("metadata.finalizers", why)]


def check_write_options(kind: str, query: Mapping[str, str]) -> None:
    """Raises ApiError 422 on CreateOptions, UpdateOptions or PatchOptions."""
    complaints = dry_run_complaints([query["dryRun"]] if query.get("dryRun") else [])
    if len(query.get("fieldManager", "").encode()) > MANAGER_LENGTH_MAX:
        why = f"Too long: may not be more than {MANAGER_LENGTH_MAX} bytes"
        complaints.append(FieldError("fieldManager", "FieldValueTooLong", why))
    mode = query.get("fieldValidation", "")
    if mode not in {"", "Ignore", "Warn", "Strict"}:
        complaints.append(unsupported("fieldValidation", mode, ("", "Ignore", "Strict", "Warn")))
    if complaints:
        raise invalid_options(kind, complaints)


def dry_run_complaints(given: list[str]) -> list[FieldError]:
    if set(given) <= {"All"}:
        return []
    return [unsupported("dryRun", given, ("All",))]


def check_delete_options(options: JsonObject) -> None:
    """Raises ApiError 422 on DeleteOptions."""
    complaints = dry_run_complaints(options.get("dryRun") or [])
    policy = options.get("propagationPolicy")
    if policy is not None and "orphanDependents" in options:
        why = "orphanDependents and deletionPropagation cannot be both set"
        complaints.append(bad_value("propagationPolicy", policy, why))
    elif policy is not None and policy not in PROPAGATIONS:
        complaints.append(unsupported("propagationPolicy", policy, (*PROPAGATIONS, "nil")))
    if complaints:
        raise invalid_options("DeleteOptions", complaints)
