"""Deployment: one ReplicaSet per template, and the way from the old ones to the new.

The newest template's ReplicaSet grows while the others shrink, within maxSurge above and
maxUnavailable below the wanted number; `Recreate` waits until the old pods are gone. A ReplicaSet
whose template is wanted again is taken up again, which is all that `kubectl rollout undo` needs.
minReadySeconds and progressDeadlineSeconds are stored without an effect.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver.dependents import FINISHED, Dependents, condition, is_ready
from asched_lab.apiserver.resources import REPLICA_SETS, Resource
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"


@dataclass(slots=True)
class Rolled:
    """One ReplicaSet of a Deployment: pods wanted, there, and ready."""

    record: Record
    wanted: int
    pods: int
    ready: int

    @property
    def name(self) -> str:
        return self.record.key[1]


def sync(dependents: Dependents, res: Resource, record: Record) -> None:
    """Bring the ReplicaSets one step further, and tell how far they are. Raises ApiError."""
    sets = [_rolled(dependents, one) for one in dependents.of(_uid(record), REPLICA_SETS)]
    new = next((one for one in sets if _template(one.record.obj) == _template(record.obj)), None)
    if not record.obj["spec"].get("paused"):
        if new is None:
            _create(dependents, res, record)  # its creation leads here again
            return
        record = _revise(dependents, res, record, new, sets)
    old = [one for one in sets if one is not new]
    for one, count in _targets(record.obj["spec"], new, old):
        if count != one.wanted:
            _scale(dependents, one, count)
    if not record.obj["spec"].get("paused"):
        _forget(dependents, record.obj["spec"].get("revisionHistoryLimit", 10), old)
    status = _status(dependents.ctx.now(), record.obj, new, sets)
    dependents.write_status(res, record, status)


def _uid(record: Record) -> str:
    return str(record.obj["metadata"]["uid"])


def _rolled(dependents: Dependents, record: Record) -> Rolled:
    pods = [one.obj for one in dependents.pods(_uid(record))]
    active = [pod for pod in pods if pod["status"]["phase"] not in FINISHED]
    wanted = record.obj["spec"]["replicas"]
    return Rolled(record, wanted, len(active), sum(map(is_ready, active)))


def _template(workload: JsonObject) -> JsonObject:
    """A pod template without the label that tells templates apart."""
    template: JsonObject = workload["spec"]["template"]
    metadata = template["metadata"]
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {"labels": labels, "annotations": metadata.get("annotations"), "spec": template["spec"]}


def _revision(obj: JsonObject) -> int:
    return int((obj["metadata"].get("annotations") or {}).get(REVISION, 0))


def _with_revision(obj: JsonObject, revision: int) -> JsonObject:
    annotations = {**(obj["metadata"].get("annotations") or {}), REVISION: str(revision)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _create(dependents: Dependents, res: Resource, record: Record) -> None:
    """The ReplicaSet of the present template, without pods as yet."""
    obj = record.obj
    known = orjson.dumps([_uid(record), _template(obj)], option=orjson.OPT_SORT_KEYS)
    mark = {HASH_LABEL: hashlib.sha256(known).hexdigest()[:10]}
    spec, template = obj["spec"], obj["spec"]["template"]
    labels = (template["metadata"].get("labels") or {}) | mark
    selector = spec["selector"]
    chosen = {**selector, "matchLabels": (selector.get("matchLabels") or {}) | mark}
    metadata = {"name": f"{record.key[1]}-{mark[HASH_LABEL]}", "labels": labels}
    marked = {**template, "metadata": {**template["metadata"], "labels": labels}}
    body = {"replicas": 0, "selector": chosen, "template": marked}
    dependents.create(res, record, REPLICA_SETS, {"metadata": metadata, "spec": body})


def _revise(
    dependents: Dependents, res: Resource, record: Record, new: Rolled, sets: list[Rolled]
) -> Record:
    """Number the newest template above all others; returns the Deployment as it is then."""
    others = max((_revision(one.record.obj) for one in sets if one is not new), default=0)
    revision = _revision(new.record.obj)
    if revision <= others:
        revision = others + 1
        new.record = dependents.ctx.put(REPLICA_SETS, _with_revision(new.record.obj, revision))
    if _revision(record.obj) != revision:
        record = dependents.ctx.put(res, _with_revision(record.obj, revision))
    return record


def _limits(spec: JsonObject) -> tuple[int, int]:
    """How many pods there may be above, and may be missing below, the wanted number."""
    rolling = spec["strategy"].get("rollingUpdate") or {}
    wanted = spec["replicas"]
    surge = _share(rolling.get("maxSurge", 0), wanted, math.ceil)
    missing = _share(rolling.get("maxUnavailable", 0), wanted, math.floor)
    return surge, missing if surge or missing else 1


def _share(value: int | str, of: int, rounded: Any) -> int:
    if isinstance(value, int):
        return value
    return int(rounded(int(value.rstrip("%")) * of / 100))


def _targets(spec: JsonObject, new: Rolled | None, old: list[Rolled]) -> list[tuple[Rolled, int]]:
    """How many pods each ReplicaSet is to have now."""
    wanted = spec["replicas"]
    if new is None or spec.get("paused"):
        live = [one for one in (*old, *([new] if new else ())) if one.wanted]
        return [(live[0], wanted)] if len(live) == 1 else []
    if spec["strategy"]["type"] == "Recreate":
        stopped = [(one, 0) for one in old]
        return stopped if any(one.pods for one in old) else [*stopped, (new, wanted)]
    surge, missing = _limits(spec)
    room = wanted + surge - new.wanted - sum(one.wanted for one in old)
    grown = min(wanted, new.wanted + max(0, room))
    # What may go: first what is not ready anyway, then ready pods as far as enough stay.
    total = grown + sum(one.wanted for one in old)
    may_go = max(0, total - (wanted - missing) - (grown - min(new.ready, grown)))
    kept = {one.name: one.wanted for one in old}
    for ready_too in (False, True):
        for one in old:
            spare = kept[one.name] if ready_too else max(0, kept[one.name] - one.ready)
            going = min(spare, may_go)
            may_go -= going
            kept[one.name] -= going
    return [(new, grown), *((one, kept[one.name]) for one in old)]


def _scale(dependents: Dependents, one: Rolled, count: int) -> None:
    obj = one.record.obj
    metadata = {**obj["metadata"], "generation": obj["metadata"]["generation"] + 1}
    changed = {**obj, "metadata": metadata, "spec": {**obj["spec"], "replicas": count}}
    one.record = dependents.ctx.put(REPLICA_SETS, changed)
    one.wanted = count


def _forget(dependents: Dependents, limit: int, old: list[Rolled]) -> None:
    """Remove the oldest ReplicaSets that nobody needs, beyond those kept for a way back."""
    empty = [one for one in old if not one.wanted and not one.pods]
    empty.sort(key=lambda one: _revision(one.record.obj))
    for one in empty[: max(0, len(empty) - limit)]:
        dependents.delete(REPLICA_SETS, one.record)


def _status(now: str, obj: JsonObject, new: Rolled | None, sets: list[Rolled]) -> JsonObject:
    wanted = obj["spec"]["replicas"]
    pods, ready = sum(one.pods for one in sets), sum(one.ready for one in sets)
    updated = new.pods if new is not None else 0
    counts = {
        "replicas": pods,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, wanted - ready),
    }
    status: JsonObject = {"observedGeneration": obj["metadata"]["generation"]}
    status |= {name: count for name, count in counts.items() if count}
    conditions = obj["status"].get("conditions") or []
    is_enough = ready >= wanted - _limits(obj["spec"])[1]
    conditions = condition(
        conditions,
        "Available",
        str(is_enough),
        now,
        reason=f"MinimumReplicas{'Available' if is_enough else 'Unavailable'}",
        message=f"Deployment {'has' if is_enough else 'does not have'} minimum availability.",
    )
    name = new.name if new is not None else ""
    progress = ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    if obj["spec"].get("paused"):
        progress = ("Unknown", "DeploymentPaused", "Deployment is paused")
    elif updated == pods == ready == wanted:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        progress = ("True", "NewReplicaSetAvailable", message)
    word, reason, message = progress
    status["conditions"] = condition(
        conditions, "Progressing", word, now, reason=reason, message=message
    )
    return status
