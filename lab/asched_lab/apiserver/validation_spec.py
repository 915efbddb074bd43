"""Validation of simple parts of a pod spec: volumes and mounts, enumerations, numbers, names."""

from collections.abc import Iterable
from typing import Any, Final

from asched_lab.apiserver import names, quantities
from asched_lab.apiserver.statuses import (
    FieldError,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    shown,
    unsupported,
)

JsonObject = dict[str, Any]

DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
INT32_MAX: Final = 2**31 - 1
STANDARD_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
IDENTITIES: Final = ("runAsUser", "runAsGroup", "fsGroup")
NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"


def complaints(spec: JsonObject) -> list[FieldError]:
    """Errors in the parts of a spec other than containers and placement rules."""
    found = volumes(spec.get("volumes") or ())
    if spec["dnsPolicy"] not in DNS_POLICIES:
        found.append(unsupported("spec.dnsPolicy", spec["dnsPolicy"], DNS_POLICIES))
    if spec.get("nodeName"):
        faults = names.subdomain_faults(spec["nodeName"])
        found += [bad_value("spec.nodeName", spec["nodeName"], fault) for fault in faults]
    for member in ("hostname", "subdomain"):
        if spec.get(member):
            faults = names.label_faults(spec[member])
            found += [bad_value(f"spec.{member}", spec[member], fault) for fault in faults]
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= INT32_MAX:
        why = f"must be between 1 and {INT32_MAX}, inclusive"
        found.append(bad_value("spec.activeDeadlineSeconds", deadline_s, why))
    for member in IDENTITIES:
        number = spec["securityContext"].get(member)
        if number is not None and not 0 <= number <= INT32_MAX:
            why = f"must be between 0 and {INT32_MAX}, inclusive"
            found.append(bad_value(f"spec.securityContext.{member}", number, why))
    for name, amount in sorted(spec.get("overhead", {}).items()):
        if quantities.value(amount) < 0:
            why = "must be greater than or equal to 0"
            found.append(bad_value(f"spec.overhead.limits[{name}]", amount, why))
    return found


def volumes(listed: Iterable[JsonObject]) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for index, volume in enumerate(listed):
        field, name = f"spec.volumes[{index}]", volume["name"]
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim["claimName"]:
            found.append(required(f"{field}.persistentVolumeClaim.claimName"))
        if not name:
            found.append(required(f"{field}.name"))
        else:
            found += [bad_value(f"{field}.name", name, f) for f in names.label_faults(name)]
        if name in seen:
            found.append(duplicate(f"{field}.name", name))
        seen.add(name)
    return found


def container(spec: JsonObject, value: JsonObject, field: str) -> list[FieldError]:
    """Errors in a container's image, environment and mounts."""
    found = []
    for index, env in enumerate(value.get("env") or ()):
        if not env["name"]:
            found.append(required(f"{field}.env[{index}].name"))
    known = {volume["name"] for volume in spec.get("volumes") or () if volume["name"]}
    for index, mount in enumerate(value.get("volumeMounts") or ()):
        path = f"{field}.volumeMounts[{index}]"
        if not mount["name"]:
            found.append(required(f"{path}.name"))
        elif mount["name"] not in known:
            text = f"Not found: {shown(mount['name'])}"
            found.append(FieldError(f"{path}.name", "FieldValueNotFound", text))
        if not mount["mountPath"]:
            found.append(required(f"{path}.mountPath"))
    policy = value["imagePullPolicy"]
    if policy not in PULL_POLICIES:
        found.append(unsupported(f"{field}.imagePullPolicy", policy, PULL_POLICIES))
    return found


def resource_name(name: str, field: str) -> list[FieldError]:
    """A container may request standard resources and fully qualified ones."""
    found = [bad_value(field, name, fault) for fault in names.qualified_faults(name)]
    standard = name in STANDARD_RESOURCES or name.startswith("hugepages-")
    if not found and "/" not in name and not standard:
        found.append(bad_value(field, name, "must be a standard resource type or fully qualified"))
        found.append(bad_value(field, name, "must be a standard resource for containers"))
    return found


def huge_pages(requirements: JsonObject, field: str) -> list[FieldError]:
    given = {**requirements.get("limits", {}), **requirements.get("requests", {})}
    if any(name.startswith("hugepages-") for name in given) and not given.keys() & {
        "cpu",
        "memory",
    }:
        return [forbidden_field(field, "HugePages require cpu or memory")]
    return []


def label_selector(selector: JsonObject | None, field: str) -> list[FieldError]:
    """A LabelSelector object: keys, values, and operators with the right number of values."""
    found: list[FieldError] = []
    path = f"{field}.matchLabels"
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        found += [bad_value(path, key, fault) for fault in names.qualified_faults(key)]
        found += [bad_value(path, value, fault) for fault in names.value_faults(value)]
    for index, rule in enumerate((selector or {}).get("matchExpressions") or ()):
        path = f"{field}.matchExpressions[{index}]"
        operator, values = rule["operator"], rule.get("values") or ()
        if operator in {"In", "NotIn"}:
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                found.append(required(f"{path}.values", why))
        elif operator in {"Exists", "DoesNotExist"}:
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden_field(f"{path}.values", why))
        else:
            found.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
        faults = names.qualified_faults(rule["key"])
        found += [bad_value(f"{path}.key", rule["key"], fault) for fault in faults]
    return found


def warnings(pod: JsonObject) -> list[str]:
    """Warnings for accepted values that are probably mistakes."""
    spec = pod["spec"]
    found = []
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if "labelSelector" not in constraint:
            found.append(f"spec.topologySpreadConstraints[{index}].labelSelector: {NULL_SELECTOR}")
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for member in (
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ):
            for index, rule in enumerate(rules.get(member) or ()):
                inner = ".podAffinityTerm" if "podAffinityTerm" in rule else ""
                if "labelSelector" not in rule.get("podAffinityTerm", rule):
                    found.append(
                        f"spec.affinity.{kind}.{member}[{index}]{inner}.labelSelector:"
                        f" {NULL_SELECTOR}"
                    )
    return found
