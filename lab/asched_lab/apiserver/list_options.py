"""The options of lists and watches, and kube-apiserver's messages about invalid combinations."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver.statuses import (
    ApiError,
    FieldError,
    bad_request,
    forbidden_field,
    invalid_options,
    unsupported,
)

MATCH: Final = "resourceVersionMatch"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list's or watch's options, checked; `version` is None where none was sent."""

    version: int | None
    match: str
    limit: int
    continued: str
    send_initial: bool
    bookmarks: bool
    timeout_s: int


def integer(query: Mapping[str, str], name: str) -> int:
    """An integer of the query, 0 if absent. Raises ApiError 400."""
    text = query.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def read(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Check and read the options. Raises ApiError 400, 422, or 500 for a watch's bad version."""
    limit = max(0, integer(query, "limit"))
    timeout_s = integer(query, "timeoutSeconds")
    complaints = watch_complaints(query) if watch else list_complaints(query)
    if complaints:
        raise invalid_options("ListOptions", complaints)
    text = query.get("resourceVersion", "")
    if text and not text.isdigit():
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}"'
        if watch:
            raise ApiError(500, f"{why}: invalid syntax", reason="")
        raise bad_request(f"invalid resource version: {why}: invalid syntax")
    return ListOptions(
        version=int(text) if text else None,
        match=query.get(MATCH, ""),
        limit=limit,
        continued=query.get("continue", ""),
        send_initial=query.get("sendInitialEvents", "").lower() in {"true", "1"},
        bookmarks=query.get("allowWatchBookmarks", "").lower() in {"true", "1"},
        timeout_s=timeout_s,
    )


def list_complaints(query: Mapping[str, str]) -> list[FieldError]:
    match, version = query.get(MATCH, ""), query.get("resourceVersion", "")
    found = []
    if match:
        if not version:
            found.append(
                forbidden_field(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided")
            )
        if query.get("continue"):
            found.append(forbidden_field(MATCH, f"{MATCH} is forbidden when continue is provided"))
        if match not in {"Exact", "NotOlderThan"}:
            found.append(unsupported(MATCH, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            why = f'{MATCH} "exact" is forbidden for resourceVersion "0"'
            found.append(forbidden_field(MATCH, why))
    if "sendInitialEvents" in query:
        why = "sendInitialEvents is forbidden for list"
        found.append(forbidden_field("sendInitialEvents", why))
    return found


def watch_complaints(query: Mapping[str, str]) -> list[FieldError]:
    match = query.get(MATCH, "")
    found = []
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            why = f"sendInitialEvents requires setting {MATCH} to NotOlderThan"
            found.append(forbidden_field(MATCH, why))
        if match not in {"NotOlderThan", ""}:
            found.append(unsupported(MATCH, match, ("NotOlderThan",)))
    elif match:
        why = f"{MATCH} is forbidden for watch unless sendInitialEvents is provided"
        found.append(forbidden_field(MATCH, why))
    if query.get("continue"):
        found.append(forbidden_field(MATCH, f"{MATCH} is forbidden when continue is provided"))
    return found


def token(revision: int, start: str) -> str:
    """A continue token: continue at `start`, in the state of `revision`, or the newest if -1."""
    content = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def read_token(text: str) -> tuple[int, str]:
    """Revision and start of a continue token. Raises ApiError 400."""
    fault = "invalid continue token: continue key is not valid"
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise bad_request(f"{fault}: illegal base64 data") from None
    try:
        parsed: Any = orjson.loads(content)
        revision, start = int(parsed["rv"]), str(parsed["start"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        first = chr(content[0]) if content else ""
        raise bad_request(
            f"{fault}: invalid character '{first}' looking for beginning of value"
        ) from None
    return revision, start
