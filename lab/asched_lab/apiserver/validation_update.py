"""Validation of updates: pods are almost immutable, other kinds have a few immutable fields."""

from typing import Any, Final

from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.statuses import (
    FieldError,
    bad_value,
    duplicate,
    forbidden_field,
    required,
)
from asched_lab.apiserver.strategy import qos_class

JsonObject = dict[str, Any]

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


def complaints(res: Resource, new: JsonObject, old: JsonObject) -> list[FieldError]:
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
