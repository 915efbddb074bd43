"""The controllers that `kubectl create deployment` and `job` need.

    ReplicaSet, ReplicationController   as many pods as spec.replicas, counted in the status
    Deployment                          a ReplicaSet per template, rolled over
    Job                                 pods in parallel until enough of them succeeded
    garbage collection                  pods, ReplicaSets, Jobs and groups of a deleted owner

Creating a kind of `UNATTENDED` gives a warning that no controller handles it. A new owner adopts
what its selector matches and no controller owns; later, dependents belong to it by owner reference
alone.

Deployment: the newest template's ReplicaSet grows while the old ones shrink, within maxSurge above
and maxUnavailable below spec.replicas; `Recreate` waits until the old pods are gone. A ReplicaSet
whose template becomes current again is used again, which is all that `kubectl rollout undo` needs.
minReadySeconds and progressDeadlineSeconds are stored without an effect.

Job: as 1.38, one without an owner gets a Workload and a PodGroup first, which its pods name: with a
gang policy if `spec.scheduling` asks for one (KEP-5547, gate WorkloadWithJob). Suspending, indexed
completions and backoffLimit work; deadlines, the time to live after the end and the policies for
failures and success are stored without an effect.
"""

import hashlib
import logging
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, crud
from asched_lab.apiserver.binding import with_condition
from asched_lab.apiserver.context import ADDED, DELETED, Change, Context, Key, Record
from asched_lab.apiserver.kubelet import Batches, Item
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import (
    BY_KIND,
    JOB_GROUPS,
    PODS,
    REPLICA_SETS,
    WORKLOADS,
    Resource,
    find,
)
from asched_lab.apiserver.selectors import matches_label_selector

JsonObject = dict[str, Any]

MANAGER: Final = "kube-controller-manager"
FINISHED: Final = frozenset({"Succeeded", "Failed"})
#: What a new owner adopts.
ADOPTABLE: Final = frozenset({PODS, REPLICA_SETS})


class Dependents:
    """Dependents by the owner's uid, and the writes that change them."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._owned: defaultdict[str, set[Item]] = defaultdict(set)
        #: Pods and ReplicaSets without a controller, oldest first.
        self._orphans: dict[Item, None] = {}

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
        if res in ADOPTABLE:
            self._orphans.pop((res, change.new.key), None)
            if after is None and change.type != DELETED:
                self._orphans[res, change.new.key] = None

    def adopt(self, owner: Resource, record: Record) -> None:
        """Set a new owner's reference on what its selector matches and no controller owns."""
        metadata, selector = record.obj["metadata"], record.obj["spec"].get("selector")
        wanted = REPLICA_SETS if owner.kind == "Deployment" else PODS
        if owner.kind == "ReplicationController":
            selector = {"matchLabels": selector or {}}
        for res, key in [(r, k) for r, k in self._orphans if r is wanted and k[0] == record.key[0]]:
            obj = self.ctx.store.table(res.storage).records[key].obj
            labels = obj["metadata"].get("labels") or {}
            if not obj["metadata"].get("deletionTimestamp") and matches_label_selector(
                selector, labels
            ):
                references = [
                    *(obj["metadata"].get("ownerReferences") or ()),
                    _reference(owner, metadata),
                ]
                adopted = {**obj["metadata"], "ownerReferences": references}
                self.ctx.put(res, {**obj, "metadata": adopted})

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
        obj["metadata"]["ownerReferences"] = [_reference(owner, metadata)]
        made, _ = bodies.to_stored(res, orjson.loads(orjson.dumps(obj)))
        crud.create(self.ctx, res, metadata["namespace"], made, manager=MANAGER)

    def delete(self, res: Resource, record: Record) -> None:
        crud.delete(self.ctx, res, record, {})

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


def _reference(owner: Resource, metadata: JsonObject) -> JsonObject:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


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


#: Pods that one sync of an owner creates; the next sync creates the rest.
CREATED_PER_SYNC: Final = 64


def sync_replicas(dependents: Dependents, res: Resource, record: Record) -> None:
    """Create or delete pods until the number is right. Raises ApiError."""
    obj, uid = record.obj, record.obj["metadata"]["uid"]
    active = [pod for pod in dependents.pods(uid) if pod.obj["status"]["phase"] not in FINISHED]
    missing = obj["spec"]["replicas"] - len(active)
    refused: ApiError | None = None
    try:
        for _ in range(min(missing, CREATED_PER_SYNC)):
            pod = pod_of(obj["spec"]["template"], record.key[1])
            dependents.create(res, record, PODS, pod)
    except ApiError as error:
        refused = error
    # Pods without a node go first, then pods that are not ready, then the youngest.
    youngest_first = active[::-1]
    by_worth = sorted(youngest_first, key=lambda pod: (_has_node(pod.obj), is_ready(pod.obj)))
    for surplus in by_worth[: max(0, -missing)]:
        dependents.delete(PODS, surplus)
    status = replica_status(dependents, obj, refused)
    dependents.write_status(res, record, status)
    if refused is not None:
        raise refused


