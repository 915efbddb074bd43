"""Server-side apply: an applied configuration sets the values of its manager, which owns the
fields.

A field that another manager owns with another value is a conflict, unless forced. A field that this
manager owned and no longer sets is removed, unless another manager owns it too.
"""

from typing import Any, Final

from asched_lab.apiserver import bodies, crud, managed, schema, shapes, strategy, validation
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.fieldsets import FieldSet, collect, find, overlay, owned_part, without
from asched_lab.apiserver.fieldsets import shown as shown_path
from asched_lab.apiserver.managed import Entry
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.statuses import (
    ApiError,
    bad_request,
    forbidden_field,
    invalid_options,
    not_found,
    required,
)
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

APPLY: Final = "Apply"


def handle_apply(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, sub: str
) -> Reply:
    manager = call.query.get("fieldManager", "")
    if not manager:
        raise invalid_options(
            "PatchOptions", [required("fieldManager", "is required for apply patch")]
        )
    raw = bodies.load_yaml(call.body, res.kind)
    check(raw, res, name, namespace)
    subresource = sub if sub == "status" else ""
    fields = applied_fields(res, raw)
    record = ctx.get(res, namespace, name)
    if record is None:
        if sub:
            raise not_found(res, name)
        stored, warnings = create(ctx, call, res, namespace, raw, manager, fields)
        return shapes.object_reply(
            call, res, stored, status=201, now_s=ctx.clock(), warnings=warnings
        )
    entries = managed.read(record.obj["metadata"])
    wanted = owned_part(content(raw), status=None)
    entries = settle(
        entries, record, wanted, fields, manager, subresource, force=call.flag("force")
    )
    document = overlaid(res, record, wanted, fields, entries, manager, subresource)
    new, warnings = decoded(call, res, document)
    applied = Entry(manager, APPLY, ctx.now(), subresource, fields)
    others = [entry for entry in entries if not entry.same_owner(manager, APPLY, subresource)]
    before = [entry for entry in entries if entry.same_owner(manager, APPLY, subresource)]
    if before and before[0].fields == fields:
        applied = before[0]
    managed.write(res, new["metadata"], managed.surviving([*others, applied], new))
    stored = crud.update(ctx, res, record, new, sub=sub, dry_run=call.dry_run, managed_done=True)
    return shapes.object_reply(call, res, stored, now_s=ctx.clock(), warnings=warnings)


def content(raw: JsonObject) -> JsonObject:
    return {k: v for k, v in schema.without_nulls(raw).items() if k not in {"kind", "apiVersion"}}


def check(raw: JsonObject, res: Resource, name: str, namespace: str) -> None:
    """Raises ApiError 400 unless the configuration has a kind and belongs to the path."""
    if not raw.get("kind") or not raw.get("apiVersion"):
        group, _, version = str(raw.get("apiVersion", "")).rpartition("/")
        kind = raw.get("kind", "")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    bodies.check_kind(raw, res)
    metadata = raw.setdefault("metadata", {})
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    crud.check_name(metadata, name)
    crud.place(res, metadata, namespace)


def applied_fields(res: Resource, raw: JsonObject) -> FieldSet:
    """The fields that a configuration sets."""
    part = owned_part(content(raw), status=None)
    part = {name: value for name, value in part.items() if name != "metadata" or value}
    if not part:
        return frozenset()
    return frozenset(collect(schema.type_name(res), part, containers=False))


def decoded(call: Call, res: Resource, document: JsonObject) -> tuple[JsonObject, list[str]]:
    try:
        obj, unknown = bodies.to_stored(res, document)
    except schema.DecodeError as fault:
        raise bad_request(f"failed to create typed patch object: {fault}") from None
    problems = bodies.field_problems([], unknown)
    mode = call.query.get("fieldValidation", "Warn")
    if problems and mode == "Strict":
        raise bad_request(f"failed to create typed patch object: {', '.join(problems)}")
    return obj, problems if mode != "Ignore" else []


def create(
    ctx: Context,
    call: Call,
    res: Resource,
    namespace: str,
    raw: JsonObject,
    manager: str,
    fields: FieldSet,
) -> tuple[Record, list[str]]:
    obj, warnings = decoded(call, res, raw)
    entry = Entry(manager, APPLY, ctx.now(), "", fields)
    record = crud.create(ctx, res, namespace, obj, dry_run=call.dry_run, entries=[entry])
    return record, warnings


def settle(
    entries: list[Entry],
    record: Record,
    wanted: JsonObject,
    fields: FieldSet,
    manager: str,
    subresource: str,
    *,
    force: bool,
) -> list[Entry]:
    """The entries after a forced takeover. Raises ApiError 409 for conflicts without `force`."""
    contested = {
        path
        for path in fields
        if not isinstance(find(wanted, path), dict) and find(wanted, path) != find(record.obj, path)
    }
    conflicts = [
        (entry, sorted(entry.fields & contested))
        for entry in entries
        if not entry.same_owner(manager, APPLY, subresource) and entry.fields & contested
    ]
    if conflicts and not force:
        raise conflict(conflicts)
    return [
        entry
        if entry.same_owner(manager, APPLY, subresource)
        else entry.with_fields(entry.fields - contested)
        for entry in entries
    ]


def conflict(conflicts: list[tuple[Entry, list[tuple[str, ...]]]]) -> ApiError:
    """409 that names every contested field and its owner."""
    causes, texts = [], []
    count = sum(len(paths) for _, paths in conflicts)
    for entry, paths in conflicts:
        who = f'"{entry.manager}"' + (" using v1" if entry.operation != APPLY else "")
        if entry.sub:
            who += f' with subresource "{entry.sub}"'
        causes += [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {who}",
                "field": shown_path(path),
            }
            for path in paths
        ]
        listed = "\n".join(f"- {shown_path(path)}" for path in paths)
        texts.append(
            f"conflict with {who}: {shown_path(paths[0])}"
            if len(paths) == 1
            else f"conflicts with {who}:\n{listed}"
        )
    noun = "conflict" if count == 1 else "conflicts"
    joint = "\n" if len(texts) > 1 else " "
    message = f"Apply failed with {count} {noun}:{joint}" + "\n".join(texts)
    return ApiError(409, message, details={"causes": causes})


def overlaid(
    res: Resource,
    record: Record,
    wanted: JsonObject,
    fields: FieldSet,
    entries: list[Entry],
    manager: str,
    subresource: str,
) -> JsonObject:
    """The live object with the configuration applied, without fields that its manager released."""
    document: JsonObject = overlay(schema.type_name(res), record.obj, wanted)
    owned_before = frozenset[tuple[str, ...]]().union(
        *(entry.fields for entry in entries if entry.same_owner(manager, APPLY, subresource))
    )
    others = frozenset[tuple[str, ...]]().union(
        *(entry.fields for entry in entries if not entry.same_owner(manager, APPLY, subresource))
    )
    # Shortest first: a list element goes as a whole before its key field could go alone.
    for path in sorted(owned_before - fields - others, key=len):
        if path and not any(other[: len(path)] == path for other in others | fields):
            document = without(document, path)
    document["metadata"].pop("managedFields", None)
    document["metadata"] = {
        k: v for k, v in document["metadata"].items() if k not in strategy.OWNED or k == "uid"
    }
    return document


def check_options(call: Call) -> None:
    """Raises ApiError 422 for options that only an apply patch may have."""
    if "force" in call.query:
        complaint = forbidden_field("force", "may not be specified for non-apply patch")
        raise invalid_options("PatchOptions", [complaint])
    validation.check_write_options("PatchOptions", call.query)
