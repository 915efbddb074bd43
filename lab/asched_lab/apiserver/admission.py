"""Admission rules that matter to a scheduler: namespace, priority, tolerations, protection, limits.

Each rule is a function that changes the new object in place or raises; `on_create` and `on_update`
list which rules apply to which kind, in the order they run. LimitRange and ResourceQuota count as
far as they apply to new pods.
"""

from decimal import Decimal
from typing import Any, Final

from asched_lab.apiserver import quantities
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.defaults import containers_of
from asched_lab.apiserver.refusals import not_found, refused
from asched_lab.apiserver.resources import (
    NAMESPACES,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    Resource,
    find,
)

JsonObject = dict[str, Any]

LIMIT_RANGES: Final = find("limitranges")
QUOTAS: Final = find("resourcequotas")
NOTE: Final = "kubernetes.io/limit-ranger"


def _in_namespace(ctx: Context, res: Resource, namespace: str) -> list[JsonObject]:
    table = ctx.store.table(res.storage)
    return [table.records[key].obj for key in table.range(namespace)] if table.records else []


def _container_items(ctx: Context, pod: JsonObject) -> list[JsonObject]:
    return [
        item
        for limit_range in _in_namespace(ctx, LIMIT_RANGES, pod["metadata"]["namespace"])
        for item in limit_range["spec"]["limits"] or ()
        if item["type"] == "Container"
    ]


def apply_ranges(ctx: Context, pod: JsonObject) -> None:
    """Fill in requests and limits of containers."""
    for item in _container_items(ctx, pod):
        _fill_containers(pod, item)


