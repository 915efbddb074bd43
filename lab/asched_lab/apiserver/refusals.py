"""What the server says in a Status: every refusal, as an error to raise, and success.

A function for a refusal is here only if clients use its code or reason, or people read its message.
Messages are those of kube-apiserver 1.36; programs use codes and reasons.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]

#: HTTP code -> the default reason of a Status.
REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    504: "Timeout",
}


class ApiError(Exception):
    """A refusal, with all data of its answer; `text` replaces the Status by plain text."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: JsonObject | None = None,
        retry_after_s: int | None = None,
        metadata: JsonObject | None = None,
        text: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.retry_after_s = retry_after_s
        self.metadata = metadata or {}
        self.text = text

    def status(self) -> JsonObject:
        """The Status object of this refusal."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of a 422: field, kind of error, and message."""

    field: str
    reason: str
    detail: str


def shown(value: object) -> str:
    """A value as messages quote it: strings in quotes, everything else as JSON."""
    return orjson.dumps(value).decode()


def required(field: str, why: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", f"Required value: {why}".removesuffix(": "))


def bad_value(field: str, value: object, why: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def bad_values(field: str, value: object, faults: Iterable[str]) -> list[FieldError]:
    return [bad_value(field, value, fault) for fault in faults]


def forbidden_field(field: str, why: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: object) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def unsupported(field: str, value: object, choices: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{choice}"' for choice in choices)
    detail = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return FieldError(field, "FieldValueNotSupported", detail)


def _named(res: Resource, name: str) -> JsonObject:
    details: JsonObject = {"name": name} if name else {}
    if res.group:
        details["group"] = res.group
    details["kind"] = res.plural
    return details


def invalid_kind(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """422 with its causes; one error without brackets, several in brackets."""
    errors = list(errors)
    lines = list(dict.fromkeys(f"{error.field}: {error.detail}" for error in errors))
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    title = f"{kind}.{group}" if group else kind
    details: JsonObject = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [
        {"reason": error.reason, "message": error.detail, "field": error.field} for error in errors
    ]
    return ApiError(422, f'{title} "{name}" is invalid: {text}', details=details)


def invalid(res: Resource, name: str, errors: Iterable[FieldError]) -> ApiError:
    # Both event groups are validated as the core kind, whose title has no group.
    group = "" if res.kind == "Event" else res.group
    return invalid_kind(group, res.kind, name, errors)


def invalid_options(kind: str, errors: Iterable[FieldError]) -> ApiError:
    return invalid_kind("meta.k8s.io", kind, "", errors)


def not_found(res: Resource, name: str) -> ApiError:
    return ApiError(404, f'{res.qualified} "{name}" not found', details=_named(res, name))


def already_exists(res: Resource, name: str) -> ApiError:
    message = f'{res.qualified} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", details=_named(res, name))


def conflict(res: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {res.qualified} "{name}": {why}'
    return ApiError(409, message, details=_named(res, name))


def modified(res: Resource, name: str) -> ApiError:
    return conflict(
        res,
        name,
        "the object has been modified; please apply your changes to the latest version and try"
        " again",
    )


def conflict_kind(kind: str, name: str, why: str) -> ApiError:
    """The form for preconditions and bindings, which name something other than the resource."""
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return ApiError(409, message, details={"name": name, "kind": kind})


def refused(res: Resource, name: str, why: str, causes: list[JsonObject] | None = None) -> ApiError:
    """403 by an admission rule."""
    details = _named(res, name)
    if causes:
        details["causes"] = causes
    return ApiError(403, f'{res.qualified} "{name}" is forbidden: {why}', details=details)


def may_not(res: Resource, name: str, user: str, verb: str, sub: str, namespace: str) -> ApiError:
    """403 by authorization, with verb, resource with subresource, group and scope."""
    what = f"{res.plural}/{sub}" if sub else res.plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    subject = f'{res.qualified} "{name}"' if name else res.qualified
    message = (
        f'{subject} is forbidden: User "{user}" cannot {verb} resource "{what}"'
        f' in API group "{res.group}" {where}'
    )
    return ApiError(403, message, details=_named(res, name))


def may_not_path(user: str, verb: str, path: str) -> ApiError:
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return ApiError(403, message, details={})


def bad_request(message: str) -> ApiError:
    return ApiError(400, message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized")


def no_such_resource() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", details={})


def page_not_found() -> ApiError:
    return ApiError(404, "404 page not found\n", text=True)


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, message, details={})


def rejected_patch() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, message, details={})


def unsupported_patch() -> ApiError:
    return ApiError(415, "415: Unsupported Media Type", details={})


def unsupported_body() -> ApiError:
    return ApiError(
        415,
        "the body of the request was in an unknown format - accepted media types include:"
        " application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )


def version_too_large(wanted: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        retry_after_s=1,
    )


def expired(message: str, metadata: JsonObject | None = None) -> ApiError:
    return ApiError(410, message, metadata=metadata)


def success(code: int | None = None, details: Mapping[str, Any] | None = None) -> JsonObject:
    """The Status of a write that returns no object."""
    status: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if details is not None:
        status["details"] = dict(details)
    if code is not None:
        status["code"] = code
    return status


def removed(res: Resource, name: str, uid: str) -> JsonObject:
    return success(details={**_named(res, name), "uid": uid})
