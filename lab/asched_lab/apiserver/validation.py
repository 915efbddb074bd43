"""Validation of names and metadata; the modules beside validate kinds.

Errors are collected and raised together as one 422, in kube-apiserver's order.
"""

from collections.abc import Mapping
from typing import Any, Final

from asched_lab.apiserver import names, validation_kinds, validation_pod, validation_update
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.statuses import (
    FieldError,
    bad_value,
    forbidden_field,
    invalid,
    invalid_options,
    required,
    unsupported,
)

JsonObject = dict[str, Any]

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
        complaints += validation_pod.complaints(obj)
    else:
        complaints += validation_kinds.complaints(res, obj)
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
            complaints += validation_update.resize_complaints(new, old)
        elif res.kind == "Pod":
            complaints += validation_update.pod_complaints(new, old)
        else:
            complaints += validation_update.complaints(res, new, old)
            complaints += validation_kinds.complaints(res, new)
    elif res.kind == "ResourceClaim":
        complaints += validation_update.claim_status(new, old)
    if complaints:
        raise invalid(res, stored["name"], complaints)


def name_complaints(res: Resource, metadata: JsonObject) -> list[FieldError]:
    name = metadata.get("name", "")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if res.kind in PATH_NAMED:
        faults = names.path_segment_faults(name)
    elif res.kind in LABEL_NAMED:
        faults = names.label_faults(name)
    else:
        faults = names.subdomain_faults(name)
    return [bad_value("metadata.name", name, fault) for fault in faults]


def label_complaints(labels: Mapping[str, str], field: str) -> list[FieldError]:
    """Labels of any field: keys must be qualified names, values label values."""
    complaints = []
    for key, value in labels.items():
        complaints += [bad_value(field, key, fault) for fault in names.qualified_faults(key)]
        complaints += [bad_value(field, value, fault) for fault in names.value_faults(value)]
    return complaints


def metadata_complaints(metadata: JsonObject) -> list[FieldError]:
    complaints = label_complaints(metadata.get("labels") or {}, "metadata.labels")
    for key in metadata.get("annotations") or ():
        complaints += [
            bad_value("metadata.annotations", key, fault)
            for fault in names.qualified_faults(key.lower())
        ]
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        complaints += [
            bad_value("metadata.finalizers", finalizer, fault)
            for fault in names.qualified_faults(finalizer)
        ]
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
