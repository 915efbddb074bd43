"""Deployment: one ReplicaSet per template, and the rollover from the old ones to the new rolled.

The newest template's ReplicaSet grows while the old ones shrink, within maxSurge above and
maxUnavailable below spec.replicas; `Recreate` waits until the old pods are gone. A ReplicaSet whose
template becomes current again is used again, which is all that `kubectl rollout undo` needs.
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
    """One ReplicaSet of a Deployment: pods wanted, existing, and ready."""

    record: Record
    wanted: int
    pods: int
    ready: int

    @property
    def name(self) -> str:
        return self.record.key[1]


def sync(dependents: Dependents, res: Resource, record: Record) -> None:
    """Bring the ReplicaSets one step further, and write the status. Raises ApiError."""
    sets = [_rolled(dependents, rolled) for rolled in dependents.of(_uid(record), REPLICA_SETS)]
    new = next(
        (rolled for rolled in sets if _template(rolled.record.obj) == _template(record.obj)), None
    )
    if not record.obj["spec"].get("paused"):
        if new is None:
            _create(dependents, res, record)  # its creation leads to another call
            return
        record = _revise(dependents, res, record, new, sets)
    old = [rolled for rolled in sets if rolled is not new]
    for rolled, count in _targets(record.obj["spec"], new, old):
        if count != rolled.wanted:
            _scale(dependents, rolled, count)
    if not record.obj["spec"].get("paused"):
        _forget(dependents, record.obj["spec"].get("revisionHistoryLimit", 10), old)
    status = _status(dependents.ctx.now(), record.obj, new, sets)
    dependents.write_status(res, record, status)


def _uid(record: Record) -> str:
    return str(record.obj["metadata"]["uid"])


def _rolled(dependents: Dependents, record: Record) -> Rolled:
    pods = [rolled.obj for rolled in dependents.pods(_uid(record))]
    active = [pod for pod in pods if pod["status"]["phase"] not in FINISHED]
    wanted = record.obj["spec"]["replicas"]
    return Rolled(record, wanted, len(active), sum(map(is_ready, active)))


def _template(workload: JsonObject) -> JsonObject:
    """A pod template without the label of its hash."""
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
    """Create the ReplicaSet of the current template, without pods."""
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
    """Number the newest template above all highest; return the updated Deployment."""
    highest = max((_revision(rolled.record.obj) for rolled in sets if rolled is not new), default=0)
    revision = _revision(new.record.obj)
    if revision <= highest:
        revision = highest + 1
        new.record = dependents.ctx.put(REPLICA_SETS, _with_revision(new.record.obj, revision))
    if _revision(record.obj) != revision:
        record = dependents.ctx.put(res, _with_revision(record.obj, revision))
    return record


def _limits(spec: JsonObject) -> tuple[int, int]:
    """Maximum surge above and unavailability below the wanted number of pods."""
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
    """The number of pods that each ReplicaSet is to have now."""
    wanted = spec["replicas"]
    if new is None or spec.get("paused"):
        live = [rolled for rolled in (*old, *([new] if new else ())) if rolled.wanted]
        return [(live[0], wanted)] if len(live) == 1 else []
    if spec["strategy"]["type"] == "Recreate":
        stopped = [(rolled, 0) for rolled in old]
        return stopped if any(rolled.pods for rolled in old) else [*stopped, (new, wanted)]
    surge, missing = _limits(spec)
    room = wanted + surge - new.wanted - sum(rolled.wanted for rolled in old)
    grown = min(wanted, new.wanted + max(0, room))
    # Scale down pods that are not ready first, then ready pods as long as enough remain.
    total = grown + sum(rolled.wanted for rolled in old)
    may_go = max(0, total - (wanted - missing) - (grown - min(new.ready, grown)))
    counts = {rolled.name: rolled.wanted for rolled in old}
    for ready_too in (False, True):
        for rolled in old:
            spare = counts[rolled.name] if ready_too else max(0, counts[rolled.name] - rolled.ready)
            going = min(spare, may_go)
            may_go -= going
            counts[rolled.name] -= going
    return [(new, grown), *((rolled, counts[rolled.name]) for rolled in old)]


def _scale(dependents: Dependents, rolled: Rolled, count: int) -> None:
    obj = rolled.record.obj
    metadata = {**obj["metadata"], "generation": obj["metadata"]["generation"] + 1}
    changed = {**obj, "metadata": metadata, "spec": {**obj["spec"], "replicas": count}}
    rolled.record = dependents.ctx.put(REPLICA_SETS, changed)
    rolled.wanted = count


def _forget(dependents: Dependents, limit: int, old: list[Rolled]) -> None:
    """Remove the oldest empty ReplicaSets beyond the history limit."""
    empty = [rolled for rolled in old if not rolled.wanted and not rolled.pods]
    empty.sort(key=lambda rolled: _revision(rolled.record.obj))
    for rolled in empty[: max(0, len(empty) - limit)]:
        dependents.delete(REPLICA_SETS, rolled.record)


def _status(now: str, obj: JsonObject, new: Rolled | None, sets: list[Rolled]) -> JsonObject:
    wanted = obj["spec"]["replicas"]
    pods, ready = sum(rolled.pods for rolled in sets), sum(rolled.ready for rolled in sets)
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
