"""GET on a collection: from memory, exactly at a version, or page by page."""

from collections.abc import Sequence
from typing import Any

from asched_lab.apiserver import list_options, shapes
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.list_options import ListOptions
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import Selector, selector_of
from asched_lab.apiserver.statuses import bad_request, expired, version_too_large
from asched_lab.apiserver.store import Record

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
    options = list_options.read(call.query, watch=False)
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
        revision, start = list_options.read_token(options.continued)
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
        return expired(TOKEN_TOO_OLD, {"continue": list_options.token(-1, start)})
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
            metadata["continue"] = list_options.token(revision, path_of(record, namespace) + "\0")
            if selector.empty:
                metadata["remainingItemCount"] = len(records) - index - 1
            break
    return chosen, metadata


def path_of(record: Record, namespace: str) -> str:
    """The position of a record in its collection, in the form of continue tokens."""
    space, name = record.key
    return name if namespace or not space else f"{space}/{name}"
