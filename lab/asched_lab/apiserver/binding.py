"""POST pods/NAME/binding, and the old `bindings` collection: bind one pod, in one version.

The node is read only for its zone and region labels, not validated. This is the hot path of every
run: the new version shares all unchanged parts with the old one.
"""

from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud, schema, validation
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import NAMESPACES, NODES, PODS, Resource
from asched_lab.apiserver.statuses import (
    ApiError,
    bad_request,
    conflict,
    conflict_kind,
    not_found,
    success,
    unsupported,
)
from asched_lab.apiserver.store import Record

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
