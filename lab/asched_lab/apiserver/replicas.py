"""ReplicaSet and ReplicationController: as many pods as wanted, told in the status."""

from typing import Any, Final

from asched_lab.apiserver.dependents import FINISHED, Dependents, condition, is_ready, pod_of
from asched_lab.apiserver.resources import PODS, Resource
from asched_lab.apiserver.statuses import ApiError
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

#: Pods one look at an owner creates; the rest follow with the next look.
CREATED_PER_LOOK: Final = 64


def sync(dependents: Dependents, res: Resource, record: Record) -> None:
    """Create or delete pods until there are as many as wanted. Raises ApiError."""
    obj, uid = record.obj, record.obj["metadata"]["uid"]
    active = [one for one in dependents.pods(uid) if one.obj["status"]["phase"] not in FINISHED]
    missing = obj["spec"]["replicas"] - len(active)
    refused: ApiError | None = None
    try:
        for _ in range(min(missing, CREATED_PER_LOOK)):
            pod = pod_of(obj["spec"]["template"], record.key[1])
            dependents.create(res, record, PODS, pod)
    except ApiError as error:
        refused = error
    # The least of a pod goes first: without a node, not ready, youngest.
    youngest_first = active[::-1]
    by_worth = sorted(youngest_first, key=lambda one: (_has_node(one.obj), is_ready(one.obj)))
    for one in by_worth[: max(0, -missing)]:
        dependents.delete(PODS, one)
    status = replica_status(dependents, obj, refused)
    dependents.write_status(res, record, status)
    if refused is not None:
        raise refused


def _has_node(pod: JsonObject) -> bool:
    return bool(pod["spec"].get("nodeName"))


def replica_status(dependents: Dependents, obj: JsonObject, refused: ApiError | None) -> JsonObject:
    metadata = obj["metadata"]
    pods = dependents.pods(metadata["uid"])
    active = [one.obj for one in pods if one.obj["status"]["phase"] not in FINISHED]
    ready = sum(map(is_ready, active))
    status: JsonObject = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": metadata.get("generation", 0),
    }
    conditions = obj["status"].get("conditions") or []
    if refused is not None:
        now = dependents.ctx.now()
        words = {"reason": "FailedCreate", "message": str(refused)}
        status["conditions"] = condition(conditions, "ReplicaFailure", "True", now, **words)
    return status
