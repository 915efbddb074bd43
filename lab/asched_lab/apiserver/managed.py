"""metadata.managedFields: one entry per manager, operation and subresource, with its set of fields.

A plain write owns what it changed and takes these fields from all other managers; an applied
configuration owns what it sets, shared with managers of the same value. Only objects that were
applied, or all of them if the server has the option, have entries.

A field is a path of steps: `f:name` into an object, `k:{"name":"c"}` to the list element with that
key, `v:"x"` to an element of a set. The wire form is a tree of steps in which an object that is
itself a member, besides what is under it, has a `.`; here a set is a frozenset of paths.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver import schema
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]
Path = tuple[str, ...]
FieldSet = frozenset[Path]
#: Manager, operation and subresource.
Owner = tuple[str, str, str]

#: Types that are owned as a whole.
ATOMIC_TYPES: Final = frozenset(
    {
        "any",
        "LabelSelector",
        "ObjectReference",
        "LocalReference",
        "TypedReference",
        "OwnerReference",
        "NodeSelector",
        "NodeSelectorTerm",
        "SelectorRequirement",
    }
)
#: Maps that are owned as a whole, by field name.
ATOMIC_MAPS: Final = frozenset({"nodeSelector", "selector"})
#: Metadata without owners: the server's own fields, and those that name the object.
UNOWNED: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    }
)


def from_tree(tree: JsonObject, prefix: Path = ()) -> FieldSet:
    """A set from its wire form."""
    members: set[Path] = set()
    for step, below in tree.items():
        if step == ".":
            members.add(prefix)
        elif not below:
            members.add((*prefix, step))
        else:
            members |= from_tree(below, (*prefix, step))
    return frozenset(members)


def to_tree(fields: FieldSet) -> JsonObject:
    """The wire form of a set."""
    tree: JsonObject = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    for path in fields:
        node = tree
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return tree


def key_step(item: JsonObject, keys: Iterable[str]) -> str:
    found = {key: item[key] for key in keys if key in item}
    return f"k:{orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()}"


def value_step(item: Any) -> str:
    return f"v:{orjson.dumps(item).decode()}"


def is_granular(form: str, name: str, keys: tuple[str, ...] | None) -> bool:
    """Whether parts of a field's value may have owners of their own."""
    if form.startswith("["):
        return keys is not None
    if form.startswith("{"):
        return name not in ATOMIC_MAPS
    return form in schema.TYPES and form not in ATOMIC_TYPES


def children(
    form: str, keys: tuple[str, ...] | None, value: Any
) -> Iterator[tuple[str, Any, str, str, tuple[str, ...] | None]]:
    """The parts of a granular value: step, value, and the part's form, name and keys."""
    if isinstance(value, list):
        for item in value:
            if keys:
                yield key_step(item, keys), item, form[1:-1], "", None
            else:
                yield value_step(item), item, "any", "", None
    elif form.startswith("{"):
        for name, item in value.items():
            yield f"f:{name}", item, form[1:-1], name, None
    else:
        for name, item in value.items():
            field = schema.field_of(form, name)
            if field is None:
                yield f"f:{name}", item, "any", name, None
            else:
                yield f"f:{name}", item, field.form, name, field.keys


def collect(
    form: str,
    value: Any,
    prefix: Path = (),
    name: str = "",
    keys: tuple[str, ...] | None = None,
    *,
    containers: bool,
) -> set[Path]:
    """Every field of a value. With `containers` maps, lists and optional objects are members too,
    as they are for plain writes; an applied configuration owns only the fields it sets.
    """
    if not value or not isinstance(value, (dict, list)) or not is_granular(form, name, keys):
        return {prefix}
    members: set[Path] = (
        {prefix} if containers or (prefix[-1:][0:1] and prefix[-1][0] == "k") else set()
    )
    for step, item, item_form, item_name, item_keys in children(form, keys, value):
        members |= collect(
            item_form, item, (*prefix, step), item_name, item_keys, containers=containers
        )
    return members


