"""Create, read, replace: the writes that carry a whole object, and steps that all writes share.

create   decoded object -> admission -> identity and first status -> validation -> stored
update   decoded object -> version and identity checked -> immutable fields restored -> validated
         -> stored, or unchanged if nothing differs

delete   at once, after a grace period, or when the last finalizer is removed: an assigned pod that
         still runs gets a deletion time and its grace; its kubelet removes it by a second DELETE
         with grace 0. Any other pod is removed at once, in two versions: first marked, then
         removed. Other kinds have no grace.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from asched_lab.apiserver import (
    admission,
    bodies,
    listing,
    managed,
    schema,
    shapes,
    validation,
    validation_pod,
)
from asched_lab.apiserver.call import Call, Reply, answer
from asched_lab.apiserver.context import Context, Record
from asched_lab.apiserver.refusals import (
    ApiError,
    already_exists,
    bad_request,
    bad_value,
    conflict_kind,
    invalid_kind,
    modified,
    not_found,
    removed,
    version_too_large,
)
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import selector_of
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
    admission.check(ctx, res, obj)
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


OPTIONS_SCHEME: Final = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
#: Kinds that orphan their dependents by default.
ORPHANING: Final = frozenset({"ReplicationController"})
FINISHED: Final = frozenset({"Succeeded", "Failed"})


def handle_delete(ctx: Context, call: Call, res: Resource, namespace: str, name: str) -> Reply:
    options = read_options(call)
    admission.on_delete(res, name)
    record = existing(ctx, res, namespace, name)
    last, gone = delete(ctx, res, record, options)
    if gone and "r" not in res.traits:
        return answer(removed(res, name, record.obj["metadata"]["uid"]))
    return shapes.object_reply(call, res, last, now_s=ctx.clock())


def handle_delete_collection(ctx: Context, call: Call, res: Resource, namespace: str) -> Reply:
    """Remove the selected objects; the answer shows them as they were before."""
    options = read_options(call)
    chosen: Sequence[Record]
    chosen, metadata = listing.select(
        ctx,
        res,
        namespace,
        listing.read(call.query, watch=False),
        selector_of(res, call.query),
    )
    for record in chosen:
        admission.on_delete(res, record.key[1])
        delete(ctx, res, record, options)
    return shapes.list_reply(call, res, chosen, metadata, ctx.clock())


def read_options(call: Call) -> JsonObject:
    """DeleteOptions of the body, or of the query if there is no body. Raises ApiError."""
    raw: JsonObject
    if call.body:
        raw, _ = bodies.load(call, "DeleteOptions")
        if raw.get("kind", "DeleteOptions") != "DeleteOptions":
            version = raw.get("apiVersion", "")
            raise bad_request(
                f'no kind "{raw["kind"]}" is registered for version "{version}" in scheme'
                f' "{OPTIONS_SCHEME}"'
            )
    else:
        raw = {name: call.query[name] for name in ("propagationPolicy",) if name in call.query}
        if "gracePeriodSeconds" in call.query:
            raw["gracePeriodSeconds"] = listing.integer(call.query, "gracePeriodSeconds")
        if "orphanDependents" in call.query:
            raw["orphanDependents"] = call.flag("orphanDependents")
        if call.query.get("dryRun"):
            raw["dryRun"] = [call.query["dryRun"]]
    content = {k: v for k, v in raw.items() if k not in {"kind", "apiVersion"}}
    try:
        options: JsonObject = schema.reader("DeleteOptions")(content, "", [])
    except schema.DecodeError as fault:
        raise bad_request(str(fault)) from None
    validation.check_delete_options(options)
    return options


def check_preconditions(res: Resource, record: Record, options: JsonObject) -> None:
    """Raises ApiError 409 if the object does not match the preconditions."""
    wanted = options.get("preconditions") or {}
    metadata = record.obj["metadata"]
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != metadata["uid"]:
        raise conflict_kind(
            res.kind,
            metadata["name"],
            f"the UID in the precondition ({uid}) does not match the UID in record"
            f" ({metadata['uid']}). The object might have been deleted and then recreated",
        )
    if version is not None and version != metadata["resourceVersion"]:
        raise conflict_kind(
            res.kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({version}) does not match the"
            f" ResourceVersion in record ({metadata['resourceVersion']}). The object might have"
            " been modified",
        )


def delete(ctx: Context, res: Resource, record: Record, options: JsonObject) -> tuple[Record, bool]:
    """Begin or finish a deletion; returns the object's last state and whether it is gone.

    `options` are checked DeleteOptions. Raises ApiError 409.
    """
    check_preconditions(res, record, options)
    dry_run = bool(options.get("dryRun"))
    if res.kind == "Namespace":
        return delete_namespace(ctx, res, record, dry_run=dry_run)
    marked = mark(ctx, res, record, options)
    metadata = marked["metadata"]
    must_wait = bool(metadata.get("finalizers")) or bool(metadata.get("deletionGracePeriodSeconds"))
    if dry_run:
        return Record(record.key, marked, record.revision), not must_wait
    if must_wait:
        if marked == record.obj:
            return record, False
        return ctx.put(res, marked), False
    if res.kind == "Pod" and marked != record.obj:
        marked = ctx.put(res, marked).obj
    last = marked if res.kind == "Pod" else record.obj
    return ctx.store.remove(res.storage, record.key, last), True


def mark(ctx: Context, res: Resource, record: Record, options: JsonObject) -> JsonObject:
    """The object with deletion begun: times, finalizers, and a pod's generation."""
    obj, metadata = record.obj, dict(record.obj["metadata"])
    policy = options.get("propagationPolicy")
    if options.get("orphanDependents") or (policy is None and res.kind in ORPHANING):
        policy = "Orphan"
    finalizer = FINALIZERS.get(policy or "")
    finalizers = metadata.get("finalizers") or []
    if finalizer and finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]
    grace_s = grace_of(obj, options) if res.kind == "Pod" else 0
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = ctx.later(grace_s)
        metadata["deletionGracePeriodSeconds"] = grace_s
        if "generation" in metadata:
            metadata["generation"] += 1
    elif grace_s < metadata.get("deletionGracePeriodSeconds", 0) and (
        "gracePeriodSeconds" in options or not grace_s
    ):
        # A grace period may be shortened, never lengthened.
        metadata["deletionTimestamp"] = ctx.later(grace_s)
        metadata["deletionGracePeriodSeconds"] = grace_s
    return {**obj, "metadata": metadata}


