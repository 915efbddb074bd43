"""Ownership: the dependents of each owner, and the writes that change them.

Dependents belong to their owner by owner reference alone; no object is adopted by its labels.
"""

from collections import defaultdict
from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud, deletion
from asched_lab.apiserver.batches import Item
from asched_lab.apiserver.binding import with_condition
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import PODS, Resource
from asched_lab.apiserver.store import DELETED, Change, Record

JsonObject = dict[str, Any]

MANAGER: Final = "kube-controller-manager"
FINISHED: Final = frozenset({"Succeeded", "Failed"})


class Dependents:
    """Dependents by the owner's uid, and the writes that change them."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._owned: defaultdict[str, set[Item]] = defaultdict(set)

    def note(self, res: Resource, change: Change) -> None:
        """Record one change of a dependent."""
        before = controller_of(change.old.obj) if change.old is not None else None
        after = controller_of(change.new.obj) if change.type != DELETED else None
        if before is not None:
            self._owned[before["uid"]].discard((res, change.new.key))
            if not self._owned[before["uid"]]:
                del self._owned[before["uid"]]
        if after is not None:
            self._owned[after["uid"]].add((res, change.new.key))

    def of(self, uid: str, res: Resource) -> list[Record]:
        """The dependents of a kind, oldest first."""
        records = self.ctx.store.table(res.storage).records
        found = [records[key] for kind, key in self._owned.get(uid, ()) if kind is res]
        return sorted(
            found, key=lambda record: (record.obj["metadata"]["creationTimestamp"], record.key)
        )

    def pods(self, uid: str) -> list[Record]:
        """The pods that are not terminating."""
        pods = self.of(uid, PODS)
        return [pod for pod in pods if not pod.obj["metadata"].get("deletionTimestamp")]

    def create(self, owner: Resource, record: Record, res: Resource, obj: JsonObject) -> None:
        """Create a dependent in the owner's namespace. Raises ApiError."""
        metadata = record.obj["metadata"]
        obj["metadata"]["ownerReferences"] = [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": metadata["name"],
                "uid": metadata["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        made, _ = bodies.to_stored(res, orjson.loads(orjson.dumps(obj)))
        crud.create(self.ctx, res, metadata["namespace"], made, manager=MANAGER)

    def delete(self, res: Resource, record: Record) -> None:
        deletion.delete(self.ctx, res, record, {})

    def disown(self, item: Item) -> None:
        """Remove the owner reference of a dependent."""
        res, key = item
        obj = self.ctx.store.table(res.storage).records[key].obj
        metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
        self.ctx.put(res, {**obj, "metadata": metadata})

    def collect(self, owner: JsonObject) -> None:
        """Delete the dependents of a deleted owner, or orphan them if requested."""
        metadata = owner["metadata"]
        are_orphans = "orphan" in (metadata.get("finalizers") or ())
        for res, key in sorted(self._owned.get(metadata["uid"], ()), key=lambda item: item[1]):
            if are_orphans:
                self.disown((res, key))
            else:
                self.delete(res, self.ctx.store.table(res.storage).records[key])

    def write_status(self, res: Resource, record: Record, status: JsonObject) -> None:
        """Store a status if it differs."""
        if status != record.obj["status"]:
            self.ctx.put(res, {**record.obj, "status": status})


def controller_of(obj: JsonObject) -> JsonObject | None:
    """The owner reference of the controller, if there is one."""
    if not obj:
        return None
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: JsonObject = owner
            return found
    return None


def is_ready(pod: JsonObject) -> bool:
    return any(
        entry["type"] == "Ready" and entry["status"] == "True"
        for entry in pod["status"].get("conditions") or ()
    )


def pod_of(template: JsonObject, owner: str, **metadata: Any) -> JsonObject:
    """A pod to create from a template; its name is generated unless `metadata` has one."""
    metadata_of_template = {
        k: v for k, v in template["metadata"].items() if k in {"labels", "annotations"}
    }
    named = {**metadata_of_template, "generateName": f"{owner}-", **metadata}
    return {"metadata": named, "spec": template["spec"]}


def condition(
    conditions: list[JsonObject], kind: str, status: str, now: str, **words: str
) -> list[JsonObject]:
    """The conditions with one of them updated; its time is that of the last change."""
    old = next((entry for entry in conditions if entry["type"] == kind), {})
    fresh: JsonObject = {"type": kind, "status": status, **words}
    if all(old.get(name) == value for name, value in fresh.items()):
        return conditions
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return with_condition(conditions, {**fresh, "lastTransitionTime": since or now})
