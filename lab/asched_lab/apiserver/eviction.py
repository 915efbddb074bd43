"""POST pods/NAME/eviction: a deletion that respects disruption budgets.

A budget's status belongs to a controller; this server uses the stored status and decrements it,
before it checks the deletion's own preconditions, as the real server does.
"""

from typing import Any, Final

from asched_lab.apiserver import binding, bodies, deletion, schema, validation
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.crud import existing
from asched_lab.apiserver.resources import BUDGETS, PODS
from asched_lab.apiserver.selectors import matches_label_selector
from asched_lab.apiserver.statuses import ApiError, bad_request
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

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
    deletion.check_preconditions(PODS, record, options)
    if not options.get("dryRun") and not record.obj["metadata"].get("deletionTimestamp"):
        record = ctx.put(PODS, marked(ctx, record.obj))
        options.pop("preconditions", None)
    deletion.delete(ctx, PODS, record, options)
    return Reply(201, binding.BOUND)


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
    return binding.with_condition(conditions, fresh)


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
    conditions = binding.with_condition(pod["status"].get("conditions") or [], fresh)
    return {**pod, "status": {**pod["status"], "conditions": conditions}}