def grace_of(pod: JsonObject, options: JsonObject) -> int:
    """Grace period in seconds: that of the options, else of the pod; 0 without a kubelet."""
    spec = pod["spec"]
    if not spec.get("nodeName") or pod["status"].get("phase") in FINISHED:
        return 0
    wanted = options.get("gracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 0))
    return 1 if wanted < 0 else int(wanted)


def delete_namespace(
    ctx: Context, res: Resource, record: Record, *, dry_run: bool
) -> tuple[Record, bool]:
    """A namespace terminates first and is removed when its own finalizer is."""
    obj = record.obj
    if not obj["spec"].get("finalizers") and not obj["metadata"].get("finalizers"):
        if dry_run:
            return record, True
        return ctx.store.remove(res.storage, record.key, obj), True
    if obj["metadata"].get("deletionTimestamp"):
        return record, False
    marked = {
        **obj,
        "metadata": {**obj["metadata"], "deletionTimestamp": ctx.now()},
        "status": {**obj["status"], "phase": "Terminating"},
    }
    if dry_run:
        return Record(record.key, marked, record.revision), False
    return ctx.put(res, marked), False


def handle_finalize(ctx: Context, call: Call, res: Resource, name: str) -> Reply:
    """PUT namespaces/NAME/finalize: set the namespace's finalizers; without one it is removed."""
    raw = orjson.loads(call.body or b"{}")
    if not isinstance(raw, dict):
        raise ApiError(400, "the body must be a Namespace")
    record = existing(ctx, res, "", name)
    finalizers = (raw.get("spec") or {}).get("finalizers") or []
    spec = {**record.obj["spec"], "finalizers": finalizers}
    if not finalizers:
        spec.pop("finalizers")
    obj = {**record.obj, "spec": spec}
    over = obj["metadata"].get("deletionTimestamp") and not finalizers
    if over and not obj["metadata"].get("finalizers"):
        ctx.store.remove(res.storage, record.key, obj)
        return shapes.object_reply(call, res, Record(record.key, obj, record.revision))
    return shapes.object_reply(call, res, record if obj == record.obj else ctx.put(res, obj))
