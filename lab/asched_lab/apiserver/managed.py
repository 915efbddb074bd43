"""metadata.managedFields: one entry per manager, operation and subresource, with its set of fields.

A plain write owns what it changed and takes these fields from all other managers; an applied
configuration owns what it sets, shared with managers of the same value. Only objects that were
applied, or all of them if the server has the option, have entries.
"""

from dataclasses import dataclass
from typing import Any

from asched_lab.apiserver import schema
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.fieldsets import (
    FieldSet,
    changed,
    find,
    from_tree,
    owned_part,
    to_tree,
)
from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """The owner of some fields, since when, and by which subresource."""

    manager: str
    operation: str
    time: str
    sub: str
    fields: FieldSet

    def same_owner(self, manager: str, operation: str, sub: str) -> bool:
        return (self.manager, self.operation, self.sub) == (manager, operation, sub)

    def with_fields(self, fields: FieldSet) -> "Entry":
        return Entry(self.manager, self.operation, self.time, self.sub, fields)


def read(metadata: JsonObject) -> list[Entry]:
    return [
        Entry(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("time", ""),
            entry.get("subresource", ""),
            from_tree(entry.get("fieldsV1") or {}),
        )
        for entry in metadata.get("managedFields") or ()
    ]


def write(res: Resource, metadata: JsonObject, entries: list[Entry]) -> None:
    """Put entries on an object, applied ones first; without entries remove the member."""
    shown = []
    for entry in sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.sub)):
        if not entry.fields:
            continue
        encoded: JsonObject = {
            "manager": entry.manager,
            "operation": entry.operation,
            "apiVersion": res.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_tree(entry.fields),
        }
        if entry.sub:
            encoded["subresource"] = entry.sub
        shown.append(encoded)
    metadata.pop("managedFields", None)
    if shown:
        metadata["managedFields"] = shown


def record_create(ctx: Context, res: Resource, obj: JsonObject, manager: str) -> None:
    """The creator owns the fields that it sent and their defaults."""
    form = schema.type_name(res)
    empty = schema.reader(form)({}, "", [])
    status = False if res.sub("status") is not None else None
    fields = changed(form, owned_part(empty, status=status), owned_part(obj, status=status))
    entry = Entry(manager, "Update", ctx.now(), "", frozenset(fields))
    write(res, obj["metadata"], [entry])


def record_update(
    ctx: Context,
    res: Resource,
    old: JsonObject,
    new: JsonObject,
    sent: list[Any] | None,
    manager: str,
    sub: str,
) -> None:
    """Update the entries after a plain write; `sent` is the managedFields of the request."""
    stored = old["metadata"].get("managedFields")
    if sent is not None and not any(sent) and stored:
        # An empty list, or a list of an empty entry, removes all entries.
        new["metadata"].pop("managedFields", None)
        return
    if not stored and not ctx.options.managed_fields:
        new["metadata"].pop("managedFields", None)
        return
    form = schema.type_name(res)
    fresh = frozenset(changed(form, owned_part(old, status=None), owned_part(new, status=None)))
    subresource = sub if sub == "status" else ""
    entries = surviving(read(old["metadata"]), new)
    if fresh:
        own = [entry for entry in entries if entry.same_owner(manager, "Update", subresource)]
        others = [entry.with_fields(entry.fields - fresh) for entry in entries if entry not in own]
        fields = fresh.union(*(entry.fields for entry in own))
        entries = [*others, Entry(manager, "Update", ctx.now(), subresource, fields)]
    write(res, new["metadata"], entries)


def surviving(entries: list[Entry], obj: JsonObject) -> list[Entry]:
    """Entries without the fields that an object no longer has."""
    return [
        entry.with_fields(
            frozenset(path for path in entry.fields if path == () or find(obj, path) is not None)
        )
        for entry in entries
    ]
