"""ReplicaSets, StatefulSets and disruption budgets, as kube-controller-manager serves them.

    ReplicaSet    as many pods as spec.replicas that do not terminate: the successor of an evicted
                  pod comes while that still terminates
    StatefulSet   one pod after the other, by ordinal, each once the one before runs; the successor
                  has the same name, and comes only after its pod has gone
    budgets       the disruptions that healthy pods leave over

Each reacts to changes after a random delay, of `slow_s_max` at most.
"""

import random
from functools import partial
from typing import Any, Final

from asched_lab.apiserver.context import DELETED, Change, Key, Record
from asched_lab.apiserver.controllers import FINISHED, Dependents, controller_of, is_ready, pod_of
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import PODS, Resource, find
from asched_lab.apiserver.selectors import matches_label_selector
from asched_lab.sim.world import World

Json = dict[str, Any]

REPLICA_SETS: Final = find("replicasets")
STATEFUL_SETS: Final = find("statefulsets")
BUDGETS: Final = find("poddisruptionbudgets")
KINDS: Final = {"ReplicaSet": REPLICA_SETS, "StatefulSet": STATEFUL_SETS}
RETRY_S: Final = 2.0


class Controllers:
    """Follows the store. `slow_s_max` may be changed at any time."""

    def __init__(self, world: World, slow_s_max: float = 1.0) -> None:
        self.slow_s_max = slow_s_max
        self._world, self._ctx = world, world.server.ctx
        self._rng = random.Random(world.rng.random())
        self._due: set[tuple[str, Key]] = set()
        self._dependents = Dependents(self._ctx)
        for res in (PODS, REPLICA_SETS, STATEFUL_SETS, BUDGETS):
            listeners = world.server.store.table(res.storage).listeners
            listeners.append(partial(self._saw, res))

    def _saw(self, res: Resource, change: Change) -> None:
        if res is not PODS:
            if change.type != DELETED:
                self._later(res, change.new.key)
            return
        self._dependents.note(res, change)
        for obj in (change.new.obj, change.old.obj if change.old is not None else {}):
            owner = controller_of(obj)
            if owner is not None and owner["kind"] in KINDS:
                self._later(KINDS[owner["kind"]], (change.new.key[0], owner["name"]))
        for budget in self._world.server.list("poddisruptionbudgets"):
            metadata = budget["metadata"]
            self._later(BUDGETS, (metadata["namespace"], metadata["name"]))

    def _later(self, res: Resource, key: Key, least_s: float = 0.0) -> None:
        if (res.kind, key) not in self._due:
            self._due.add((res.kind, key))
            wait_s = least_s + self._rng.uniform(0.0, self.slow_s_max)
            self._world.clock.after(wait_s, lambda: self._sync(res, key))

    def _sync(self, res: Resource, key: Key) -> None:
        self._due.discard((res.kind, key))
        record = self._ctx.get(res, *key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return
        try:
            if res is BUDGETS:
                self._count_budget(record.obj)
            elif res is REPLICA_SETS:
                self._replicate(record)
            else:
                self._order(record)
        except ApiError:
            self._later(res, key, RETRY_S)

    def _replicate(self, record: Record) -> None:
        name, replicas = record.key[1], record.obj["spec"]["replicas"]
        pods = self._dependents.pods(record.obj["metadata"]["uid"])
        active = [pod for pod in pods if pod.obj["status"].get("phase") not in FINISHED]
        for _ in range(replicas - len(active)):
            self._create(REPLICA_SETS, record, f"{name}-{self._suffix()}")
        for pod in active[replicas:]:
            self._dependents.delete(PODS, pod)

    def _order(self, record: Record) -> None:
        pods = self._dependents.of(record.obj["metadata"]["uid"], PODS)
        known = {pod.key[1]: pod for pod in pods}
        for ordinal in range(record.obj["spec"]["replicas"]):
            name = f"{record.key[1]}-{ordinal}"
            pod = known.get(name)
            if pod is None:
                self._create(STATEFUL_SETS, record, name)
                return
            if pod.obj["status"].get("phase") in FINISHED:
                self._dependents.delete(PODS, pod)
                return
            if pod.obj["metadata"].get("deletionTimestamp") or not is_ready(pod.obj):
                return

    def _count_budget(self, budget: Json) -> None:
        """Only `maxUnavailable`, a number, of pods that exist."""
        now_disrupted = budget["status"].get("disruptedPods") or {}
        pods = [
            pod
            for pod in self._world.server.list("pods", budget["metadata"]["namespace"])
            if matches_label_selector(
                budget["spec"].get("selector"), pod["metadata"].get("labels") or {}
            )
        ]
        standing = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        names = {pod["metadata"]["name"] for pod in standing}
        disrupted = {name: at for name, at in now_disrupted.items() if name in names}
        healthy = sum(is_ready(pod) for pod in standing if pod["metadata"]["name"] not in disrupted)
        of_owners = {self._owner_name(pod): pod for pod in pods}
        expected = sum(map(self._replicas_of, of_owners.values()))
        desired = max(expected - budget["spec"]["maxUnavailable"], 0)
        status = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "disruptionsAllowed": max(healthy - desired, 0) if expected else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        old = {k: v for k, v in budget["status"].items() if k != "conditions"}
        if status != old:
            self._ctx.put(BUDGETS, {**budget, "status": status})

    def _owner_name(self, pod: Json) -> str:
        owner = controller_of(pod)
        named: Json = pod["metadata"] if owner is None else owner
        return str(named["name"])

    def _replicas_of(self, pod: Json) -> int:
        owner = controller_of(pod)
        found = None if owner is None else KINDS.get(owner["kind"])
        record = (
            None
            if found is None or owner is None
            else self._ctx.get(found, pod["metadata"]["namespace"], owner["name"])
        )
        return 1 if record is None else int(record.obj["spec"]["replicas"])

    def _create(self, res: Resource, record: Record, name: str) -> None:
        pod = pod_of(record.obj["spec"]["template"], record.key[1], name=name)
        pod["metadata"].pop("generateName", None)
        self._dependents.create(res, record, PODS, pod)

    def _suffix(self) -> str:
        return "".join(self._rng.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
