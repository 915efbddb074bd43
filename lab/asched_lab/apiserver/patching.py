"""PATCH: read the patch by its content type, apply it, and store the result like any update."""

from typing import Any, Final

import orjson

from asched_lab.apiserver import apply, bodies, crud, patches, schema, shapes, validation
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import CUSTOM, Resource
from asched_lab.apiserver.statuses import (
    ApiError,
    FieldError,
    bad_request,
    invalid_kind,
    rejected_patch,
    shown,
    unsupported_patch,
)
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

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
        return apply.handle_apply(ctx, call, res, namespace, name, sub)
    apply.check_options(call)
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
            document = patches.merge(document, patch)
        elif media == JSON_PATCH:
            document = patches.apply_json_patch(document, patch)
        else:
            document = patches.strategic(document, patch, schema.type_name(res))
    except patches.KeylessError as fault:
        raise ApiError(500, str(fault), reason="") from None
    except patches.PatchError as fault:
        if media == STRATEGIC:
            raise invalid_patch(f'"{patches.go_text(patch)}"', str(fault)) from None
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
    mode = call.query.get("fieldValidation", "Warn")
    problems = bodies.field_problems([], unknown)
    if problems and mode == "Strict":
        text = shown(orjson.dumps(document).decode())
        raise invalid_patch(text, f"strict decoding error: {', '.join(problems)}")
    return new, problems if mode != "Ignore" else []


def invalid_patch(value: str, why: str) -> ApiError:
    complaint = FieldError("patch", "FieldValueInvalid", f"Invalid value: {value}: {why}")
    return invalid_kind("", "", "", [complaint])
