"""Pretend kubelets and the few controllers without which objects would never end.

Bound pods become Running and Ready; pods in their grace period end; namespaces that terminate are
emptied; finalizers that wait for a garbage collector or for a volume's users are lifted. Work is
queued as the store tells of changes and done in small batches on the event loop, so that a burst of
bindings is answered before its pods run.
"""

import asyncio
from collections import deque
from typing import Any, Final

from asched.lab.apiserver import crud, deletion
from asched.lab.apiserver.binding import with_condition
from asched.lab.apiserver.context import Context
from asched.lab.apiserver.resources import NAMESPACES, NODES, PODS, RESOURCES, Resource
from asched.lab.apiserver.store import DELETED, Change, Key, Record

JsonObject = dict[str, Any]

#: Objects handled before the loop gets its turn back. A guess: about 5 ms of work.
BATCH: Final = 64
#: Finalizers whose owners are not here; they are lifted as soon as deletion begins.
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
    """All nodes' kubelets at once; `start_delay_s` is how long pods take to start."""

    def __init__(self, ctx: Context, *, start_delay_s: float = 0.0) -> None:
        self.ctx = ctx
        self.start_delay_s = start_delay_s
        self._queue: deque[tuple[Resource, Key]] = deque()
        self._due = False
        self._pods_started = 0
        self._listening: list[tuple[Resource, Any]] = []

    def start(self) -> None:
        """Follow the store; must be called on the event loop."""
        for res in RESOURCES:
            if res.stored and res.storage == (res.group, res.plural):
                self._listen(res)

    def _listen(self, res: Resource) -> None:
        def listener(change: Change) -> None:
            if change.type != DELETED and self._concerns(res, change.new.obj):
                self._queue.append((res, change.new.key))
                self._schedule()

        self.ctx.store.table(res.storage).listeners.append(listener)
        self._listening.append((res, listener))

    def stop(self) -> None:
        for res, listener in self._listening:
            self.ctx.store.table(res.storage).listeners.remove(listener)
        self._listening.clear()
        self._queue.clear()

    def _concerns(self, res: Resource, obj: JsonObject) -> bool:
        if obj["metadata"].get("deletionTimestamp"):
            return True
        if res is not PODS:
            return False
        return bool(obj["spec"].get("nodeName")) and obj["status"].get("phase") == "Pending"

    def _schedule(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(self.start_delay_s, self._work)

    def _work(self) -> None:
        self._due = False
        for _ in range(min(BATCH, len(self._queue))):
            res, key = self._queue.popleft()
            record = self.ctx.store.get(res.storage, key)
            if record is not None and self._concerns(res, record.obj):
                self._handle(res, record)
        if self._queue:
            self._schedule()

    def _handle(self, res: Resource, record: Record) -> None:
        metadata = record.obj["metadata"]
        if not metadata.get("deletionTimestamp"):
            self._run(record)
            return
        finalizers = metadata.get("finalizers") or []
        if LIFTED.intersection(finalizers):
            kept = [finalizer for finalizer in finalizers if finalizer not in LIFTED]
            self._lift(res, record, kept)
        elif res is NAMESPACES:
            self._empty(record)
        elif res is PODS and not finalizers:
            deletion.delete(self.ctx, PODS, record, {"gracePeriodSeconds": 0})

    def _lift(self, res: Resource, record: Record, kept: list[str]) -> None:
        metadata = {**record.obj["metadata"], "finalizers": kept}
        if not kept:
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

    def _empty(self, record: Record) -> None:
        """Delete what a terminating namespace holds; when nothing is left, the namespace."""
        name = record.key[1]
        left = False
        for res in RESOURCES:
            if not res.namespaced or not res.stored or res.storage != (res.group, res.plural):
                continue
            table = self.ctx.store.table(res.storage)
            for key in table.range(name):
                held = table.records[key]
                deletion.delete(self.ctx, res, held, {"gracePeriodSeconds": 0})
                left |= key in table.records
        if left:
            self._queue.append((NAMESPACES, record.key))
            return
        spec = {k: v for k, v in record.obj["spec"].items() if k != "finalizers"}
        self.ctx.store.remove(NAMESPACES.storage, record.key, {**record.obj, "spec": spec})


def running(now: str, pod: JsonObject, address: str) -> JsonObject:
    """The status of a pod all of whose containers run and are ready."""
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
