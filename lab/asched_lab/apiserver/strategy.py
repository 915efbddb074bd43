"""What a write may set and what the server keeps for itself, kind by kind.

`prepare_create` and `prepare_update` work in place on a decoded object with its defaults; they give
identity, first status and generation, and undo what the door used may not change.
"""

from typing import Any, Final

from asched_lab.apiserver import quantities, schema
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.defaults import containers_of
from asched_lab.apiserver.defaults_kinds import apply_defaults
from asched_lab.apiserver.resources import STATUS_AT_CREATION, Resource

JsonObject = dict[str, Any]

#: Metadata only the server writes.
OWNED: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
#: Metadata an update takes over from the stored object.
KEPT: Final = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
#: Kinds whose status door leaves labels alone.
LABELS_BY_MAIN_DOOR: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
QOS_RESOURCES: Final = ("cpu", "memory")


def prepare_create(ctx: Context, res: Resource, obj: JsonObject) -> None:
    """Identity, generation and first status of a new object."""
    metadata = obj["metadata"]
    for name in OWNED:
        metadata.pop(name, None)
    metadata["uid"] = ctx.new_uid()
    metadata["creationTimestamp"] = ctx.now()
    if res.counted:
        metadata["generation"] = 1
    if res.sub("status") is not None and res.kind not in STATUS_AT_CREATION:
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
    """The status a kind has before any controller wrote one."""
    form = schema.TYPES.get(schema.type_name(res), {}).get("status")
    if form is None:
        obj.pop("status")
    elif form.form != "any":
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
    """BestEffort asks for nothing, Guaranteed has requests equal to limits, the rest is between."""
    if "resources" in spec and (
        spec["resources"].get("requests") or spec["resources"].get("limits")
    ):
        wishes = [spec["resources"]]
    else:
        wishes = [container["resources"] for _, container in containers_of(spec)]
    requested = limited = False
    guaranteed = True
    for wish in wishes:
        requests, limits = wish.get("requests", {}), wish.get("limits", {})
        for name in QOS_RESOURCES:
            requested |= quantities.value(requests.get(name, "0")) > 0
            limited |= quantities.value(limits.get(name, "0")) > 0
            guaranteed &= name in limits and requests.get(name) == limits[name]
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def fold_label_keys(pod: JsonObject) -> None:
    """MatchLabelKeys become expressions on the pod's own values, so that a selector says it all."""
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
    """A job selects its pods by its own uid, and labels itself and them."""
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
    """Carry over what this door may not change, and count a change of the spec."""
    kept, metadata = old["metadata"], new["metadata"]
    for name in KEPT:
        if name in kept:
            metadata[name] = kept[name]
        else:
            metadata.pop(name, None)
    metadata.pop("resourceVersion", None)
    if sub == "status":
        for name in (name for name in (*new, *old) if name not in {"metadata", "status"}):
            if name in old:
                new[name] = old[name]
            else:
                new.pop(name, None)
        if res.kind in LABELS_BY_MAIN_DOOR:
            _take(metadata, kept, "labels")
        _take(metadata, kept, "ownerReferences")
        _take(metadata, kept, "finalizers")
        if res.kind == "Pod" and "qosClass" in old["status"]:
            new["status"].setdefault("qosClass", old["status"]["qosClass"])
        return
    if sub == "resize":
        keep_all_but_resources(new, old)
    if res.sub("status") is not None and res.kind != "Node":
        _take(new, old, "status")
    elif res.kind == "Node":
        new["status"] = old["status"]
    if res.kind == "Namespace":
        new["spec"] = old["spec"]
    if res.kind == "Service":
        _keep_addresses(new["spec"], old["spec"])
    if res.counted and new.get("spec") != old.get("spec"):
        metadata["generation"] = kept.get("generation", 0) + 1


def keep_all_but_resources(new: JsonObject, old: JsonObject) -> None:
    """The door `resize` lets resources and resize policies of the same containers through, and
    resources of the pod as a whole. Other containers are left to be refused.
    """
    spec = dict(old["spec"])
    for member in ("containers", "initContainers"):
        asked, present = new["spec"].get(member) or [], spec.get(member) or []
        if [one["name"] for one in asked] != [one["name"] for one in present]:
            return
        if present:
            spec[member] = [
                _resized(container, change)
                for container, change in zip(present, asked, strict=True)
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


def _keep_addresses(new: JsonObject, old: JsonObject) -> None:
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if name in old:
            new.setdefault(name, old[name])
