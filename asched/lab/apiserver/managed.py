"""metadata.managedFields: who set which field (first part: carried along unchanged)."""

from typing import Any

from asched.lab.apiserver.context import Context
from asched.lab.apiserver.resources import Resource

JsonObject = dict[str, Any]


def record_create(ctx: Context, res: Resource, obj: JsonObject, manager: str) -> None:
    del ctx, res, obj, manager


def record_update(
    ctx: Context,
    res: Resource,
    old: JsonObject,
    new: JsonObject,
    fields: list[Any] | None,
    manager: str,
    sub: str,
) -> None:
    del ctx, res, fields, manager, sub
    if "managedFields" in old["metadata"]:
        new["metadata"]["managedFields"] = old["metadata"]["managedFields"]
