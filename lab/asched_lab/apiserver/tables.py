"""Tables, the form that `kubectl get` requests: columns by kind, one row per object.

`COLUMNS` has the columns of common kinds; every other kind shows its name and age.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from asched_lab.apiserver import table_columns
from asched_lab.apiserver.events import to_v1
from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]


@lru_cache(maxsize=128)
def definitions(kind: str) -> tuple[JsonObject, ...]:
    """The column definitions of a kind."""
    return tuple(
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column.name == "Name" else "",
            "description": column.description,
            "priority": column.priority,
        }
        for column in table_columns.columns(kind)
    )


def table(
    res: Resource,
    objects: Sequence[JsonObject],
    metadata: JsonObject,
    now_s: float,
    *,
    include: str = "Metadata",
    with_columns: bool = True,
) -> JsonObject:
    """A whole table; `include`: what each row has besides its cells."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": list(definitions(res.kind)) if with_columns else None,
        "rows": [row(res, obj, now_s, include) for obj in objects],
    }


def row(res: Resource, obj: JsonObject, now_s: float, include: str) -> JsonObject:
    cells = [column.cell(obj, now_s) for column in table_columns.columns(res.kind)]
    if include == "None":
        carried = None
    elif include == "Object":
        content = to_v1(obj) if res.kind == "Event" and res.group else obj
        carried = {"kind": res.kind, "apiVersion": res.api_version, **content}
    else:
        carried = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return {"cells": cells, "object": carried}
