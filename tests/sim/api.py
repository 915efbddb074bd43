"""An API server in a dictionary: it carries out effects and says what a watch would show.

    put, drop        somebody else changes an object: Seen or Gone
    carry_out        an effect of the scheduler: its answer, and what the watch shows of it

Now and then it refuses a write. Volumes are provisioned and bound as soon as the scheduler asks.
"""

import random
from typing import Any

from asched.core.cluster.facts import Answer, Bound, Done, Fact, Gone, Refused, Seen
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    Patch,
    PatchPodStatus,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Kind
from asched.core.model.storage import BIND_COMPLETED, SELECTED_NODE

Json = dict[str, Any]

TERMINATING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class Api:
    """`objects` by (plural, "namespace/name"); a cluster-wide object's key begins with a slash."""

    def __init__(self, rng: random.Random, refusals: float) -> None:
        self.rng = rng
        self.refusals = refusals  # share of writes that fail
        self.objects: dict[tuple[str, str], Json] = {}
        self.version = 0

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return self.objects.get((kind.plural, f"{namespace}/{name}"))

    def all(self, kind: Kind) -> list[Json]:
        return [obj for (plural, _), obj in self.objects.items() if plural == kind.plural]

    def put(self, kind: Kind, obj: Json) -> Fact:
        """A new object, or a new version of one."""
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        metadata.setdefault("uid", f"uid-{self.version}")
        obj = {**obj, "metadata": metadata}
        self.objects[kind.plural, _key(obj)] = obj
        return Seen(kind, decode(kind.record, obj))

    def drop(self, kind: Kind, obj: Json) -> Fact:
        del self.objects[kind.plural, _key(obj)]
        return Gone(kind, decode(kind.record, obj))

    def carry_out(self, effect: Effect) -> list[Fact]:
        """Effects that want no answer are carried out all the same."""
        if effect.id and self.rng.random() < self.refusals:
            return [Refused(effect.id, 500, "the server is having a bad day")]
        match effect:
            case Bind():
                return self._bind(effect)
            case DeletePod():
                return self._delete_pod(effect)
            case PatchPodStatus():
                return self._patch_status(effect)
            case Patch():
                return self._patch(effect)
            case Create():
                made = self._named(effect.namespace, dict(effect.body))
                seen = self.put(effect.kind, made)
                return [Done(effect.id, self.objects[effect.kind.plural, _key(made)]), seen]
            case Delete():
                found = self.get(effect.kind, effect.namespace, effect.name)
                gone = [] if found is None else [self.drop(effect.kind, found)]
                return [Done(effect.id), *gone]
        return [Done(effect.id)] if effect.id and effect.answers else []

    # --- pods -------------------------------------------------------------------------------------

    def _bind(self, bind: Bind) -> list[Fact]:
        pod = self._same(bind.pod)
        if pod is None:
            return [_not_found(bind)]
        placed = {**pod, "spec": {**pod["spec"], "nodeName": bind.node}}
        return [Bound(bind.id), self.put(POD, placed)]

    def _delete_pod(self, effect: DeletePod) -> list[Fact]:
        pod = self._same(effect.pod)
        if pod is None:
            return [_not_found(effect)]
        if self.rng.random() < 0.5:
            return [Done(effect.id), self.drop(POD, pod)]
        ending = {**pod, "metadata": {**pod["metadata"], **TERMINATING}}
        return [Done(effect.id), self.put(POD, ending)]

    def _patch_status(self, effect: PatchPodStatus) -> list[Fact]:
        pod = self._same(effect.pod)
        if pod is None:
            return [_not_found(effect)] if effect.id else []
        status = dict(pod["status"])
        if effect.condition is not None:
            others = [
                c for c in status.get("conditions", ()) if c["type"] != effect.condition["type"]
            ]
            status["conditions"] = [*others, dict(effect.condition)]
        if effect.nominated_node_name is not None:
            status["nominatedNodeName"] = effect.nominated_node_name
        answer: list[Fact] = [Done(effect.id)] if effect.id else []
        return [*answer, self.put(POD, {**pod, "status": status})]

    def _same(self, ref: Any) -> Json | None:
        pod = self.get(POD, ref.namespace, ref.name)
        return pod if pod is not None and pod["metadata"]["uid"] == ref.uid else None

    # --- other objects ----------------------------------------------------------------------------

    def _patch(self, effect: Patch) -> list[Fact]:
        found = self.get(effect.kind, effect.namespace, effect.name)
        if found is None:
            return [_not_found(effect)]
        seen = self.put(effect.kind, _merged(found, effect.body))
        now = self.get(effect.kind, effect.namespace, effect.name)
        assert now is not None
        return [Done(effect.id, now), seen, *self._controllers(effect.kind, now)]

    def _controllers(self, kind: Kind, obj: Json) -> list[Fact]:
        """What the volume controller does about a claim or a volume that the scheduler chose."""
        if kind is PERSISTENT_VOLUME and obj["spec"].get("claimRef"):
            reference = obj["spec"]["claimRef"]
            claim = self.get(PERSISTENT_VOLUME_CLAIM, reference["namespace"], reference["name"])
            return [] if claim is None else [self.bound(claim, obj["metadata"]["name"])]
        if kind is PERSISTENT_VOLUME_CLAIM and SELECTED_NODE in obj["metadata"].get(
            "annotations", {}
        ):
            name = f"made-{self.version}"
            volume = {
                "metadata": {"name": name},
                "spec": {
                    "accessModes": obj["spec"]["accessModes"],
                    "capacity": obj["spec"]["resources"]["requests"],
                    "storageClassName": obj["spec"].get("storageClassName", ""),
                    "csi": {"driver": "csi.example.com", "volumeHandle": name},
                },
                "status": {"phase": "Bound"},
            }
            return [self.put(PERSISTENT_VOLUME, volume), self.bound(obj, name)]
        return []

    def bound(self, claim: Json, volume: str) -> Fact:
        annotations = {**claim["metadata"].get("annotations", {}), BIND_COMPLETED: "yes"}
        metadata = {**claim["metadata"], "annotations": annotations}
        spec = {**claim["spec"], "volumeName": volume}
        ended = {**claim, "metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}
        return self.put(PERSISTENT_VOLUME_CLAIM, ended)

    def _named(self, namespace: str, body: Json) -> Json:
        metadata = dict(body["metadata"])
        metadata.setdefault("namespace", namespace)
        if "name" not in metadata:
            metadata["name"] = f"{metadata.pop('generateName', 'made-')}{self.version}"
        return {**body, "metadata": metadata}


def _key(obj: Json) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _not_found(effect: Effect) -> Answer:
    return Refused(effect.id, 404, "not found", "NotFound")


def _merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch, except that preconditions in it are not looked at."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key, {}), value)
    return merged
