"""Validation of new pods, as far as schedulers and load generators need it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from asched_lab.apiserver import quantities, selectors
from asched_lab.apiserver.refusals import (
    FieldError,
    bad_value,
    bad_values,
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


def part_complaints(spec: JsonObject) -> list[FieldError]:
    """Errors in the parts of a spec other than containers and placement rules."""
    found = volumes(spec.get("volumes") or ())
    if spec["dnsPolicy"] not in DNS_POLICIES:
        found.append(unsupported("spec.dnsPolicy", spec["dnsPolicy"], DNS_POLICIES))
    if spec.get("nodeName"):
        faults = selectors.subdomain_faults(spec["nodeName"])
        found += bad_values("spec.nodeName", spec["nodeName"], faults)
    for member in ("hostname", "subdomain"):
        if spec.get(member):
            faults = selectors.label_faults(spec[member])
            found += bad_values(f"spec.{member}", spec[member], faults)
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
            found += bad_values(f"{field}.name", name, selectors.label_faults(name))
        if name in seen:
            found.append(duplicate(f"{field}.name", name))
        seen.add(name)
    return found


def container_parts(
    value: JsonObject, field: str, volume_names: Collection[str]
) -> list[FieldError]:
    """Errors in a container's image, environment and mounts."""
    found = []
    for index, env in enumerate(value.get("env") or ()):
        if not env["name"]:
            found.append(required(f"{field}.env[{index}].name"))
    for index, mount in enumerate(value.get("volumeMounts") or ()):
        path = f"{field}.volumeMounts[{index}]"
        if not mount["name"]:
            found.append(required(f"{path}.name"))
        elif mount["name"] not in volume_names:
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
    found = bad_values(field, name, selectors.qualified_faults(name))
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


def label_complaints(labels: Mapping[str, str], field: str) -> list[FieldError]:
    """Labels of any field: keys must be qualified names, values label values."""
    complaints = []
    for key, value in labels.items():
        complaints += bad_values(field, key, selectors.qualified_faults(key))
        complaints += bad_values(field, value, selectors.value_faults(value))
    return complaints


def label_selector(selector: JsonObject | None, field: str) -> list[FieldError]:
    """A LabelSelector object: keys, values, and operators with the right number of values."""
    found = label_complaints((selector or {}).get("matchLabels") or {}, f"{field}.matchLabels")
    for index, rule in enumerate((selector or {}).get("matchExpressions") or ()):
        path = f"{field}.matchExpressions[{index}]"
        found += rule_values(rule, path, numeric=False)
        faults = selectors.qualified_faults(rule["key"])
        found += bad_values(f"{path}.key", rule["key"], faults)
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


RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
OPERATORS: Final = ("Equal", "Exists")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
PORT_MAX: Final = 65535


def template_complaints(template: JsonObject, claims: Iterable[str] = ()) -> list[FieldError]:
    """The same rules for the pod template of a workload. `claims`: volumes that its pods get."""
    return [
        FieldError(
            error.field.replace("spec.", "spec.template.spec.", 1), error.reason, error.detail
        )
        for error in spec_complaints(template["spec"], claims)
    ]


def spec_complaints(spec: JsonObject, claims: Iterable[str] = ()) -> list[FieldError]:
    """Errors of a pod's spec. `claims`: names of volumes besides those of the spec."""
    found = part_complaints(spec)
    volume_names = {*claims, *(v["name"] for v in spec.get("volumes") or () if v["name"])}
    found += container_list(spec, "containers", volume_names)
    if not spec["containers"]:
        found.append(required("spec.containers"))
    found += container_list(spec, "initContainers", volume_names)
    if spec["restartPolicy"] not in RESTART_POLICIES:
        found.append(unsupported("spec.restartPolicy", spec["restartPolicy"], RESTART_POLICIES))
    found += label_complaints(spec.get("nodeSelector") or {}, "spec.nodeSelector")
    found += affinity(spec.get("affinity") or {})
    found += tolerations(spec.get("tolerations") or ())
    found += gates(spec)
    found += spread(spec.get("topologySpreadConstraints") or ())
    if "resources" in spec:
        found += resources(spec["resources"], "spec.resources")
    return found


def container_list(
    spec: JsonObject, member: str, volume_names: Collection[str]
) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(spec.get(member) or ()):
        field = f"spec.{member}[{index}]"
        name = container["name"]
        if not name:
            found.append(required(f"{field}.name"))
        else:
            found += bad_values(f"{field}.name", name, selectors.label_faults(name))
        if name in seen:
            found.append(duplicate(f"{field}.name", name))
        seen.add(name)
        if not container.get("image"):
            found.append(required(f"{field}.image"))
        found += ports(container, field, host_network=spec.get("hostNetwork", False))
        found += container_parts(container, field, volume_names)
        found += resources(container["resources"], f"{field}.resources")
        found += huge_pages(container["resources"], f"{field}.resources")
    return found


