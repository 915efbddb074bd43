"""The controllers that `kubectl create deployment` and `job` need.

    ReplicaSet, ReplicationController   as many pods as spec.replicas (replicas.py)
    Deployment                          a ReplicaSet per template, rolled over (deployments.py)
    Job                                 pods until enough of them succeeded (jobs.py)
    garbage collection                  pods, ReplicaSets, Jobs and groups of a deleted owner

Creating a kind of `UNATTENDED` gives a warning that no controller handles it.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver import deployments, jobs, replicas
from asched_lab.apiserver.batches import Batches, Item
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.dependents import Dependents, controller_of
from asched_lab.apiserver.resources import (
    BY_KIND,
    JOB_GROUPS,
    PODS,
    REPLICA_SETS,
    WORKLOADS,
    Resource,
    find,
)
from asched_lab.apiserver.statuses import ApiError
from asched_lab.apiserver.store import ADDED, DELETED, Change, Key

JsonObject = dict[str, Any]
Sync = Callable[[Dependents, Resource, Any], None]

log = logging.getLogger(__name__)

#: Seconds until a refused write is tried again.
RETRY_S: Final = 2.0
SYNCS: Final[dict[Resource, Sync]] = {
    REPLICA_SETS: replicas.sync,
    find("replicationcontrollers"): replicas.sync,
    find("deployments"): deployments.sync,
    find("jobs"): jobs.sync,
}
UNATTENDED: Final = frozenset({"CronJob", "DaemonSet", "HorizontalPodAutoscaler", "StatefulSet"})


class Controllers:
    """All controllers, driven by the store's changes."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._dependents = Dependents(ctx)
        self._batches = Batches(ctx, self._sync)
        self._departed: dict[Item, list[JsonObject]] = {}

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
        self._batches.add(res, change.new.key)

    def _sync(self, res: Resource, key: Key) -> None:
        for owner in self._departed.pop((res, key), ()):
            self._dependents.collect(owner)
        record = self.ctx.store.get(res.storage, key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return
        try:
            SYNCS[res](self._dependents, res, record)
        except ApiError as error:
            log.info("%s %s/%s: %s", res.kind, *key, error)
            self._batches.add_later(res, key, RETRY_S)