def changed(form: str, old: Any, new: Any, prefix: Path = (), keys: Any = None) -> set[Path]:
    """The fields that are new or different in `new`."""
    before = {step: item for step, item, *_ in children(form, keys, old or {})}
    members: set[Path] = set()
    for step, item, item_form, name, item_keys in children(form, keys, new or {}):
        member_path = (*prefix, step)
        if step not in before:
            members |= collect(item_form, item, member_path, name, item_keys, containers=True)
        elif item != before[step]:
            parts = (item, before[step])
            if is_granular(item_form, name, item_keys) and all(
                isinstance(part, (dict, list)) or part is None for part in parts
            ):
                members |= changed(item_form, before[step], item, member_path, item_keys)
            else:
                members.add(member_path)
    return members


def owned_part(obj: JsonObject, *, status: bool | None) -> JsonObject:
    """The part of an object that can have owners; `status` True selects only it (and metadata),
    False drops it, None selects all.
    """
    part = {}
    for name, value in obj.items():
        if name == "metadata":
            part[name] = {k: v for k, v in value.items() if k not in UNOWNED}
        elif status is None or (name == "status") == status:
            part[name] = value
    return part


def find(obj: Any, path: Path) -> Any:
    """The value of a field, or None."""
    for step in path:
        obj = _child(obj, step)
        if obj is None:
            return None
    return obj


def _child(obj: Any, step: str) -> Any:
    if step.startswith("f:"):
        return obj.get(step[2:]) if isinstance(obj, dict) else None
    if not isinstance(obj, list):
        return None
    wanted = orjson.loads(step[2:])
    if step.startswith("v:"):
        return wanted if wanted in obj else None
    for item in obj:
        if all(item.get(key) == value for key, value in wanted.items()):
            return item
    return None


def without(obj: Any, path: Path) -> Any:
    """A copy of a value without one field; shares all parts that are not on the path to it."""
    step = path[0]
    child = _child(obj, step)
    if child is None:
        return obj
    if isinstance(obj, dict):
        out = dict(obj)
        if len(path) == 1:
            del out[step[2:]]
        else:
            out[step[2:]] = without(child, path[1:])
        return out
    if len(path) == 1:
        return [item for item in obj if item is not child and item != child]
    return [without(item, path[1:]) if item is child else item for item in obj]


def shown(path: Path) -> str:
    """A field in the form of conflict messages: `.spec.containers[name="c"].image`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("v:"):
            text += f"[={step[2:]}]"
        else:
            pairs = orjson.loads(step[2:]).items()
            text += f"[{','.join(f'{k}={orjson.dumps(v).decode()}' for k, v in pairs)}]"
    return text


def overlay(form: str, live: Any, applied: Any, keys: Any = None, name: str = "") -> Any:
    """The live value with an applied one laid over it, part by part."""
    if not is_granular(form, name, keys) or not isinstance(live, (dict, list)) or not live:
        return applied
    if isinstance(applied, dict) and isinstance(live, dict):
        out = dict(live)
        for step, item, item_form, item_name, item_keys in children(form, keys, applied):
            out[step[2:]] = overlay(item_form, live.get(step[2:]), item, item_keys, item_name)
        return out
    if not isinstance(applied, list) or not isinstance(live, list):
        return applied
    if not keys:
        return [*live, *(item for item in applied if item not in live)]
    merged = {key_step(item, keys): item for item in live}
    for item in applied:
        step = key_step(item, keys)
        merged[step] = overlay(form[1:-1], merged.get(step), item)
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class Entry:
    """The owner of some fields, since when, and by which subresource."""

    manager: str
    operation: str
    time: str
    sub: str
    fields: FieldSet

    @property
    def owner(self) -> Owner:
        return self.manager, self.operation, self.sub

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
        own = [entry for entry in entries if entry.owner == (manager, "Update", subresource)]
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
