"""Models of cluster-autoscaler and Karpenter: which pods they take, when they add and remove nodes.

Both look at the API every few seconds. Pods that fit on nodes which exist, or are on their way, are
left alone; for the others nodes of one shape are added, packed first-fit. A cloud provider may
deliver a node late, never, or in another zone than asked. Nodes that stay empty are removed, unless
an annotation forbids it.

cluster-autoscaler also serves ProvisioningRequests of the class best-effort-atomic-scale-up, one a
loop: all nodes that its pods need, or none. For BOOKED_S the room counts as used.

Source  kubernetes-sigs/cluster-autoscaler 33c3f97: pkg/utils/kubernetes/listers.go
        (ArrangePodsBySchedulability, FilterOutPodsByScheduler), pkg/processors/provreq/
        pods_filter.go, injector.go and processor.go, pkg/provisioningrequest/besteffortatomic,
        pkg/core/scaledown/eligibility/eligibility.go (HasNoScaleDownAnnotation);
        kubernetes-sigs/karpenter 2266468: pkg/utils/pod/scheduling.go (IsProvisionable),
        pkg/controllers/state/statenode.go (ValidateNodeDisruptable),
        pkg/controllers/provisioning/batcher.go and controller.go (PodController)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from asched.core.model.timestamp import rfc3339
from asched_lab.apiserver.context import Change
from asched_lab.apiserver.resources import NODES, PODS, find
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.steps import remove
from asched_lab.sim.world import World

Json = dict[str, Any]
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
KARPENTER: Final = "karpenter"
KINDS: Final = (CLUSTER_AUTOSCALER, KARPENTER)
LOOP_S: Final = {CLUSTER_AUTOSCALER: 10.0, KARPENTER: 1.0}
CONSUMES: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
KEEPS: Final = {
    CLUSTER_AUTOSCALER: "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    KARPENTER: "karpenter.sh/do-not-disrupt",
}
NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
ZONE: Final = "topology.kubernetes.io/zone"
CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
REQUESTS: Final = "provisioningrequests"
PROVISIONED: Final = "Provisioned"
BOOKED_S: Final = 600.0
#: Until a request without enough room is tried again.
RETRY_S: Final = 60.0
READY_S_MAX: Final = 5.0
REMOVAL_S: Final = 10.0


class Autoscaler:
    """One autoscaler of a world. `bought` nodes were asked for; `lost` of them never came, and
    `misplaced` came in another zone. `removed`: names of nodes that were taken away. After
    `given_up_s` another node is asked for in place of one that did not come (both: 15 minutes).
    `scale_ups`: nodes bought in each loop that bought any. `requests`: whether it serves them.
    """

    def __init__(
        self,
        world: World,
        kind: str,
        shape: Mapping[str, str],
        *,
        zone: str = "a",
        late_s_max: float = 120.0,
        lost: float = 0.0,
        misplaced: float = 0.0,
        empty_s: float = 600.0,
        given_up_s: float = 900.0,
        allowed: frozenset[str] = frozenset(),
        nodes_max: int = 1_000,
    ) -> None:
        self.world, self.kind = world, kind
        self._shape, self._zone = dict(shape), zone
        self._late_s_max, self._lost, self._misplaced = late_s_max, lost, misplaced
        self._empty_s, self._given_up_s, self._allowed = empty_s, given_up_s, allowed
        self._nodes_max = nodes_max
        self.bought = self.lost = self.misplaced = 0
        self.scale_ups: list[int] = []
        self._tried_s: dict[str, float] = {}  # uid of a request -> since
        self._booked: dict[str, tuple[float, list[Json]]] = {}
        self._was_for_request = False
        self.removed: list[str] = []
        self._coming: dict[str, tuple[Json, float]] = {}  # name -> (as asked for, since)
        self._empty_since_s: dict[str, float] = {}
        #: called with each node that is removed
        self.on_removal: list[Callable[[Json], None]] = []
        self._is_changed = True  # pods or nodes, since the last loop
        self._next_removal_s = 0.0
        for storage in (PODS.storage, NODES.storage, find(REQUESTS).storage):
            if kind == CLUSTER_AUTOSCALER or storage == PODS.storage:
                world.server.store.table(storage).listeners.append(self._note_change)
        world.clock.after(world.rng.uniform(0.0, LOOP_S[kind]), self._loop)

    def takes(self, pod: Json) -> bool:
        """Whether it adds a node for a pod that fits nowhere."""
        status, metadata = pod["status"], pod["metadata"]
        if pod["spec"].get("nodeName") or status.get("nominatedNodeName"):
            return False
        conditions = [c for c in status.get("conditions") or () if c["type"] == "PodScheduled"]
        is_unschedulable = any(c.get("reason") == "Unschedulable" for c in conditions)
        if self.kind == KARPENTER:
            owners = {owner["kind"] for owner in metadata.get("ownerReferences") or ()}
            return is_unschedulable and not owners & {"DaemonSet", "Node"}
        is_false = any(c["status"] == "False" for c in conditions)
        is_allowed = not self._allowed or pod["spec"]["schedulerName"] in self._allowed
        consumes = not metadata.get("annotations", {}).keys().isdisjoint(CONSUMES)
        is_deleted = bool(metadata.get("deletionTimestamp"))
        return is_unschedulable and is_false and is_allowed and not (consumes or is_deleted)

    def _note_change(self, change: Change) -> None:
        """Karpenter runs after a change of a pod that it takes, and every ten seconds;
        cluster-autoscaler runs always, but has no effect without a change.
        """
        self._is_changed |= self.kind == CLUSTER_AUTOSCALER or self.takes(change.new.obj)

    def _loop(self) -> None:
        now_s = self.world.clock.now_s()
        self.world.clock.after(LOOP_S[self.kind], self._loop)
        for name, (_, since_s) in tuple(self._coming.items()):
            if now_s - since_s > self._given_up_s:
                del self._coming[name]
                self._is_changed = True
        before = self.bought
        if self._is_changed:
            self._is_changed = False
            request = self._next_request(now_s)
            taken = [pod for pod in self.world.pods() if self.takes(pod)]
            self._was_for_request = request is not None and not (taken and self._was_for_request)
            if request is not None and self._was_for_request:
                self._serve(request, now_s)
            elif taken:
                self._add_nodes(taken)
            self._is_changed = self._is_changed or (request is not None and bool(taken))
        if self.bought > before:
            self.scale_ups.append(self.bought - before)
        if now_s >= self._next_removal_s:
            self._next_removal_s = now_s + REMOVAL_S
            self._is_changed |= self.kind == KARPENTER
            self._remove_nodes()

    # --- more nodes ------------------------------------------------------------------------------

    def _add_nodes(self, taken: Iterable[Json]) -> None:
        for node in self._pack(self._state(), taken)[0]:
            self._buy(node)

    def _pack(self, end: EndState, pods: Iterable[Json]) -> tuple[list[Json], int]:
        """Place pods: (new nodes for them, number of pods that no such node takes)."""
        names = list(end.nodes)
        full: dict[bytes, int] = {}  # the number of nodes that rejected an equal pod before
        new, failed = [], 0
        for pod in pods:
            key = orjson.dumps(pod["spec"])
            at = full.get(key, 0)
            while at < len(names) and not end.fits(names[at], pod):
                at += 1
            full[key] = at
            if at == len(names):
                node = self._node(f"bought-{next(self.world.numbers)}", self._zone)
                name, empty = node["metadata"]["name"], EndState([node], [])
                if not empty.fits(name, pod):
                    failed += 1  # no node of this shape would help
                    continue
                new.append(node)
                names.append(name)
                end.nodes[name], end.free[name] = node, empty.free[name]
            end.place(pod, names[at])
        return new, failed

    def _next_request(self, now_s: float) -> Json | None:
        """The next request that it may serve."""
        if self.kind != CLUSTER_AUTOSCALER:
            return None
        for request in self.world.server.list(REQUESTS):
            uid, spec = request["metadata"]["uid"], request["spec"]
            is_due = now_s - self._tried_s.get(uid, -RETRY_S) >= RETRY_S
            if spec["provisioningClassName"] == CLASS and uid not in self._booked and is_due:
                return request
        return None

    def _serve(self, request: Json, now_s: float) -> None:
        """Buy all nodes that the pods of a request need, or none."""
        metadata = request["metadata"]
        self._tried_s[metadata["uid"]] = now_s
        pods = list(self._pods_of(request))
        new, failed = self._pack(self._state(), pods)
        is_found = not failed and bool(pods) and len(new) <= self._nodes_max
        if is_found:
            self._booked[metadata["uid"]] = now_s, pods
            for node in new:
                self._buy(node)
        else:
            self.world.clock.after(RETRY_S, self._retry)
        words = ("True", "CapacityIsProvisioned") if is_found else ("False", "CapacityIsNotFound")
        self._say(request, PROVISIONED, *words)

    def _retry(self) -> None:
        self._is_changed = True

    def _pods_of(self, request: Json) -> Iterator[Json]:
        namespace, name = request["metadata"]["namespace"], request["metadata"]["name"]
        for number, pod_set in enumerate(request["spec"]["podSets"]):
            template_name = pod_set["podTemplateRef"]["name"]
            found = self.world.server.get("podtemplates", namespace, template_name)
            for count in range(pod_set["count"] if found is not None else 0):
                template = (found or {})["template"]
                metadata = {**template.get("metadata", {}), "namespace": namespace}
                metadata["name"] = f"{name}-{number}-{count}"
                yield {"metadata": metadata, "spec": template["spec"], "status": {}}

    def _say(self, request: Json, type_: str, status: str, reason: str) -> None:
        said = {"type": type_, "status": status, "reason": reason, "message": reason}
        said["lastTransitionTime"] = rfc3339(self.world.clock.now_s())
        conditions = (request.get("status") or {}).get("conditions") or ()
        kept = [condition for condition in conditions if condition["type"] != type_]
        changed = {**request, "status": {"conditions": [*kept, said]}}
        self.world.server.ctx.put(find(REQUESTS), changed)

    def _book(self, end: EndState) -> None:
        """Count the room of served requests as used, as far as it is there."""
        now_s = self.world.clock.now_s()
        there = {request["metadata"]["uid"] for request in self.world.server.list(REQUESTS)}
        for uid, (since_s, pods) in tuple(self._booked.items()):
            if uid not in there:
                del self._booked[uid]
            elif now_s - since_s < BOOKED_S:
                for pod in pods:
                    fits = next((name for name in end.nodes if end.fits(name, pod)), None)
                    if fits is not None:
                        end.place(pod, fits)

    def _state(self) -> EndState:
        """Nodes that exist, and those on their way as they were asked for; nominated pods are on
        their nodes.
        """
        pods = []
        for pod in self.world.pods():
            if is_through(pod):
                continue
            node = pod["status"].get("nominatedNodeName")
            is_nominated = node and not pod["spec"].get("nodeName")
            pods.append({**pod, "spec": {**pod["spec"], "nodeName": node}} if is_nominated else pod)
        coming = {name: node for name, (node, _) in self._coming.items()}
        nodes = [n for n in self.world.nodes() if n["metadata"]["name"] not in coming]
        end = EndState([*nodes, *coming.values()], pods)
        self._book(end)
        return end

    def _node(self, name: str, zone: str) -> Json:
        labels = {"kubernetes.io/hostname": name, ZONE: zone}
        amounts = {"capacity": dict(self._shape), "allocatable": dict(self._shape)}
        return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": amounts}

    def _buy(self, node: Json) -> None:
        world, name = self.world, node["metadata"]["name"]
        self.bought += 1
        self._coming[name] = (node, world.clock.now_s())
        world.note(f"{self.kind} buys {name}")
        roll = world.rng.random()
        if roll < self._lost:
            self.lost += 1
            return
        came = node
        if roll < self._lost + self._misplaced:
            self.misplaced += 1
            came = self._node(name, "wrong")
        wait_s = world.rng.uniform(1.0, self._late_s_max)
        world.clock.after(wait_s, lambda: self._arrive(came))

    def _arrive(self, node: Json) -> None:
        self.world.server.create("nodes", {**node, "spec": {"taints": [NOT_READY]}})
        ready_s = self.world.rng.uniform(0.0, READY_S_MAX)
        self.world.clock.after(ready_s, lambda: self._ready(node["metadata"]["name"]))

    def _ready(self, name: str) -> None:
        self._coming.pop(name, None)
        node = self.world.server.get("nodes", "", name)
        if node is not None:
            self.world.server.ctx.put(NODES, {**node, "spec": {}})

    # --- fewer nodes -----------------------------------------------------------------------------

    def _remove_nodes(self) -> None:
        """Remove nodes that have been empty for long."""
        now_s = self.world.clock.now_s()
        used = {p["spec"].get("nodeName") for p in self.world.pods() if not is_through(p)}
        used |= {p["status"].get("nominatedNodeName") for p in self.world.pods()}
        for node in self.world.nodes():
            metadata = node["metadata"]
            name, keep = metadata["name"], metadata.get("annotations", {}).get(KEEPS[self.kind])
            if name in used or keep == "true" or name in self._coming:
                self._empty_since_s.pop(name, None)
            elif now_s - self._empty_since_s.setdefault(name, now_s) >= self._empty_s:
                for observe in self.on_removal:
                    observe(node)
                self.removed.append(name)
                self.world.note(f"{self.kind} removes {name}")
                remove(self.world, "nodes", name)
