"""PATCH: merge patch, JSON patch, strategic merge patch and server-side apply; and the scale.

The patches are pure functions from a document to a new one; parts that the patch does not touch are
shared. Strategic merge reads `schema.TYPES` to find lists that are merged by a key and lists that
are sets. Order of a merged list: elements of the patch have the patch's order, other elements the
server's, and between both an element goes first only if the server had it first; so a new element
is put in front.

An applied configuration sets the values of its manager, which owns the fields. A field that another
manager owns with another value is a conflict, unless forced. A field that this manager owned and no
longer sets is removed, unless another manager owns it too.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud, managed, schema, shapes, strategy, validation
from asched_lab.apiserver.call import Call, Reply, answer
from asched_lab.apiserver.context import Context, Record
from asched_lab.apiserver.managed import (
    Entry,
    FieldSet,
    Owner,
    collect,
    find,
    overlay,
    owned_part,
    without,
)
from asched_lab.apiserver.managed import shown as shown_path
from asched_lab.apiserver.refusals import (
    ApiError,
    FieldError,
    bad_request,
    forbidden_field,
    invalid_kind,
    invalid_options,
    not_found,
    rejected_patch,
    required,
    shown,
    unsupported_patch,
)
from asched_lab.apiserver.resources import CUSTOM, Resource

JsonObject = dict[str, Any]


class PatchError(ValueError):
    """The patch cannot be carried out on this document."""


class KeylessError(PatchError):
    """An element of a list merged by key lacks the key."""


def go_text(value: Any) -> str:
    """A JSON value as Go prints it in messages: `map[a:b c:[1 2]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{go_text(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return str(value)


def merge(document: Any, patch: Any) -> Any:
    """RFC 7396: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    out = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge(out.get(name), value)
    return out


def apply_json_patch(document: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """RFC 6902, with one deviation of the real server: replacing a missing value adds it.

    Raises PatchError for a failed test, an unknown operation or a path that does not exist.
    """
    root: JsonObject = {"": orjson.loads(orjson.dumps(document))}
    for operation in operations:
        steps = _steps(operation.get("path"))
        match operation.get("op"):
            case "add" | "replace":
                _set(root, steps, operation.get("value"), operation["op"] == "add")
            case "remove":
                _pop(root, steps)
            case "test":
                if _find(root, steps) != operation.get("value"):
                    raise PatchError(f"test failed at {operation['path']}")
            case "copy":
                source = _find(root, _steps(operation.get("from")))
                _set(root, steps, orjson.loads(orjson.dumps(source)), insert=True)
            case "move":
                _set(root, steps, _pop(root, _steps(operation.get("from"))), insert=True)
            case other:
                raise PatchError(f"unknown operation {other!r}")
    result: JsonObject = root[""]
    return result


def _steps(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise PatchError(f"bad path {path!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]


def _index(items: list[Any], step: str, *, end: int) -> int:
    if not step.lstrip("-").isdigit() or not 0 <= int(step) < end:
        raise PatchError(f"bad index {step!r}")
    del items
    return int(step)


def _find(document: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step, end=len(document))]
        else:
            raise PatchError(f"nothing at {step!r}")
    return document


def _set(document: Any, steps: Sequence[str], value: Any, insert: bool) -> None:
    parent, last = _find(document, steps[:-1]), steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and last == "-":
        parent.append(value)
    elif isinstance(parent, list) and insert:
        parent.insert(_index(parent, last, end=len(parent) + 1), value)
    elif isinstance(parent, list):
        parent[_index(parent, last, end=len(parent))] = value
    else:
        raise PatchError(f"nothing to set at {last!r}")


def _pop(document: Any, steps: Sequence[str]) -> Any:
    parent, last = _find(document, steps[:-1]), steps[-1]
    if isinstance(parent, dict) and last in parent:
        return parent.pop(last)
    if isinstance(parent, list):
        return parent.pop(_index(parent, last, end=len(parent)))
    raise PatchError(f"nothing to remove at {last!r}")


def strategic(document: Any, patch: JsonObject, type_text: str) -> Any:
    """A strategic merge patch on a document of the given type. Raises PatchError."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    out = dict(document) if isinstance(document, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        out = {name: value for name, value in out.items() if name in retained}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            member = name.partition("/")[2]
            out[member] = [item for item in out.get(member) or () if item not in value]
        elif not name.startswith("$"):
            _strategic_member(out, name, value, patch, schema.field_of(type_text, name))
    return out


def _strategic_member(
    out: JsonObject, name: str, value: Any, patch: JsonObject, field: schema.Field | None
) -> None:
    if value is None:
        out.pop(name, None)
        return
    form = field.form if field is not None else "any"
    if field is not None and field.keys is not None:
        if not isinstance(value, list):
            raise PatchError(f"cannot restore slice from {_go_kind(value)}")
        order = patch.get(f"$setElementOrder/{name}")
        out[name] = _merge_list(out.get(name) or [], value, order, field)
    elif isinstance(value, dict):
        inner = form[1:-1] if form.startswith("{") else form
        out[name] = strategic(out.get(name), value, inner)
    else:
        out[name] = value


def _go_kind(value: Any) -> str:
    return {str: "string", bool: "bool", dict: "map"}.get(type(value), "number")


def _merge_list(
    present: list[Any], patch: list[Any], order: list[Any] | None, field: schema.Field
) -> list[Any]:
    key = field.keys[0] if field.keys else ""

    def identity(item: Any) -> Any:
        if key and (not isinstance(item, dict) or key not in item):
            raise KeylessError(f"map: {go_text(item)} does not contain declared merge key: {key}")
        found = item[key] if key else item
        if isinstance(found, (dict, list)):
            raise PatchError(f"cannot merge a list by {go_text(found)}")
        return found

    if key and any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    merged = {identity(item): item for item in present}
    named: list[Any] = []
    for item in patch:
        who = identity(item)
        if key and item.get("$patch") == "delete":
            merged.pop(who, None)
            continue
        named.append(who)
        merged[who] = strategic(merged.get(who), item, field.form[1:-1]) if key else item
    if order is not None:
        named = [identity(item) for item in order]
    server_order = [identity(item) for item in present]
    ranked = _interleave(
        [who for who in server_order if who not in named and who in merged],
        [who for who in named if who in merged],
        server_order,
    )
    return [merged[who] for who in ranked]


def _interleave(left: list[Any], right: list[Any], server_order: list[Any]) -> list[Any]:
    """Both lists in one: an element of `left` goes first only where the server had it first."""
    position = {who: index for index, who in enumerate(server_order)}
    out: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if right[j] in position and position[left[i]] < position[right[j]]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


def handle_apply(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, sub: str
) -> Reply:
    manager = call.query.get("fieldManager", "")
    if not manager:
        raise invalid_options(
            "PatchOptions", [required("fieldManager", "is required for apply patch")]
        )
    raw, repeated = bodies.load_yaml(call.body, res.kind)
    check_kind(raw, res)
    warnings = check_fields(call, res, raw, repeated)
    check_place(raw, res, name, namespace)
    owner = (manager, "Apply", sub if sub == "status" else "")
    fields = applied_fields(res, raw)
    record = ctx.get(res, namespace, name)
    if record is None:
        if sub:
            raise not_found(res, name)
        obj, _ = bodies.to_stored(res, raw)
        entry = Entry(manager, "Apply", ctx.now(), "", fields)
        stored = crud.create(ctx, res, namespace, obj, dry_run=call.dry_run, entries=[entry])
        return shapes.object_reply(
            call, res, stored, status=201, now_s=ctx.clock(), warnings=warnings
        )
    entries = managed.read(record.obj["metadata"])
    wanted = owned_part(content(raw), status=None)
    entries = settle(entries, record, wanted, fields, owner, force=call.flag("force"))
    document = overlaid(res, record, wanted, fields, entries, owner)
    new, _ = bodies.to_stored(res, document)
    applied = Entry(manager, "Apply", ctx.now(), owner[2], fields)
    others = [entry for entry in entries if entry.owner != owner]
    before = [entry for entry in entries if entry.owner == owner]
    if before and before[0].fields == fields:
        applied = before[0]
    managed.write(res, new["metadata"], managed.surviving([*others, applied], new))
    stored = crud.update(ctx, res, record, new, sub=sub, dry_run=call.dry_run, managed_done=True)
    return shapes.object_reply(call, res, stored, now_s=ctx.clock(), warnings=warnings)


def content(raw: JsonObject) -> JsonObject:
    return {k: v for k, v in schema.without_nulls(raw).items() if k not in {"kind", "apiVersion"}}


def check_kind(raw: JsonObject, res: Resource) -> None:
    """Raises ApiError 400 unless the configuration has the kind of the path."""
    if not raw.get("kind") or not raw.get("apiVersion"):
        group, _, version = str(raw.get("apiVersion", "")).rpartition("/")
        kind = raw.get("kind", "")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    bodies.check_kind(raw, res)


def check_place(raw: JsonObject, res: Resource, name: str, namespace: str) -> None:
    """Raises ApiError 400 unless the configuration belongs to the path."""
    metadata = raw["metadata"] = raw.get("metadata") or {}
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


def check_fields(call: Call, res: Resource, document: JsonObject, repeated: list[str]) -> list[str]:
    """Warnings about fields of a configuration. Raises ApiError 400 for values of wrong types, and
    for what `fieldValidation` makes an error.
    """
    try:
        _, unknown = schema.decode(res, document)
    except schema.DecodeError as fault:
        raise bad_request(f"failed to create typed patch object: {fault}") from None
    return bodies.field_warnings(
        call,
        bodies.field_problems(repeated, unknown),
        lambda why: bad_request(f"failed to create typed patch object: {why}"),
    )


def settle(
    entries: list[Entry],
    record: Record,
    wanted: JsonObject,
    fields: FieldSet,
    owner: Owner,
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
        if entry.owner != owner and entry.fields & contested
    ]
    if conflicts and not force:
        raise conflict(conflicts)
    return [
        entry if entry.owner == owner else entry.with_fields(entry.fields - contested)
        for entry in entries
    ]


def conflict(conflicts: list[tuple[Entry, list[tuple[str, ...]]]]) -> ApiError:
    """409 that names every contested field and its owner."""
    causes, texts = [], []
    count = sum(len(paths) for _, paths in conflicts)
    for entry, paths in conflicts:
        who = f'"{entry.manager}"' + (" using v1" if entry.operation != "Apply" else "")
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
    owner: Owner,
) -> JsonObject:
    """The live object with the configuration applied, without fields that its manager released."""
    document: JsonObject = overlay(schema.type_name(res), record.obj, wanted)
    owned_before = frozenset[tuple[str, ...]]().union(
        *(entry.fields for entry in entries if entry.owner == owner)
    )
    others = frozenset[tuple[str, ...]]().union(
        *(entry.fields for entry in entries if entry.owner != owner)
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


MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def handle_patch(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, sub: str
) -> Reply:
    media = call.headers.get("content-type", "").partition(";")[0].strip()
    if media not in {MERGE, JSON_PATCH, STRATEGIC, APPLY}:
        raise unsupported_patch()
    if media == STRATEGIC and res.group in CUSTOM:
        raise unsupported_patch()
    if media == APPLY:
        validation.check_write_options("PatchOptions", call.query)
        return handle_apply(ctx, call, res, namespace, name, sub)
    check_options(call)
    patch = load_patch(call.body, media)
    record = crud.existing(ctx, res, namespace, name)
    new, warnings = patched(call, res, record, patch, media)
    crud.check_name(new["metadata"], name)
    crud.place(res, new["metadata"], namespace)
    stored = crud.update(
        ctx, res, record, new, sub=sub, manager=crud.manager_of(call), dry_run=call.dry_run
    )
    return shapes.object_reply(call, res, stored, now_s=ctx.clock(), warnings=warnings)


def load_patch(body: bytes, media: str) -> Any:
    """The patch as JSON of the right outer type. Raises ApiError 400."""
    try:
        patch = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request("error decoding patch: unexpected end of JSON input") from None
    kind = "array" if isinstance(patch, list) else "object"
    if media == JSON_PATCH and not isinstance(patch, list):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value")
    if media != JSON_PATCH and not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value")
    return patch


def patched(
    call: Call, res: Resource, record: Record, patch: Any, media: str
) -> tuple[JsonObject, list[str]]:
    """The object after the patch, in stored form with defaults, and its warnings."""
    document = bodies.shown(res, record.obj)
    try:
        if media == MERGE:
            document = merge(document, patch)
        elif media == JSON_PATCH:
            document = apply_json_patch(document, patch)
        else:
            document = strategic(document, patch, schema.type_name(res))
    except KeylessError as fault:
        raise ApiError(500, str(fault), reason="") from None
    except PatchError as fault:
        if media == STRATEGIC:
            raise invalid_patch(f'"{go_text(patch)}"', str(fault)) from None
        raise rejected_patch() from None
    # A patch with a version must match it; a patch without one applies to the current version.
    try:
        bodies.check_kind(document, res)
    except ApiError as fault:
        raise invalid_patch(shown(orjson.dumps(document).decode()), fault.message) from None
    try:
        new, unknown = bodies.to_stored(res, document)
    except schema.DecodeError as fault:
        raise invalid_patch(shown(orjson.dumps(document).decode()), str(fault)) from None
    return new, bodies.field_warnings(
        call,
        bodies.field_problems([], unknown),
        lambda why: invalid_patch(
            shown(orjson.dumps(document).decode()), f"strict decoding error: {why}"
        ),
    )


def invalid_patch(value: str, why: str) -> ApiError:
    complaint = FieldError("patch", "FieldValueInvalid", f"Invalid value: {value}: {why}")
    return invalid_kind("", "", "", [complaint])


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
        if media not in {MERGE, JSON_PATCH, STRATEGIC}:
            raise unsupported_patch()
        patch = load_patch(call.body, media)
        if media == JSON_PATCH:
            wished = apply_json_patch(scale_of(record), patch)
        else:
            wished = merge(scale_of(record), patch)
    replicas = (wished.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        raise bad_request(f"spec.replicas must be a number, not {replicas!r}")
    new: JsonObject = orjson.loads(record.body)
    new["spec"]["replicas"] = replicas
    version = (wished.get("metadata") or {}).get("resourceVersion")
    new["metadata"]["resourceVersion"] = version or record.obj["metadata"]["resourceVersion"]
    stored = crud.update(ctx, res, record, new, manager=crud.manager_of(call), dry_run=call.dry_run)
    return answer(scale_of(stored))
