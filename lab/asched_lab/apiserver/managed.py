"""metadata.managedFields: one entry per manager, operation and door, each with its set of fields.

A plain write owns what it changed and takes that from everybody else; an applied configuration owns
what it spells out, shared with whoever wants the same value. Only objects that somebody applied, or
all of them if the server was told so, carry entries.
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
    """Who owns which fields, since when, through which door."""

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
    """Put entries on an object, applied ones first; none at all leaves no trace."""
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
    """The creator owns what it sent and what was defaulted for it."""
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
    """Settle the entries of an object that a plain write changed; `sent` is what it sent itself."""
    kept = old["metadata"].get("managedFields")
    if sent is not None and not any(sent) and kept:
        # An empty list, or a list of an empty entry, wipes all records.
        new["metadata"].pop("managedFields", None)
        return
    if not kept and not ctx.options.managed_fields:
        new["metadata"].pop("managedFields", None)
        return
    form = schema.type_name(res)
    fresh = frozenset(changed(form, owned_part(old, status=None), owned_part(new, status=None)))
    door = sub if sub == "status" else ""
    entries = surviving(read(old["metadata"]), new)
    if fresh:
        mine = [entry for entry in entries if entry.same_owner(manager, "Update", door)]
        others = [entry.with_fields(entry.fields - fresh) for entry in entries if entry not in mine]
        fields = fresh.union(*(entry.fields for entry in mine))
        entries = [*others, Entry(manager, "Update", ctx.now(), door, fields)]
    write(res, new["metadata"], entries)


def surviving(entries: list[Entry], obj: JsonObject) -> list[Entry]:
    """Entries without the fields an object no longer has."""
    return [
        entry.with_fields(
            frozenset(path for path in entry.fields if path == () or find(obj, path) is not None)
        )
        for entry in entries
    ]