def ports(container: JsonObject, field: str, *, host_network: bool) -> list[FieldError]:
    found = []
    for index, port in enumerate(container.get("ports") or ()):
        path = f"{field}.ports[{index}]"
        number, host = port["containerPort"], port.get("hostPort", 0)
        if not number:
            found.append(required(f"{path}.containerPort"))
        for name, value in (("containerPort", number), ("hostPort", host)):
            if value and not 0 < value <= PORT_MAX:
                why = f"must be between 1 and {PORT_MAX}, inclusive"
                found.append(bad_value(f"{path}.{name}", value, why))
        if host_network and host != number:
            why = "must match `containerPort` when `hostNetwork` is true"
            found.append(bad_value(f"{path}.hostPort", host, why))
    return found


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one: whole devices that cannot be overcommitted."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def resources(requirements: JsonObject, field: str) -> list[FieldError]:
    limits, requests = requirements.get("limits", {}), requirements.get("requests", {})
    found: list[FieldError] = []
    for member, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            path = f"{field}.{member}[{name}]"
            found += resource_name(name, path)
            value = quantities.value(amount)
            if value < 0:
                why = "must be greater than or equal to 0"
                found.append(bad_value(path, amount, why))
            if is_extended(name) and value != value.to_integral_value():
                found.append(bad_value(path, amount, "must be an integer"))
    for name, amount in sorted(requests.items()):
        bound = limits.get(name)
        if bound is None and (is_extended(name) or name.startswith("hugepages-")):
            why = "Limit must be set for non overcommitable resources"
            found.append(required(f"{field}.limits", why))
        elif bound is not None and quantities.value(amount) > quantities.value(bound):
            why = f"must be less than or equal to {name} limit of {bound}"
            found.append(bad_value(f"{field}.requests", amount, why))
        elif bound is not None and is_extended(name) and amount != bound:
            why = f"must be equal to {name} limit of {bound}"
            found.append(bad_value(f"{field}.requests", amount, why))
    return found


def tolerations(listed: Iterable[JsonObject]) -> list[FieldError]:
    found = []
    for index, toleration in enumerate(listed):
        field = f"spec.tolerations[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key:
            found += bad_values(f"{field}.key", key, selectors.qualified_faults(key))
        elif operator != "Exists":
            why = (
                "operator must be Exists when `key` is empty, which means"
                ' "match all values and all keys"'
            )
            found.append(bad_value(f"{field}.operator", operator, why))
        effect = toleration.get("effect", "")
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(bad_value(f"{field}.effect", effect, why))
        if operator in {"", "Equal"}:
            value = toleration.get("value", "")
            found += bad_values(f"{field}.operator", value, selectors.value_faults(value))
        elif operator == "Exists":
            if toleration.get("value"):
                why = "value must be empty when `operator` is 'Exists'"
                found.append(bad_value(f"{field}.operator", toleration["value"], why))
        else:
            found.append(unsupported(f"{field}.operator", operator, OPERATORS))
        if effect and effect not in EFFECTS:
            found.append(unsupported(f"{field}.effect", effect, EFFECTS))
    return found


def gates(spec: JsonObject) -> list[FieldError]:
    listed = spec.get("schedulingGates") or ()
    found = []
    seen: set[str] = set()
    for index, gate in enumerate(listed):
        field, name = f"spec.schedulingGates[{index}]", gate["name"]
        found += bad_values(field, name, selectors.qualified_faults(name))
        if name in seen:
            found.append(duplicate(field, name))
        seen.add(name)
    if listed and spec.get("nodeName"):
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field("spec.nodeName", why))
    return found


