"""ReplicaSet and ReplicationController: as many pods as spec.replicas, counted in the status."""

from typing import Any, Final

from asched_lab.apiserver.dependents import FINISHED, Dependents, condition, is_ready, pod_of
from asched_lab.apiserver.resources import PODS, Resource
from asched_lab.apiserver.statuses import ApiError
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

#: Pods that one sync of an owner creates; the next sync creates the rest.
CREATED_PER_SYNC: Final = 64


def sync(dependents: Dependents, res: Resource, record: Record) -> None:
    """Create or delete pods until the number is right. Raises ApiError."""
    obj, uid = record.obj, record.obj["metadata"]["uid"]
    active = [pod for pod in dependents.pods(uid) if pod.obj["status"]["phase"] not in FINISHED]
    missing = obj["spec"]["replicas"] - len(active)
    refused: ApiError | None = None
    try:
        for _ in range(min(missing, CREATED_PER_SYNC)):
            pod = pod_of(obj["spec"]["template"], record.key[1])
            dependents.create(res, record, PODS, pod)
    except ApiError as error:
        refused = error
    # Pods without a node go first, then pods that are not ready, then the youngest.
    youngest_first = active[::-1]
    by_worth = sorted(youngest_first, key=lambda pod: (_has_node(pod.obj), is_ready(pod.obj)))
    for surplus in by_worth[: max(0, -missing)]:
        dependents.delete(PODS, surplus)
    status = replica_status(dependents, obj, refused)
    dependents.write_status(res, record, status)
    if refused is not None:
        raise refused


def _has_node(pod: JsonObject) -> bool:
    return bool(pod["spec"].get("nodeName"))


def replica_status(dependents: Dependents, obj: JsonObject, refused: ApiError | None) -> JsonObject:
    metadata = obj["metadata"]
    pods = dependents.pods(metadata["uid"])
    active = [pod.obj for pod in pods if pod.obj["status"]["phase"] not in FINISHED]
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
