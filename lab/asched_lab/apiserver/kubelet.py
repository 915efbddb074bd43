"""Simulated kubelets and the controllers without which objects would never end.

Bound pods become Running and Ready; pods in their grace period end; terminating namespaces are
emptied; finalizers of the garbage collector and of volume protection are removed. Containers do
nothing: those of a Job's pods succeed after `JOB_S`, all others run until they are deleted.
"""

from typing import Any, Final

from asched_lab.apiserver import crud, deletion
from asched_lab.apiserver.batches import Batches
from asched_lab.apiserver.binding import with_condition
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import NAMESPACES, NODES, PODS, RESOURCES, Resource
from asched_lab.apiserver.store import DELETED, Change, Key, Record
from asched_lab.apiserver.tables import seconds

JsonObject = dict[str, Any]

#: Seconds the containers of a Job's pods run.
JOB_S: Final = 1.0
#: Finalizers without a controller here; they are removed as soon as deletion begins.
LIFTED: Final = frozenset(
    {
        "foregroundDeletion",
        "orphan",
        "kubernetes.io/pvc-protection",
        "kubernetes.io/pv-protection",
    }
)
RUNNING_CONDITIONS: Final = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
POD_NETWORK: Final = "10.244"


class Kubelet:
    """The kubelets of all nodes; `job_s` is how long the containers of a Job's pods run."""

    def __init__(self, ctx: Context, *, job_s: float = JOB_S) -> None:
        self.ctx = ctx
        self.job_s = job_s
        self._pods_started = 0
        self._batches = Batches(ctx, self._sync)

    def start(self) -> None:
        """Follow the store; must be called on the event loop."""
        for res in RESOURCES:
            if res.stored and res.storage == (res.group, res.plural):
                self._batches.listen(res, self._on_change)

    def stop(self) -> None:
        self._batches.stop()

    def _on_change(self, res: Resource, change: Change) -> None:
        if change.type != DELETED and self._concerns(res, change.new.obj):
            self._batches.add(res, change.new.key)

    def _concerns(self, res: Resource, obj: JsonObject) -> bool:
        if obj["metadata"].get("deletionTimestamp"):
            return True
        if res is not PODS or not obj["spec"].get("nodeName"):
            return False
        phase = obj["status"].get("phase")
        return phase == "Pending" or (phase == "Running" and is_of_job(obj))

    def _sync(self, res: Resource, key: Key) -> None:
        record = self.ctx.store.get(res.storage, key)
        if record is not None and self._concerns(res, record.obj):
            self._handle(res, record)

    def _handle(self, res: Resource, record: Record) -> None:
        metadata = record.obj["metadata"]
        if not metadata.get("deletionTimestamp"):
            if record.obj["status"]["phase"] == "Pending":
                self._run(record)
            else:
                self._run_out(record)
            return
        finalizers = metadata.get("finalizers") or []
        if LIFTED.intersection(finalizers):
            remaining = [finalizer for finalizer in finalizers if finalizer not in LIFTED]
            self._lift(res, record, remaining)
        elif res is NAMESPACES:
            self._empty(record)
        elif res is PODS and not finalizers:
            deletion.delete(self.ctx, PODS, record, {"gracePeriodSeconds": 0})

    def _lift(self, res: Resource, record: Record, remaining: list[str]) -> None:
        metadata = {**record.obj["metadata"], "finalizers": remaining}
        if not remaining:
            del metadata["finalizers"]
        new = {**record.obj, "metadata": metadata}
        if crud.is_finished(res, new):
            self.ctx.store.remove(res.storage, record.key, new)
        else:
            self.ctx.put(res, new)

    def _run(self, record: Record) -> None:
        pod = record.obj
        if self.ctx.get(NODES, "", pod["spec"]["nodeName"]) is None:
            return
        self._pods_started += 1
        number = self._pods_started
        address = f"{POD_NETWORK}.{number >> 8 & 255}.{number & 255}"
        status = {**pod["status"], **running(self.ctx.now(), pod, address)}
        self.ctx.put(PODS, {**pod, "status": status})

    def _run_out(self, record: Record) -> None:
        """End a pod whose containers have run long enough; otherwise check it again later."""
        pod = record.obj
        started_s = seconds(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])
        left_s = started_s + self.job_s - self.ctx.clock()
        if left_s > 0:
            self._batches.add_later(PODS, record.key, left_s)
            return
        self.ctx.put(PODS, {**pod, "status": {**pod["status"], **succeeded(self.ctx.now(), pod)}})

    def _empty(self, record: Record) -> None:
        """Delete the objects of a terminating namespace; when none is left, the namespace."""
        name = record.key[1]
        has_more = False
        for res in RESOURCES:
            if not res.namespaced or not res.stored or res.storage != (res.group, res.plural):
                continue
            table = self.ctx.store.table(res.storage)
            for key in table.range(name):
                stored = table.records[key]
                deletion.delete(self.ctx, res, stored, {"gracePeriodSeconds": 0})
                has_more |= key in table.records
        if has_more:
            self._batches.add(NAMESPACES, record.key)
            return
        spec = {k: v for k, v in record.obj["spec"].items() if k != "finalizers"}
        self.ctx.store.remove(NAMESPACES.storage, record.key, {**record.obj, "spec": spec})


def is_of_job(pod: JsonObject) -> bool:
    """Whether a pod belongs to a Job."""
    return any(
        owner["kind"] == "Job" and owner.get("controller")
        for owner in pod["metadata"].get("ownerReferences") or ()
    )


def succeeded(now: str, pod: JsonObject) -> JsonObject:
    """The status of a running pod whose containers succeeded."""
    ended = {"exitCode": 0, "reason": "Completed", "finishedAt": now}
    containers = [
        {
            **container,
            "ready": False,
            "started": False,
            "state": {"terminated": {**ended, "startedAt": pod["status"].get("startTime", now)}},
        }
        for container in pod["status"].get("containerStatuses") or ()
    ]
    conditions = [
        {**entry, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
        if entry["type"] in {"Ready", "ContainersReady"}
        else entry
        for entry in pod["status"].get("conditions") or ()
    ]
    return {"phase": "Succeeded", "conditions": conditions, "containerStatuses": containers}


def running(now: str, pod: JsonObject, address: str) -> JsonObject:
    """The status of a pod whose containers all run and are ready."""
    conditions = pod["status"].get("conditions") or []
    for kind in RUNNING_CONDITIONS:
        fresh = {
            "type": kind,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": now,
        }
        if not any(c["type"] == kind and c["status"] == "True" for c in conditions):
            conditions = with_condition(conditions, fresh)
    containers = [
        {
            "name": container["name"],
            "state": {"running": {"startedAt": now}},
            "lastState": {},
            "ready": True,
            "started": True,
            "restartCount": 0,
            "image": container.get("image", ""),
            "imageID": "",
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": "Running",
        "conditions": conditions,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": containers,
    }
