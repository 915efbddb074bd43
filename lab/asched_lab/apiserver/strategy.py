"""Fields that a write may set and fields that belong to the server, kind by kind.

`prepare_create` and `prepare_update` work in place on a decoded object with its defaults
(`defaults.py`); they set identity, first status and generation, and restore what the used
subresource may not change.
"""

from typing import Any, Final

from asched_lab.apiserver import quantities, schema
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.defaults import apply_defaults, containers_of
from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]


#: Metadata that only the server writes.
OWNED: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
#: Metadata that an update takes from the stored object.
RETAINED: Final = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
#: Kinds whose status subresource does not change labels.
LABELS_BY_MAIN_RESOURCE: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
QOS_RESOURCES: Final = ("cpu", "memory")


def prepare_create(ctx: Context, res: Resource, obj: JsonObject) -> None:
    """Set identity, generation and first status of a new object."""
    metadata = obj["metadata"]
    for name in OWNED:
        metadata.pop(name, None)
    metadata["uid"] = ctx.new_uid()
    metadata["creationTimestamp"] = ctx.now()
    if res.counted:
        metadata["generation"] = 1
    if res.sub("status") is not None and "s" not in res.traits:
        obj["status"] = {}
        if res.kind != "Pod":
            renew_status(res, obj)
    match res.kind:
        case "Pod":
            fold_label_keys(obj)
            obj["status"] = first_pod_status(ctx, obj)
            if obj["spec"]["terminationGracePeriodSeconds"] < 0:
                obj["spec"]["terminationGracePeriodSeconds"] = 1
        case "Namespace":
            obj["spec"].setdefault("finalizers", ["kubernetes"])
        case "PersistentVolume":
            obj["status"]["lastPhaseTransitionTime"] = ctx.now()
        case "Job":
            name_job(obj)
        case "Service":
            give_addresses(ctx, obj)


def renew_status(res: Resource, obj: JsonObject) -> None:
    """The status of a kind before any controller wrote it."""
    form = schema.TYPES.get(schema.type_name(res), {}).get("status")
    if form is None or not form.always:
        obj.pop("status")
    else:
        obj["status"] = schema.reader(form.form)({}, "", [])
    apply_defaults(res.kind, obj)


def first_pod_status(ctx: Context, pod: JsonObject) -> JsonObject:
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": ctx.now(),
                "reason": "SchedulingGated",
                "message": GATED,
            }
        ]
    return status


def qos_class(spec: JsonObject) -> str:
    """BestEffort without requests, Guaranteed with requests equal to limits, else Burstable."""
    if "resources" in spec and (
        spec["resources"].get("requests") or spec["resources"].get("limits")
    ):
        requirements = [spec["resources"]]
    else:
        requirements = [container["resources"] for _, container in containers_of(spec)]
    requested = limited = False
    guaranteed = True
    for resources in requirements:
        requests, limits = resources.get("requests", {}), resources.get("limits", {})
        for name in QOS_RESOURCES:
            requested |= quantities.value(requests.get(name, "0")) > 0
            limited |= quantities.value(limits.get(name, "0")) > 0
            guaranteed &= name in limits and requests.get(name) == limits[name]
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def fold_label_keys(pod: JsonObject) -> None:
    """Add expressions with the pod's own values for matchLabelKeys to its selectors."""
    labels = pod["metadata"].get("labels") or {}
    affinity = pod["spec"].get("affinity") or {}
    terms = list(pod["spec"].get("topologySpreadConstraints") or ())
    for member in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(member) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted["podAffinityTerm"])
    for term in terms:
        for member, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(member) or ():
                selector = term.get("labelSelector")
                if key in labels and selector is not None:
                    rule = {"key": key, "operator": operator, "values": [labels[key]]}
                    rules = selector.setdefault("matchExpressions", [])
                    if rule not in rules:
                        rules.append(rule)


def name_job(job: JsonObject) -> None:
    """Make a Job select its pods by its own uid, and label itself and them."""
    metadata, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata["name"]
    labels = {
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
    }
    template = spec["template"]["metadata"]
    template["labels"] = (template.get("labels") or {}) | labels
    metadata["labels"] = dict(template["labels"]) | (metadata.get("labels") or {})
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})


def give_addresses(ctx: Context, service: JsonObject) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    address = spec.setdefault("clusterIP", "") or ctx.new_address()
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def prepare_update(res: Resource, new: JsonObject, old: JsonObject, sub: str) -> None:
    """Restore what this subresource may not change, and count a change of the spec."""
    stored, metadata = old["metadata"], new["metadata"]
    for name in RETAINED:
        if name in stored:
            metadata[name] = stored[name]
        else:
            metadata.pop(name, None)
    metadata.pop("resourceVersion", None)
    if sub == "status":
        for name in (name for name in (*new, *old) if name not in {"metadata", "status"}):
            if name in old:
                new[name] = old[name]
            else:
                new.pop(name, None)
        if res.kind in LABELS_BY_MAIN_RESOURCE:
            _take(metadata, stored, "labels")
        _take(metadata, stored, "ownerReferences")
        _take(metadata, stored, "finalizers")
        if res.kind == "Pod" and "qosClass" in old["status"]:
            new["status"].setdefault("qosClass", old["status"]["qosClass"])
        return
    if sub == "resize":
        restore_all_but_resources(new, old)
    if res.sub("status") is not None and res.kind != "Node":
        _take(new, old, "status")
    elif res.kind == "Node":
        new["status"] = old["status"]
    if res.kind == "Namespace":
        new["spec"] = old["spec"]
    if res.kind == "Service":
        _restore_addresses(new["spec"], old["spec"])
    if res.counted and new.get("spec") != old.get("spec"):
        metadata["generation"] = stored.get("generation", 0) + 1


def restore_all_but_resources(new: JsonObject, old: JsonObject) -> None:
    """The subresource `resize` may change resources and resize policies of the same containers, and
    resources of the pod as a whole. Other containers are left for validation to refuse.
    """
    spec = dict(old["spec"])
    for member in ("containers", "initContainers"):
        wanted, present = new["spec"].get(member) or [], spec.get(member) or []
        if [container["name"] for container in wanted] != [
            container["name"] for container in present
        ]:
            return
        if present:
            spec[member] = [
                _resized(container, change)
                for container, change in zip(present, wanted, strict=True)
            ]
    _take(spec, new["spec"], "resources")
    new["spec"] = spec
    for name in ("labels", "annotations", "ownerReferences", "finalizers"):
        _take(new["metadata"], old["metadata"], name)


def _resized(container: JsonObject, change: JsonObject) -> JsonObject:
    resized = dict(container)
    for name in ("resources", "resizePolicy"):
        _take(resized, change, name)
    return resized


def _take(new: JsonObject, old: JsonObject, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _restore_addresses(new: JsonObject, old: JsonObject) -> None:
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if name in old:
            new.setdefault(name, old[name])