def check_ranges(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Check containers against the bounds. Raises ApiError 403."""
    for item in _container_items(ctx, pod):
        _check_containers(res, pod, item)


def _fill_containers(pod: JsonObject, item: JsonObject) -> None:
    notes = []
    for place, container in containers_of(pod["spec"]):
        kind = "init container" if place.startswith("init") else "container"
        resources = container["resources"]
        for member, source, word in (
            ("requests", "defaultRequest", "request"),
            ("limits", "default", "limit"),
        ):
            given = []
            for name, amount in sorted(item.get(source, {}).items()):
                if name not in resources.get(member, {}):
                    resources.setdefault(member, {})[name] = amount
                    given.append(name)
            if given:
                notes.append(f"{', '.join(given)} {word} for {kind} {container['name']}")
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[NOTE] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _check_containers(res: Resource, pod: JsonObject, item: JsonObject) -> None:
    for _, container in containers_of(pod["spec"]):
        resources = container["resources"]
        for name, bound in sorted(item.get("max", {}).items()):
            for member, word in (("limits", "limit"), ("requests", "request")):
                amount = resources.get(member, {}).get(name)
                if amount is not None and quantities.value(amount) > quantities.value(bound):
                    why = f"maximum {name} usage per Container is {bound}, but {word} is {amount}"
                    raise refused(res, pod["metadata"]["name"], why)
        for name, bound in sorted(item.get("min", {}).items()):
            amount = resources.get("requests", {}).get(name)
            if amount is not None and quantities.value(amount) < quantities.value(bound):
                why = f"minimum {name} usage per Container is {bound}, but request is {amount}"
                raise refused(res, pod["metadata"]["name"], why)


def pod_usage(pod: JsonObject) -> dict[str, Decimal]:
    """The usage of one pod in a quota."""
    usage = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for container in pod["spec"]["containers"] or ():
        for member in ("requests", "limits"):
            for name, amount in container["resources"].get(member, {}).items():
                for label in (
                    {f"{member}.{name}", name} if member == "requests" else {f"{member}.{name}"}
                ):
                    usage[label] = usage.get(label, Decimal(0)) + quantities.value(amount)
    return usage


def charge_quota(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Refuse a pod that exceeds a quota's status. Raises ApiError 403.

    A controller counts the usage; here the stored status decides.
    """
    quotas = _in_namespace(ctx, QUOTAS, pod["metadata"]["namespace"])
    if not quotas:
        return
    usage = pod_usage(pod)
    for quota in quotas:
        status = quota["status"]
        over = []
        for name, hard in sorted(status.get("hard", {}).items()):
            used = status.get("used", {}).get(name, "0")
            requested = usage.get(name)
            if requested and quantities.value(used) + requested > quantities.value(hard):
                over.append((name, quantities.canonical(str(requested)), used, hard))
        if over:
            requested_text = ",".join(f"{name}={requested}" for name, requested, _, _ in over)
            used_text = ",".join(f"{name}={used}" for name, _, used, _ in over)
            hard_text = ",".join(f"{name}={hard}" for name, _, _, hard in over)
            why = (
                f"exceeded quota: {quota['metadata']['name']}, requested: {requested_text},"
                f" used: {used_text}, limited: {hard_text}"
            )
            raise refused(res, pod["metadata"]["name"], why)


#: Seconds a pod stays on a node that is not ready or not reachable, unless the pod sets its own.
TOLERATION_S: Final = 300
CONDITION_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
IMMORTAL_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
ACCOUNT_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
PREEMPT_LOWER: Final = "PreemptLowerPriority"
TOKEN_LIFETIME_S: Final = 3607
STORAGE_CLASSES: Final = find("storageclasses")
RUNTIME_CLASSES: Final = find("runtimeclasses")


def on_create(ctx: Context, res: Resource, obj: JsonObject) -> None:
    """Every rule for a new object. Raises ApiError 403 or 404."""
    if res.namespaced:
        namespace_must_be_open(ctx, res, obj)
    if res.kind == "Pod":
        resolve_priority(ctx, res, obj)
        tolerate_node_conditions(obj["spec"])
        if ctx.options.service_accounts:
            give_account(ctx, res, obj)
        apply_runtime_class(ctx, res, obj)
        apply_ranges(ctx, obj)
    elif res.kind in ("PodGroup", "CompositePodGroup") and res.group == PRIORITY_CLASSES.group:
        resolve_group_priority(ctx, res, obj)
    elif res.kind == "Node" and ctx.options.node_taints:
        obj["spec"].setdefault("taints", []).append(
            {"key": CONDITION_TAINTS[0], "effect": "NoSchedule"}
        )
    elif res.kind == "PersistentVolumeClaim":
        protect(obj, "kubernetes.io/pvc-protection")
        choose_storage_class(ctx, obj)
    elif res.kind == "PersistentVolume":
        protect(obj, "kubernetes.io/pv-protection")
    elif res.kind == "PriorityClass":
        only_one_default(ctx, res, obj)


def check(ctx: Context, res: Resource, obj: JsonObject) -> None:
    """Rules that only accept or refuse, applied to a valid object. Raises ApiError 403."""
    if res.kind == "Pod":
        check_ranges(ctx, res, obj)
        charge_quota(ctx, res, obj)


def on_update(res: Resource, obj: JsonObject, old: JsonObject) -> None:
    """Rules that apply to updates of the main object as well."""
    if res.kind == "Pod":
        tolerate_node_conditions(obj["spec"])
        for name in ("priority", "preemptionPolicy"):
            if name in old["spec"]:
                obj["spec"].setdefault(name, old["spec"][name])


def on_delete(res: Resource, name: str) -> None:
    """Raises ApiError 403 for objects that may not be deleted."""
    if res.kind == "Namespace" and name in IMMORTAL_NAMESPACES:
        raise refused(res, name, "this namespace may not be deleted")
    if res.kind == "PriorityClass" and name.startswith("system-"):
        raise refused(res, name, "this is a system priority class and cannot be deleted")


def namespace_must_be_open(ctx: Context, res: Resource, obj: JsonObject) -> None:
    name = obj["metadata"]["namespace"]
    namespace = ctx.get(NAMESPACES, "", name)
    if namespace is None:
        raise not_found(NAMESPACES, name)
    if namespace.obj["status"].get("phase") == "Terminating":
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {name} because it is being terminated"
        raise refused(res, obj["metadata"].get("name", ""), why, [cause])


def resolve_priority(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Set the priority of the class, named or default; a value in the request must agree."""
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    value, policy = by_class(ctx, res, pod)
    if spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec;"
            f" priority admission controller computed {value} from the given PriorityClass name"
        )
        raise refused(res, name, why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be"
            f" provided in pod spec; priority admission controller computed {policy} from the"
            " given PriorityClass name"
        )
        raise refused(res, name, why)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def resolve_group_priority(ctx: Context, res: Resource, group: JsonObject) -> None:
    """The same for a pod group, which has no policy of its own."""
    spec, name = group["spec"], group["metadata"].get("name", "")
    value, _ = by_class(ctx, res, group)
    if spec.get("priority", value) != value:
        why = (
            f"priority set in the pod group ({spec['priority']}) must match the priority computed"
            f" ({value}) based on the priority class set in the spec"
        )
        raise refused(res, name, why)
    spec["priority"] = value
    if res.version == "v1alpha2":  # since then a structure, without a default here
        spec.setdefault("disruptionMode", "Pod")


def by_class(ctx: Context, res: Resource, obj: JsonObject) -> tuple[int, str]:
    """Priority and policy of the class that an object names, or of the default class, whose name is
    then set. Raises ApiError 403.
    """
    spec, chosen = obj["spec"], obj["spec"].get("priorityClassName")
    if chosen:
        record = ctx.get(PRIORITY_CLASSES, "", chosen)
        if record is None:
            name = obj["metadata"].get("name", "")
            raise refused(res, name, f"no PriorityClass with name {chosen} was found")
        priority_class: JsonObject | None = record.obj
    else:
        priority_class = default_priority_class(ctx)
    if priority_class is None:
        return 0, PREEMPT_LOWER
    spec["priorityClassName"] = priority_class["metadata"]["name"]
    return priority_class["value"], priority_class.get("preemptionPolicy", PREEMPT_LOWER)


def default_priority_class(ctx: Context) -> JsonObject | None:
    """The class marked as default; of several, the one with the smallest value."""
    classes = [
        record.obj
        for record in ctx.store.table(PRIORITY_CLASSES.storage).records.values()
        if record.obj.get("globalDefault")
    ]
    return min(classes, key=lambda obj: int(obj["value"])) if classes else None


def only_one_default(ctx: Context, res: Resource, obj: JsonObject) -> None:
    if not obj.get("globalDefault"):
        return
    present = default_priority_class(ctx)
    if present is not None and present["metadata"]["name"] != obj["metadata"].get("name"):
        marked = present["metadata"]["name"]
        why = f"PriorityClass {marked} is already marked as default. Only one default can exist"
        raise refused(res, obj["metadata"].get("name", ""), why)


def apply_runtime_class(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Set overhead and placement of the runtime class; without a class there is no overhead."""
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    chosen = spec.get("runtimeClassName")
    record = ctx.get(RUNTIME_CLASSES, "", chosen) if chosen else None
    if chosen and record is None:
        raise refused(res, name, f'pod rejected: RuntimeClass "{chosen}" not found')
    runtime = record.obj if record is not None else {}
    overhead = (runtime.get("overhead") or {}).get("podFixed")
    if spec.get("overhead") and not overhead:
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise refused(res, name, f"pod rejected: {why}")
    if overhead and spec.setdefault("overhead", dict(overhead)) != overhead:
        why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise refused(res, name, f"pod rejected: {why}")
    placement = runtime.get("scheduling") or {}
    for key, value in (placement.get("nodeSelector") or {}).items():
        if spec.setdefault("nodeSelector", {}).setdefault(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value};"
                f" pod.spec.nodeSelector[{key}] = {spec['nodeSelector'][key]}"
            )
            raise refused(res, name, why)
    for toleration in placement.get("tolerations") or ():
        if toleration not in spec["tolerations"]:
            spec["tolerations"].append(dict(toleration))


def tolerate_node_conditions(spec: JsonObject) -> None:
    """Add two NoExecute tolerations of five minutes, unless the pod tolerates these taints."""
    tolerations = spec.get("tolerations") or []
    for key in CONDITION_TAINTS:
        if not any(
            toleration.get("key", "") in {key, ""}
            and toleration.get("effect", "") in {"NoExecute", ""}
            for toleration in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATION_S,
                }
            )
    spec["tolerations"] = tolerations


