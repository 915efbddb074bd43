"""The three ways to change part of an object: merge patch, JSON patch, strategic merge patch.

Pure functions from a document and a patch to a new document; neither input is changed, and parts
that the patch does not touch are shared. Strategic merge reads `schema.TYPES` to find lists that
are merged by a key and lists that are sets.

Order of a merged list: elements of the patch have the patch's order, other elements the server's,
and between both an element goes first only if the server had it first; so a new element is put in
front.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from asched_lab.apiserver import schema

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
        if not key:
            return item
        if not isinstance(item, dict) or key not in item:
            raise KeylessError(f"map: {go_text(item)} does not contain declared merge key: {key}")
        return item[key]

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