def spread(constraints: Sequence[JsonObject]) -> list[FieldError]:
    found = []
    for index, constraint in enumerate(constraints):
        field = f"spec.topologySpreadConstraints[{index}]"
        if constraint["maxSkew"] <= 0:
            why = "must be greater than zero"
            found.append(bad_value(f"{field}.maxSkew", constraint["maxSkew"], why))
        if not constraint["topologyKey"]:
            found.append(required(f"{field}.topologyKey", "can not be empty"))
        when = constraint["whenUnsatisfiable"]
        if when not in UNSATISFIABLE:
            found.append(unsupported(f"{field}.whenUnsatisfiable", when, UNSATISFIABLE))
        pair = (constraint["topologyKey"], when)
        rest = [
            (other["topologyKey"], other["whenUnsatisfiable"]) for other in constraints[index + 1 :]
        ]
        if pair in rest:
            text = f"{{{pair[0]}, {pair[1]}}}"
            found.append(duplicate(f"{field}.{{topologyKey, whenUnsatisfiable}}", text))
        domains = constraint.get("minDomains")
        if domains is not None and domains <= 0:
            found.append(bad_value(f"{field}.minDomains", domains, "must be greater than zero"))
        if domains is not None and when == "ScheduleAnyway":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            found.append(bad_value(f"{field}.minDomains", domains, why))
        for member in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(member)
            if policy is not None and policy not in {"Honor", "Ignore"}:
                found.append(unsupported(f"{field}.{member}", policy, ("Honor", "Ignore")))
        selector = constraint.get("labelSelector")
        found += label_selector(selector, f"{field}.labelSelector")
    return found


def affinity(value: JsonObject) -> list[FieldError]:
    found = node_affinity(value.get("nodeAffinity") or {})
    for member in ("podAffinity", "podAntiAffinity"):
        rules = value.get(member) or {}
        field = f"spec.affinity.{member}"
        for index, term in enumerate(rules.get(REQUIRED) or ()):
            found += pod_term(term, f"{field}.{REQUIRED}[{index}]")
        for index, weighted in enumerate(rules.get(PREFERRED) or ()):
            path = f"{field}.{PREFERRED}[{index}]"
            found += weight(weighted, path)
            found += pod_term(weighted["podAffinityTerm"], f"{path}.podAffinityTerm")
    return found


def weight(term: JsonObject, field: str) -> list[FieldError]:
    if 1 <= term["weight"] <= 100:
        return []
    return [bad_value(f"{field}.weight", term["weight"], "must be in the range 1-100")]


def pod_term(term: JsonObject, field: str) -> list[FieldError]:
    key = term["topologyKey"]
    path = f"{field}.topologyKey"
    found = [] if key else [required(path, "can not be empty")]
    found += bad_values(path, key, selectors.qualified_faults(key))
    for member in ("labelSelector", "namespaceSelector"):
        found += label_selector(term.get(member), f"{field}.{member}")
    if "labelSelector" not in term:
        found += [
            forbidden_field(
                f"{field}.{member}", "must not be specified when labelSelector is not set"
            )
            for member in ("matchLabelKeys", "mismatchLabelKeys")
            if term.get(member)
        ]
    for index, namespace in enumerate(term.get("namespaces") or ()):
        place = f"{field}.namespaces[{index}]"
        found += bad_values(place, namespace, selectors.label_faults(namespace))
    return found


def node_affinity(rules: JsonObject) -> list[FieldError]:
    field = "spec.affinity.nodeAffinity"
    found = []
    if REQUIRED in rules:
        terms = rules[REQUIRED]["nodeSelectorTerms"]
        path = f"{field}.{REQUIRED}.nodeSelectorTerms"
        if not terms:
            found.append(required(path, "must have at least one node selector term"))
        for index, term in enumerate(terms or ()):
            found += node_term(term, f"{path}[{index}]")
    for index, preferred in enumerate(rules.get(PREFERRED) or ()):
        path = f"{field}.{PREFERRED}[{index}]"
        found += weight(preferred, path)
        found += node_term(preferred["preference"], f"{path}.preference")
    return found


def node_term(term: JsonObject, field: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, rule in enumerate(term.get("matchFields") or ()):
        path = f"{field}.matchFields[{index}]"
        if len(rule.get("values") or ()) != 1:
            why = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            found.append(required(f"{path}.values", why))
        if rule["key"] != "metadata.name":
            found.append(bad_value(f"{path}.key", rule["key"], "not a valid field selector key"))
    for index, rule in enumerate(term.get("matchExpressions") or ()):
        path = f"{field}.matchExpressions[{index}]"
        found += rule_values(rule, path, numeric=True)
        found += bad_values(f"{path}.key", rule["key"], selectors.qualified_faults(rule["key"]))
    return found


def rule_values(rule: JsonObject, field: str, *, numeric: bool) -> list[FieldError]:
    """Whether a rule has as many values as its operator takes; `numeric`: with Gt and Lt."""
    operator, count = rule["operator"], len(rule.get("values") or ())
    path = f"{field}.values"
    if operator in {"In", "NotIn"}:
        why = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if count else [required(path, why)]
    if operator in {"Exists", "DoesNotExist"}:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(path, why)] if count else []
    if numeric and operator in {"Gt", "Lt"}:
        why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if count == 1 else [required(path, why)]
    return [bad_value(f"{field}.operator", operator, "not a valid selector operator")]