def protect(obj: JsonObject, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def choose_storage_class(ctx: Context, claim: JsonObject) -> None:
    """Set the newest class marked as default if the claim names none."""
    spec = claim["spec"]
    if "storageClassName" in spec or spec.get("volumeName"):
        return
    marked = [
        record.obj["metadata"]
        for record in ctx.store.table(STORAGE_CLASSES.storage).records.values()
        if (record.obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    if marked:
        newest = max(marked, key=lambda metadata: str(metadata["creationTimestamp"]))
        spec["storageClassName"] = newest["name"]


def give_account(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """The pod's account must exist; its token is mounted unless pod or account opted out."""
    spec, metadata = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or "default"
    account = ctx.get(SERVICE_ACCOUNTS, metadata["namespace"], name)
    if account is None:
        why = (
            f"error looking up service account {metadata['namespace']}/{name}:"
            f' serviceaccount "{name}" not found'
        )
        raise refused(res, metadata.get("name", ""), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    mount = spec.get(
        "automountServiceAccountToken", account.obj.get("automountServiceAccountToken", True)
    )
    if mount:
        mount_token(spec, f"kube-api-access-{ctx.new_suffix()}")


def mount_token(spec: JsonObject, volume: str) -> None:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[JsonObject] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_LIFETIME_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    used = False
    for container in (*spec.get("initContainers", ()), *(spec["containers"] or ())):
        mounts = container.setdefault("volumeMounts", [])
        if all(mount["mountPath"] != ACCOUNT_MOUNT for mount in mounts):
            mounts.append({"name": volume, "readOnly": True, "mountPath": ACCOUNT_MOUNT})
            used = True
    if used:
        projected = {"sources": sources, "defaultMode": 0o644}
        spec.setdefault("volumes", []).append({"name": volume, "projected": projected})
