"""Simulated kubelets and the controllers without which objects would never end.

Bound pods become Running and Ready; pods in their grace period end; terminating namespaces are
emptied; finalizers of the garbage collector and of volume protection are removed. Containers do
nothing: those of a Job's pods succeed after `JOB_S`, all others run until they are deleted.

Their changes are queued, so that a burst of writes is answered before they react.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver import crud
from asched_lab.apiserver.binding import with_condition
from asched_lab.apiserver.context import DELETED, Change, Context, Key, Record
from asched_lab.apiserver.resources import NAMESPACES, NODES, PODS, RESOURCES, Resource
from asched_lab.apiserver.tables import seconds

#: Objects handled before the loop runs other tasks. A guess: about 5 ms of work.
BATCH: Final = 64
Item = tuple[Resource, Key]


class Batches:
    """A queue of objects, filled by the store's changes."""

    def __init__(self, ctx: Context, handle: Callable[[Resource, Key], None]) -> None:
        self._ctx = ctx
        self._handle = handle
        self._queue: deque[Item] = deque()
        self._queued: set[Item] = set()
        self._timers: dict[Any, asyncio.TimerHandle] = {}
        self._listening: list[tuple[Resource, Callable[[Change], None]]] = []

    def listen(self, res: Resource, on_change: Callable[[Resource, Change], None]) -> None:
        """Call `on_change` for each change of a kind until `stop`."""

        def listener(change: Change) -> None:
            on_change(res, change)

        self._ctx.store.table(res.storage).listeners.append(listener)
        self._listening.append((res, listener))

    def add(self, res: Resource, key: Key) -> None:
        """Queue an object. Must be called on the event loop."""
        if (res, key) not in self._queued:
            self._queued.add((res, key))
            self._queue.append((res, key))
            self._later((), 0.0, self._work)

    def add_later(self, res: Resource, key: Key, after_s: float) -> None:
        """Queue an object in `after_s` seconds, unless it waits already."""
        self._later((res, key), after_s, self.add, res, key)

    def stop(self) -> None:
        for res, listener in self._listening:
            self._ctx.store.table(res.storage).listeners.remove(listener)
        for timer in self._timers.values():
            timer.cancel()
        self._listening.clear()
        self._timers.clear()
        self._queue.clear()
        self._queued.clear()

    def _later(self, name: Any, after_s: float, call: Callable[..., None], *args: Any) -> None:
        """Set the timer called `name` if it is not set."""
        if name in self._timers:
            return

        def due() -> None:
            del self._timers[name]
            call(*args)

        self._timers[name] = asyncio.get_running_loop().call_later(after_s, due)

    def _work(self) -> None:
        for _ in range(min(BATCH, len(self._queue))):
            item = self._queue.popleft()
            self._queued.discard(item)
            self._handle(*item)
        if self._queue:
            self._later((), 0.0, self._work)


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
            crud.delete(self.ctx, PODS, record, {"gracePeriodSeconds": 0})

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
                crud.delete(self.ctx, res, stored, {"gracePeriodSeconds": 0})
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