def _has_node(pod: JsonObject) -> bool:
    return bool(pod["spec"].get("nodeName"))


def replica_status(dependents: Dependents, obj: JsonObject, refused: ApiError | None) -> JsonObject:
    metadata = obj["metadata"]
    pods = dependents.pods(metadata["uid"])
    active = [pod.obj for pod in pods if pod.obj["status"]["phase"] not in FINISHED]
    ready = sum(map(is_ready, active))
    status: JsonObject = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": metadata.get("generation", 0),
    }
    conditions = obj["status"].get("conditions") or []
    if refused is not None:
        now = dependents.ctx.now()
        words = {"reason": "FailedCreate", "message": str(refused)}
        status["conditions"] = condition(conditions, "ReplicaFailure", "True", now, **words)
    return status


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


def sync_deployment(dependents: Dependents, res: Resource, record: Record) -> None:
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


INDEX: Final = "batch.kubernetes.io/job-completion-index"


def sync_job(dependents: Dependents, res: Resource, record: Record) -> None:
    """Create or delete pods as the Job requires, and write its status. Raises ApiError."""
    obj, spec, old = record.obj, record.obj["spec"], record.obj.get("status") or {}
    if any(entry["type"] in {"Complete", "Failed"} for entry in old.get("conditions") or ()):
        return
    pods = [pod.obj for pod in dependents.of(obj["metadata"]["uid"], PODS)]
    active = [
        pod
        for pod in pods
        if pod["status"]["phase"] not in FINISHED and not pod["metadata"].get("deletionTimestamp")
    ]
    is_indexed = spec["completionMode"] == "Indexed"
    done = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
    completed = _numbers(old.get("completedIndexes", "")) | {_index(pod) for pod in done}
    # A pod that ended also counts if it was deleted meanwhile.
    succeeded = len(completed) if is_indexed else max(old.get("succeeded", 0), len(done))
    failures = sum(1 for pod in pods if pod["status"]["phase"] == "Failed")
    failed = max(old.get("failed", 0), failures)
    wanted = _wanted(spec, succeeded, len(active))
    has_failed = failed > spec["backoffLimit"]
    if has_failed or spec["suspend"]:
        wanted = 0
    for pod in active[wanted:]:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        dependents.delete(PODS, dependents.ctx.store.table(PODS.storage).records[key])
    taken = completed | {_index(pod) for pod in active}
    template = spec["template"]
    if wanted > len(active) and JOB_GROUPS in dependents.ctx.resources:
        template = _grouped(dependents, res, record, is_new=not pods)
    for _ in range(min(wanted - len(active), CREATED_PER_SYNC)):
        number = next(n for n in range(len(taken) + 1) if n not in taken) if is_indexed else -1
        taken.add(number)
        dependents.create(res, record, PODS, _pod(template, record.key[1], number))
    live = [pod.obj for pod in dependents.pods(obj["metadata"]["uid"])]
    running = [pod for pod in live if pod["status"]["phase"] not in FINISHED]
    status = {
        "startTime": old.get("startTime") or dependents.ctx.now(),
        "active": len(running),
        "ready": sum(map(is_ready, running)),
        "succeeded": succeeded,
        "failed": failed,
    }
    status = {name: value for name, value in status.items() if value or name == "ready"}
    if is_indexed:
        status["completedIndexes"] = _text(completed)
    status["conditions"] = _conditions(dependents.ctx.now(), obj, status, has_failed=has_failed)
    if any(entry["type"] == "Complete" for entry in status["conditions"]):
        status["completionTime"] = dependents.ctx.now()
    dependents.write_status(res, record, status)


def _grouped(dependents: Dependents, res: Resource, record: Record, *, is_new: bool) -> JsonObject:
    """The template of pods in the Job's group, which is created first if the Job has no pods yet.
    A Job with an owner, or with a group in its template, gets none. Raises ApiError.
    """
    obj, spec = record.obj, record.obj["spec"]
    template: JsonObject = spec["template"]
    if controller_of(obj) is not None or template["spec"].get("schedulingGroup"):
        return template
    name = f"{record.key[1][:200]}-{obj['metadata']['uid'][:8]}"
    made = dependents.of(obj["metadata"]["uid"], JOB_GROUPS)
    if not made and not is_new:
        return template
    if not made:
        wanted = dict(spec.get("scheduling") or {})
        policy = wanted.pop("schedulingPolicy", None) or {"basic": {}}
        if "gang" in policy:
            policy = {"gang": {"minCount": spec["parallelism"], **policy["gang"]}}
        body = {**wanted, "schedulingPolicy": policy}
        if "priorityClassName" in template["spec"]:
            body["priorityClassName"] = template["spec"]["priorityClassName"]
        controller = {"apiGroup": res.group, "kind": res.kind, "name": record.key[1]}
        templates = [{"name": "pods", **body}]
        workload = {"controllerRef": controller, "podGroupTemplates": templates}
        group = {"workloadRef": {"workloadName": name, "templateName": "pods"}, **body}
        for kind, own in ((WORKLOADS, workload), (JOB_GROUPS, group)):
            dependents.create(res, record, kind, {"metadata": {"name": name}, "spec": own})
    return {**template, "spec": {**template["spec"], "schedulingGroup": {"podGroupName": name}}}


