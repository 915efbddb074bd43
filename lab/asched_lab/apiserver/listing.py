"""GET on a collection: from memory, exactly at a version, or page by page; and its options.

Messages about invalid combinations are kube-apiserver's.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver import shapes
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context, Record
from asched_lab.apiserver.refusals import (
    ApiError,
    FieldError,
    bad_request,
    expired,
    forbidden_field,
    invalid_options,
    unsupported,
    version_too_large,
)
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import Selector, selector_of

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


JsonObject = dict[str, Any]

TOO_OLD = "The resourceVersion for the provided list is too old."
TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start"  # noqa: S105
    " a new list without the continue parameter, or use the continue token in this response to"
    " retrieve the remainder of the results. Continuing with the provided token results in an"
    " inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


def handle_list(ctx: Context, call: Call, res: Resource, namespace: str) -> Reply:
    shapes.wanted_of(call, stream=True)
    options = read(call.query, watch=False)
    selector = selector_of(res, call.query)
    records, metadata = select(ctx, res, namespace, options, selector)
    return shapes.list_reply(call, res, records, metadata, ctx.clock())


def select(
    ctx: Context, res: Resource, namespace: str, options: ListOptions, selector: Selector
) -> tuple[Sequence[Record], JsonObject]:
    """The records of one answer, sorted, and the list's metadata. Raises ApiError."""
    revision, start, limit = ctx.store.revision, "", options.limit
    table = ctx.store.table(res.storage)
    version = options.version
    if options.continued:
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = read_token(options.continued)
        # Served from memory, a page has no limit.
        limit = 0 if version == 0 else limit
    elif version:
        if version > revision:
            raise version_too_large(version, revision)
        if options.match == "Exact" or (limit and not options.match):
            revision = version
    elif version == 0:
        limit = 0
    newest = revision in {-1, ctx.store.revision}
    if newest:
        revision = ctx.store.revision
        records = [table.records[key] for key in table.range(namespace)]
    else:
        past = ctx.store.records_at(table, namespace, revision)
        if past is None:
            raise too_old(options, start)
        records = past
    return page(records, selector, namespace, start, limit, revision)


def too_old(options: ListOptions, start: str) -> Exception:
    if options.continued:
        return expired(TOKEN_TOO_OLD, {"continue": token(-1, start)})
    return expired(TOO_OLD)


def page(
    records: list[Record],
    selector: Selector,
    namespace: str,
    start: str,
    limit: int,
    revision: int,
) -> tuple[Sequence[Record], JsonObject]:
    """One page after `start`; without a limit everything is one page."""
    metadata: JsonObject = {"resourceVersion": str(revision)}
    if start:
        records = [record for record in records if path_of(record, namespace) >= start]
    if not limit:
        if not selector.empty:
            records = [record for record in records if selector.matches(record.obj)]
        return records, metadata
    chosen: list[Record] = []
    for index, record in enumerate(records):
        if selector.matches(record.obj):
            chosen.append(record)
        if len(chosen) == limit and index + 1 < len(records):
            metadata["continue"] = token(revision, path_of(record, namespace) + "\0")
            if selector.empty:
                metadata["remainingItemCount"] = len(records) - index - 1
            break
    return chosen, metadata


def path_of(record: Record, namespace: str) -> str:
    """The position of a record in its collection, in the form of continue tokens."""
    space, name = record.key
    return name if namespace or not space else f"{space}/{name}"
