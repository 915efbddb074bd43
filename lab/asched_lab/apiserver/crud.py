"""Create, read, replace: the writes that carry a whole object, and steps that all writes share.

create   decoded object -> admission -> identity and first status -> validation -> stored
update   decoded object -> version and identity checked -> immutable fields restored -> validated
         -> stored, or unchanged if nothing differs
"""

from collections.abc import Sequence
from typing import Any, Final

from asched_lab.apiserver import admission, bodies, managed, shapes, validation, validation_pod
from asched_lab.apiserver.call import (
    ApiError,
    Call,
    Reply,
    already_exists,
    bad_request,
    bad_value,
    invalid_kind,
    modified,
    not_found,
    version_too_large,
)
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.store import Record
from asched_lab.apiserver.strategy import prepare_create, prepare_update

JsonObject = dict[str, Any]

UNATTENDED: Final = "this server runs no %s controller: it is stored, and no pods will come of it"


def create(
    ctx: Context,
    res: Resource,
    namespace: str,
    obj: JsonObject,
    *,
    manager: str = "unknown",
    dry_run: bool = False,
    entries: Sequence[managed.Entry] = (),
) -> Record:
    """Store a new object that was decoded and has its defaults; `entries` are the field managers of
    an applied one. Raises ApiError.
    """
    metadata = obj["metadata"]
    place(res, metadata, namespace)
    if metadata.get("resourceVersion"):
        raise ApiError(500, "resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = ctx.generated_name(metadata["generateName"])
    metadata.pop("managedFields", None)
    if entries:
        managed.write(res, metadata, list(entries))
    elif ctx.options.managed_fields:
        managed.record_create(ctx, res, obj, manager)
    admission.on_create(ctx, res, obj)
    prepare_create(ctx, res, obj)
    validation.on_create(res, obj)
    admission.judge(ctx, res, obj)
    if ctx.get(res, namespace, metadata["name"]) is not None:
        raise already_exists(res, metadata["name"])
    if dry_run:
        return Record((namespace, metadata["name"]), obj, 0)
    return ctx.put(res, obj)


def place(res: Resource, metadata: JsonObject, namespace: str) -> None:
    """Check the namespace of an object against its path."""
    if not res.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def update(
    ctx: Context,
    res: Resource,
    old: Record,
    new: JsonObject,
    *,
    sub: str = "",
    manager: str = "unknown",
    dry_run: bool = False,
    managed_done: bool = False,
) -> Record:
    """Store a new state of `old`, or return `old` if nothing changed. Raises ApiError.

    `new` was decoded and has its defaults; it is changed in place.
    """
    metadata, stored = new["metadata"], old.obj["metadata"]
    version = metadata.get("resourceVersion")
    if version and version != stored["resourceVersion"]:
        raise modified(res, stored["name"])
    sent_uid = metadata.get("uid")
    fields = metadata.get("managedFields")
    if sub != "status":
        admission.on_update(res, new, old.obj)
    prepare_update(res, new, old.obj, sub)
    complaints = []
    if sent_uid and sent_uid != stored["uid"]:
        complaints.append(bad_value("metadata.uid", sent_uid, "field is immutable"))
    validation.on_update(res, new, old.obj, sub, complaints)
    if not managed_done:
        managed.record_update(ctx, res, old.obj, new, fields, manager, sub)
    if unchanged(old.obj, new):
        return old
    if is_finished(res, new):
        return finish(ctx, res, old, new, dry_run=dry_run)
    new["metadata"]["resourceVersion"] = stored["resourceVersion"]
    return Record(old.key, new, old.revision) if dry_run else ctx.put(res, new)


def unchanged(old: JsonObject, new: JsonObject) -> bool:
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return old == new


def is_finished(res: Resource, obj: JsonObject) -> bool:
    """Whether deletion has begun and no finalizer is left."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if res.kind == "Namespace" and obj["spec"].get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def finish(ctx: Context, res: Resource, old: Record, new: JsonObject, *, dry_run: bool) -> Record:
    """Remove an object whose last finalizer was removed; the answer shows the version before."""
    new["metadata"]["resourceVersion"] = old.obj["metadata"]["resourceVersion"]
    if not dry_run:
        ctx.store.remove(res.storage, old.key, new)
    return Record(old.key, new, old.revision)


def existing(ctx: Context, res: Resource, namespace: str, name: str) -> Record:
    """The stored object. Raises ApiError 404."""
    record = ctx.get(res, namespace, name)
    if record is None:
        raise not_found(res, name)
    return record


def manager_of(call: Call) -> str:
    """The field manager: that of the call, else the program's name."""
    agent = call.headers.get("user-agent", "").partition("/")[0]
    return call.query.get("fieldManager") or agent or "unknown"


def handle_create(ctx: Context, call: Call, res: Resource, namespace: str) -> Reply:
    validation.check_write_options("CreateOptions", call.query)
    obj, warnings = bodies.decode(call, res)
    record = create(ctx, res, namespace, obj, manager=manager_of(call), dry_run=call.dry_run)
    if res.kind == "Pod":
        warnings += validation_pod.warnings(record.obj)
    if res.kind in ctx.unattended:
        warnings.append(UNATTENDED % res.kind)
    return shapes.object_reply(call, res, record, status=201, now_s=ctx.clock(), warnings=warnings)


def handle_get(ctx: Context, call: Call, res: Resource, namespace: str, name: str) -> Reply:
    version = call.query.get("resourceVersion", "")
    if version and not version.isdigit():
        why = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}"'
        raise ApiError(500, f"{why}: invalid syntax", reason="")
    if version and int(version) > ctx.store.revision:
        raise version_too_large(int(version), ctx.store.revision)
    record = existing(ctx, res, namespace, name)
    return shapes.object_reply(call, res, record, now_s=ctx.clock())


def handle_replace(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, sub: str
) -> Reply:
    validation.check_write_options("UpdateOptions", call.query)
    obj, warnings = bodies.decode(call, res)
    metadata = obj["metadata"]
    check_name(metadata, name)
    place(res, metadata, namespace)
    old = ctx.get(res, namespace, name)
    options: dict[str, Any] = {"manager": manager_of(call), "dry_run": call.dry_run}
    if old is None:
        if sub or "p" not in res.traits:
            raise not_found(res, name)
        record = create(ctx, res, namespace, obj, **options)
        return shapes.object_reply(
            call, res, record, status=201, now_s=ctx.clock(), warnings=warnings
        )
    if not metadata.get("resourceVersion") and "v" in res.traits:
        complaint = bad_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_kind(res.group, res.plural, name, [complaint])
    record = update(ctx, res, old, obj, sub=sub, **options)
    return shapes.object_reply(call, res, record, now_s=ctx.clock(), warnings=warnings)


def check_name(metadata: JsonObject, name: str) -> None:
    if metadata.setdefault("name", name) != name:
        sent = metadata["name"]
        raise bad_request(
            f"the name of the object ({sent}) does not match the name on the URL ({name})"
        )