def _wanted(spec: JsonObject, succeeded: int, active: int) -> int:
    """The number of pods to run now. Without completions the first success ends new starts."""
    parallel: int = spec["parallelism"]
    if "completions" in spec:
        remaining: int = spec["completions"] - succeeded
        return max(0, min(parallel, remaining))
    return min(active, parallel) if succeeded else parallel


def _conditions(
    now: str, obj: JsonObject, status: JsonObject, *, has_failed: bool
) -> list[JsonObject]:
    spec, succeeded = obj["spec"], status.get("succeeded", 0)
    conditions: list[JsonObject] = (obj.get("status") or {}).get("conditions") or []
    if has_failed:
        words = {"message": "Job has reached the specified backoff limit"}
        reason = "BackoffLimitExceeded"
        conditions = condition(conditions, "Failed", "True", now, reason=reason, **words)
    elif not status.get("active") and succeeded and succeeded >= spec.get("completions", 1):
        reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
        for kind in ("SuccessCriteriaMet", "Complete"):
            words = {"reason": reason, "message": message}
            conditions = condition(conditions, kind, "True", now, **words)
    elif spec["suspend"] or any(entry["type"] == "Suspended" for entry in conditions):
        word, reason = ("True", "JobSuspended") if spec["suspend"] else ("False", "JobResumed")
        message = f"Job {'suspended' if spec['suspend'] else 'resumed'}"
        conditions = condition(conditions, "Suspended", word, now, reason=reason, message=message)
    return conditions


def _pod(template: JsonObject, job: str, number: int) -> JsonObject:
    if number < 0:
        return pod_of(template, job)
    pod = pod_of(template, job, generateName=f"{job}-{number}-")
    for member in ("labels", "annotations"):
        pod["metadata"][member] = {**(pod["metadata"].get(member) or {}), INDEX: str(number)}
    return pod


def _index(pod: JsonObject) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def _numbers(text: str) -> set[int]:
    """The numbers of a text like `0-2,5`."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def _text(numbers: set[int]) -> str:
    """Numbers in the form `0-2,5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


Sync = Callable[[Dependents, Resource, Any], None]

log = logging.getLogger(__name__)

#: Seconds until a refused write is tried again.
RETRY_S: Final = 2.0
SYNCS: Final[dict[Resource, Sync]] = {
    REPLICA_SETS: sync_replicas,
    find("replicationcontrollers"): sync_replicas,
    find("deployments"): sync_deployment,
    find("jobs"): sync_job,
}
UNATTENDED: Final = frozenset({"CronJob", "DaemonSet", "HorizontalPodAutoscaler", "StatefulSet"})


class Controllers:
    """All controllers, driven by the store's changes."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._dependents = Dependents(ctx)
        self._batches = Batches(ctx, self._sync)
        self._departed: dict[Item, list[JsonObject]] = {}
        #: Owners that have not been synced yet.
        self._new: set[Item] = set()

    def start(self) -> None:
        """Follow the store; must be called on the event loop."""
        self.ctx.unattended = UNATTENDED
        for res in (*SYNCS, PODS, WORKLOADS, JOB_GROUPS):
            self._batches.listen(res, self._on_change)
            for record in self.ctx.store.table(res.storage).records.values():
                self._on_change(res, Change(ADDED, None, record))

    def stop(self) -> None:
        self._batches.stop()

    def _on_change(self, res: Resource, change: Change) -> None:
        self._dependents.note(res, change)
        for obj in (change.new.obj, change.old.obj if change.old is not None else {}):
            owner = controller_of(obj)
            kind = owner and BY_KIND.get((owner["apiVersion"], owner["kind"]))
            if owner is not None and kind in SYNCS:
                self._batches.add(kind, (change.new.key[0], owner["name"]))
        if res not in SYNCS:
            return
        if change.type == DELETED and change.old is not None:
            self._departed.setdefault((res, change.new.key), []).append(change.old.obj)
        if change.type == ADDED:
            self._new.add((res, change.new.key))
        self._batches.add(res, change.new.key)

    def _sync(self, res: Resource, key: Key) -> None:
        for owner in self._departed.pop((res, key), ()):
            self._dependents.collect(owner)
        record = self.ctx.store.get(res.storage, key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return
        if (res, key) in self._new:
            self._new.remove((res, key))
            self._dependents.adopt(res, record)
        try:
            SYNCS[res](self._dependents, res, record)
        except ApiError as error:
            log.info("%s %s/%s: %s", res.kind, *key, error)
            self._batches.add_later(res, key, RETRY_S)
