"""The scale subresource: the number of replicas, without the rest of the object."""

from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud, patches, patching
from asched_lab.apiserver.call import Call, Reply, answer
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.statuses import bad_request, unsupported_patch
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(record: Record) -> JsonObject:
    """The Scale of a workload."""
    obj = record.obj
    metadata = {k: obj["metadata"][k] for k in SHOWN_METADATA if k in obj["metadata"]}
    status: JsonObject = {"replicas": obj["status"].get("replicas", 0)}
    selector = obj["spec"].get("selector") or {}
    labels = selector.get("matchLabels", {}) if "matchLabels" in selector else selector
    if labels and all(isinstance(value, str) for value in labels.values()):
        status["selector"] = ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
    replicas = obj["spec"].get("replicas", 0)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def handle_scale(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, verb: str
) -> Reply:
    record = crud.existing(ctx, res, namespace, name)
    if verb == "get":
        return answer(scale_of(record))
    if verb == "update":
        wished, _ = bodies.load(call, "Scale")
    else:
        media = call.headers.get("content-type", "").partition(";")[0].strip()
        if media not in {patching.MERGE, patching.JSON_PATCH, patching.STRATEGIC}:
            raise unsupported_patch()
        patch = patching.load_patch(call.body, media)
        if media == patching.JSON_PATCH:
            wished = patches.apply_json_patch(scale_of(record), patch)
        else:
            wished = patches.merge(scale_of(record), patch)
    replicas = (wished.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        raise bad_request(f"spec.replicas must be a number, not {replicas!r}")
    new: JsonObject = orjson.loads(record.body)
    new["spec"]["replicas"] = replicas
    version = (wished.get("metadata") or {}).get("resourceVersion")
    new["metadata"]["resourceVersion"] = version or record.obj["metadata"]["resourceVersion"]
    stored = crud.update(ctx, res, record, new, manager=crud.manager_of(call), dry_run=call.dry_run)
    return answer(scale_of(stored))
