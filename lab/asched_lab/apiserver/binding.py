"""POST pods/NAME/binding, the old `bindings` collection, and pods/NAME/eviction.

A binding is the hot path of every run: the new version shares all unchanged parts with the old one.
The node is read only for its zone and region labels, not validated.

An eviction is a deletion that respects disruption budgets. A budget's status belongs to a
controller; this server uses the stored status and decrements it, before it checks the deletion's
own preconditions, as the real server does.
"""

from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud, schema, validation
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context, Record
from asched_lab.apiserver.crud import existing
from asched_lab.apiserver.refusals import (
    ApiError,
    bad_request,
    conflict,
    conflict_kind,
    not_found,
    success,
    unsupported,
)
from asched_lab.apiserver.resources import BUDGETS, NAMESPACES, NODES, PODS, Resource
from asched_lab.apiserver.selectors import matches_label_selector

JsonObject = dict[str, Any]

#: Node labels that a bound pod gets.
TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
BOUND: Final = orjson.dumps(success(201))
BINDINGS: Final = Resource("", "v1", "bindings", "Binding", True, (), (), ("create",))


def handle_binding(ctx: Context, call: Call, namespace: str, name: str) -> Reply:
    """Bind the pod of the path, or, in the old collection (no name), that of the body."""
    validation.check_write_options("CreateOptions", call.query)
    raw, _ = bodies.load(call, "Binding")
    bodies.check_kind(raw, BINDINGS)
    try:
        binding = schema.decode(BINDINGS, raw)[0]
    except schema.DecodeError as fault:
        raise bodies.cannot_handle(BINDINGS, str(fault)) from None
    metadata = binding["metadata"]
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name and metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if ctx.get(NAMESPACES, "", namespace) is None:
        raise not_found(NAMESPACES, namespace)
    target = check_target(binding["target"])
    record = crud.existing(ctx, PODS, namespace, name or metadata.get("name", ""))
    check_identity(record, metadata)
    check_bindable(record)
    pod = bound(ctx, record.obj, target, metadata, topology=bool(name))
    if not call.dry_run:
        ctx.put(PODS, pod)
    return Reply(201, BOUND)


def check_target(target: JsonObject) -> str:
    """The node's name. A bad target is answered as by the real server: 500, without a reason."""
    kind, name = target.get("kind", ""), target.get("name", "")
    faults = []
    if kind not in {"", "Node"}:
        complaint = unsupported("target.kind", kind, ("Node", "<empty>"))
        faults.append(f"{complaint.field}: {complaint.detail}")
    if not name:
        faults.append("target.name: Required value")
    if faults:
        raise ApiError(500, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]", reason="")
    return str(name)


def check_identity(record: Record, metadata: JsonObject) -> None:
    """Raises ApiError 409 if uid or version of the binding are not the pod's."""
    stored = record.obj["metadata"]
    for label, member in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        sent = metadata.get(member)
        if sent and sent != stored[member]:
            raise conflict(
                PODS,
                stored["name"],
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{stored['namespace']}/"
                f"{stored['name']}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
                f" {label} in precondition: {sent}, {label} in object meta: {stored[member]}",
            )


def check_bindable(record: Record) -> None:
    """Raises ApiError 409 for a pod that is bound, gated or terminating."""
    pod = record.obj
    name, spec = pod["metadata"]["name"], pod["spec"]
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict_kind("pods/binding", name, why)


def bound(
    ctx: Context, pod: JsonObject, node_name: str, request: JsonObject, *, topology: bool
) -> JsonObject:
    """The pod after its binding; shares unchanged parts with the pod before."""
    metadata = dict(pod["metadata"])
    labels = dict(metadata.get("labels") or {}) | (request.get("labels") or {})
    node = ctx.get(NODES, "", node_name) if topology else None
    if node is not None:
        node_labels = node.obj["metadata"].get("labels") or {}
        labels |= {key: node_labels[key] for key in TOPOLOGY if key in node_labels}
    if labels:
        metadata["labels"] = labels
    if request.get("annotations"):
        metadata["annotations"] = (metadata.get("annotations") or {}) | request["annotations"]
    status = dict(pod["status"])
    status.pop("nominatedNodeName", None)
    status["conditions"] = with_condition(status.get("conditions") or [], scheduled(ctx))
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node_name},
        "status": status,
    }


def scheduled(ctx: Context) -> JsonObject:
    return {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": ctx.now(),
    }


def with_condition(conditions: list[JsonObject], fresh: JsonObject) -> list[JsonObject]:
    """The conditions with one replaced in its place, or added at the end."""
    kind = fresh["type"]
    if any(condition["type"] == kind for condition in conditions):
        return [fresh if condition["type"] == kind else condition for condition in conditions]
    return [*conditions, fresh]


REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
RETRY_AFTER_S: Final = 10
TWO_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def handle_eviction(ctx: Context, call: Call, namespace: str, name: str) -> Reply:
    validation.check_write_options("CreateOptions", call.query)
    raw, _ = bodies.load(call, "Eviction")
    try:
        eviction = schema.reader("Eviction")(raw, "", [])
        if eviction["metadata"].get("name") != name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = schema.reader("DeleteOptions")(eviction.get("deleteOptions") or {}, "", [])
    except schema.DecodeError as fault:
        raise bad_request(str(fault)) from None
    validation.check_delete_options(options)
    if call.dry_run:
        options["dryRun"] = ["All"]
    record = existing(ctx, PODS, namespace, name)
    if not unprotected(record.obj):
        budget = budget_of(ctx, record.obj)
        if budget is not None and not passes(record.obj, budget.obj):
            charge(ctx, budget, name, dry_run=bool(options.get("dryRun")))
    crud.check_preconditions(PODS, record, options)
    if not options.get("dryRun") and not record.obj["metadata"].get("deletionTimestamp"):
        record = ctx.put(PODS, marked(ctx, record.obj))
        options.pop("preconditions", None)
    crud.delete(ctx, PODS, record, options)
    return Reply(201, BOUND)


def unprotected(pod: JsonObject) -> bool:
    """Pods that no budget protects: finished, not started, or terminating."""
    phase = pod["status"].get("phase")
    return phase in {"Succeeded", "Failed", "Pending"} or bool(
        pod["metadata"].get("deletionTimestamp")
    )


def budget_of(ctx: Context, pod: JsonObject) -> Record | None:
    """The one budget that covers a pod. Raises ApiError 500 if there are two."""
    table = ctx.store.table(BUDGETS.storage)
    labels = pod["metadata"].get("labels") or {}
    found = [
        table.records[key]
        for key in table.range(pod["metadata"]["namespace"])
        if matches_label_selector(table.records[key].obj["spec"].get("selector"), labels)
    ]
    if len(found) > 1:
        raise ApiError(500, TWO_BUDGETS, reason="")
    return found[0] if found else None


def passes(pod: JsonObject, budget: JsonObject) -> bool:
    """An unready pod may be evicted while its application is healthy, or always if the budget says
    so.
    """
    conditions = pod["status"].get("conditions") or ()
    if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy: int = budget["status"]["currentHealthy"]
    desired: int = budget["status"]["desiredHealthy"]
    return 0 < desired <= healthy


def charge(ctx: Context, budget: Record, pod_name: str, *, dry_run: bool) -> None:
    """Take one disruption from a budget. Raises ApiError 429 if it has none."""
    obj = budget.obj
    status, name = obj["status"], obj["metadata"]["name"]
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise refused(why, RETRY_AFTER_S)
    allowed = status["disruptionsAllowed"]
    if allowed <= 0:
        healthy, desired = status["currentHealthy"], status["desiredHealthy"]
        why = f"The disruption budget {name} does not allow evicting pods currently"
        if healthy <= desired:
            why = (
                f"The disruption budget {name} needs {desired} healthy pods and has {healthy}"
                " currently"
            )
        raise refused(why)
    if dry_run:
        return
    status = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**status.get("disruptedPods", {}), pod_name: ctx.now()},
    }
    if allowed == 1:
        status["conditions"] = exhausted(ctx, obj)
    ctx.put(BUDGETS, {**obj, "status": status})


def exhausted(ctx: Context, budget: JsonObject) -> list[JsonObject]:
    """The conditions of a budget that has no disruptions left."""
    conditions = budget["status"].get("conditions") or []
    fresh = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": budget["status"].get("observedGeneration", 0),
        "lastTransitionTime": ctx.now(),
        "reason": "InsufficientPods",
        "message": "",
    }
    for condition in conditions:
        if condition["type"] == fresh["type"] and condition["status"] == fresh["status"]:
            fresh["lastTransitionTime"] = condition["lastTransitionTime"]
    return with_condition(conditions, fresh)


def refused(why: str, retry_after_s: int | None = None) -> ApiError:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after_s is not None:
        details["retryAfterSeconds"] = retry_after_s
    return ApiError(429, REFUSED, details=details, retry_after_s=retry_after_s)


def marked(ctx: Context, pod: JsonObject) -> JsonObject:
    """The pod with the condition for its eviction."""
    fresh = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": ctx.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = with_condition(pod["status"].get("conditions") or [], fresh)
    return {**pod, "status": {**pod["status"], "conditions": conditions}}
