"""The production machine in a supposed cluster: it decides, the store answers, time is jumped over.

    snapshot ─> store ─changes─> [ Machine ] ──effects──> store, stand-ins ─facts──> [ Machine ] ...

One pass: all objects exist before the machine starts, as if a scheduler had been started on the
cluster a moment later. So pods that wait already are tried too, in the order in which a scheduler
would try them. It ends when no pod is left to be tried and no request is open; changes that only
time could bring (a pod is tried again every five minutes) are not simulated.

Bounds  TURNS_MAX turns; JUMPS_MAX jumps of the clock in a row without a write; CALL_S for a
        coroutine of a plugin, which runs in real time.

The kubelet and controllers that a scheduler depends on have stand-ins: immediate, no faults.

    kubelet                    a deleted pod is gone
    ReplicaSet, Job, ...       a deleted pod is recreated if its controller would do so
    volumes                    a claim that names a node, or binds immediately, gets a volume
    resource claims            made from the templates of pods, freed and deleted with them

A provisioned volume reaches the zone of its node, or the node itself where it is in no zone: the
topology that its driver would report is not known.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asched.batch.provisioning.cycle import holding_promised
from asched.core.cluster.facts import Answer, Fact, Refused, WallClock
from asched.core.config.args import HOLD_S_MAX, PERCENT_MAX, CheckAndHoldArgs
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import (
    AskExtender,
    Bind,
    CallPlugin,
    CancelCall,
    DeletePod,
    Effect,
    EmitEvent,
)
from asched.core.model.claim import FINALIZER
from asched.core.model.kinds import PROVISIONING_REQUEST
from asched.core.model.provisioning import ProvisioningRequest, RequestStage
from asched.core.model.storage import BETA_CLASS, BIND_COMPLETED, SELECTED_NODE
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.plugin_calls import answer_now
from asched.host.user_plugins.catalogue import Catalogue
from asched.names import LABEL_HOSTNAME
from asched_lab.apiserver.context import DELETED, Change
from asched_lab.apiserver.resources import NODES, PODS, find
from asched_lab.whatif.objects import Json
from asched_lab.whatif.store import RefusedError, Store

CLAIMS: Final = find("persistentvolumeclaims")
VOLUMES: Final = find("persistentvolumes")
STORAGE_CLASSES: Final = find("storageclasses")
RESOURCE_CLAIMS: Final = find("resourceclaims")
TEMPLATES: Final = find("resourceclaimtemplates")
ZONE: Final = "topology.kubernetes.io/zone"
#: Provisioners that provision nothing.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
#: Controllers that recreate a deleted pod. A DaemonSet's pods belong to their node.
KEEPERS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
#: Set by the claim template controller on claims it made.
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"


class Hands:
    """They follow the store, and act when `work` is called.

    `went`: keys of pods deleted since the start, with the keys of the pods made in their place.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due: list[Callable[[], None]] = []
        self.went: dict[str, str] = {}
        store.listen(PODS, self._see_pod)
        store.listen(CLAIMS, self._see_claim)
        store.listen(VOLUMES, self._see_volume)
        for claim in store.listed(CLAIMS):
            self._later(self._sync_claim, claim)
        for pod in store.listed(PODS):
            if pod["metadata"].get("deletionTimestamp"):
                self._later(self._end_pod, pod)
            elif not pod["spec"].get("nodeName"):
                self._later(self._make_claims, pod)

    def work(self) -> None:
        """Do all due work, and the work that follows from it."""
        while self._due:
            self._due.pop(0)()

    def _later(self, step: Callable[[Json], None], obj: Json) -> None:
        self._due.append(lambda: step(obj))

    # --- pods ------------------------------------------------------------------------------------

    def _see_pod(self, change: Change) -> None:
        pod = change.new.obj
        if change.type == DELETED:
            self._later(self._pod_went, pod)
        elif pod["metadata"].get("deletionTimestamp"):
            self._later(self._end_pod, pod)
        elif change.old is None and pod["spec"].get("resourceClaims"):
            self._later(self._make_claims, pod)

    def _end_pod(self, pod: Json) -> None:
        self._store.remove(PODS, pod)

    def _pod_went(self, pod: Json) -> None:
        self._free_claims(pod)
        made = recreated(pod, self._store)
        self.went[_key(pod)] = "" if made is None else _key(self._store.put(PODS, made))

    # --- resource claims -------------------------------------------------------------------------

    def _make_claims(self, pod: Json) -> None:
        """Make claims of existing templates; without them the scheduler rejects the pod."""
        now = self._store.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
        if now is None:
            return
        known = {claim["name"] for claim in now["status"].get("resourceClaimStatuses") or ()}
        made = []
        for wanted in now["spec"].get("resourceClaims") or ():
            template = self._store.get(
                TEMPLATES,
                now["metadata"]["namespace"],
                wanted.get("resourceClaimTemplateName") or "",
            )
            if template is None or wanted["name"] in known:
                continue
            made.append({"name": wanted["name"], "resourceClaimName": self._claim(now, template)})
        if made:
            statuses = [*(now["status"].get("resourceClaimStatuses") or ()), *made]
            status = {**now["status"], "resourceClaimStatuses": statuses}
            self._store.put(PODS, {**now, "status": status})

    def _claim(self, pod: Json, template: Json) -> str:
        namespace = pod["metadata"]["namespace"]
        base = f"{pod['metadata']['name']}-{template['metadata']['name']}"
        metadata = {
            "generateName": f"{base[:200]}-",
            "namespace": namespace,
            "annotations": {POD_CLAIM: template["metadata"]["name"]},
            "ownerReferences": [_owned_by(pod)],
        }
        try:
            claim = {"metadata": metadata, "spec": template["spec"].get("spec") or {}}
            made = self._store.create(RESOURCE_CLAIMS, claim, namespace)
        except RefusedError:
            return ""
        return str(made["metadata"]["name"])

    def _free_claims(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        for claim in self._store.listed(RESOURCE_CLAIMS):
            if claim["metadata"].get("namespace") != pod["metadata"]["namespace"]:
                continue
            if any(o["uid"] == uid for o in claim["metadata"].get("ownerReferences") or ()):
                self._store.remove(RESOURCE_CLAIMS, claim)
                continue
            status = claim.get("status") or {}
            users = status.get("reservedFor") or []
            left = [user for user in users if user.get("uid") != uid]
            if len(left) < len(users):
                self._store.put(RESOURCE_CLAIMS, _reserved(claim, left))

    # --- volumes ---------------------------------------------------------------------------------

    def _see_claim(self, change: Change) -> None:
        if change.type != DELETED:
            self._later(self._sync_claim, change.new.obj)

    def _see_volume(self, change: Change) -> None:
        owner = change.new.obj["spec"].get("claimRef") or {}
        if change.type != DELETED and owner:
            claim = self._store.get(CLAIMS, owner.get("namespace", ""), owner.get("name", ""))
            if claim is not None:
                self._later(self._sync_claim, claim)

    def _sync_claim(self, claim: Json) -> None:
        metadata = claim["metadata"]
        now = self._store.get(CLAIMS, metadata["namespace"], metadata["name"])
        if now is None or now["spec"].get("volumeName"):
            return
        uid = now["metadata"].get("uid")
        for volume in self._store.listed(VOLUMES):
            owner = volume["spec"].get("claimRef") or {}
            if uid and owner.get("uid") == uid:
                self._bind(now, volume)
                return
        annotations = now["metadata"].get("annotations") or {}
        name = now["spec"].get("storageClassName") or annotations.get(BETA_CLASS) or ""
        storage_class = self._store.get(STORAGE_CLASSES, "", name)
        if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
            return
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        node = annotations.get(SELECTED_NODE, "")
        if node or not waits:
            made = _volume(now, name, self._reach(node))
            self._bind(now, self._store.put(VOLUMES, made))

    def _reach(self, node: str) -> Json:
        """Node labels that a volume made for a node requires."""
        known = self._store.get(NODES, "", node) if node else None
        labels = (known or {"metadata": {}})["metadata"].get("labels") or {}
        for key in (ZONE, LABEL_HOSTNAME):
            if key in labels:
                return {key: labels[key]}
        return {}

    def _bind(self, claim: Json, volume: Json) -> None:
        status = {**volume.get("status", {}), "phase": "Bound"}
        self._store.put(VOLUMES, {**volume, "status": status})
        metadata = claim["metadata"]
        annotations = {**(metadata.get("annotations") or {}), BIND_COMPLETED: "yes"}
        self._store.put(
            CLAIMS,
            {
                **claim,
                "metadata": {**metadata, "annotations": annotations},
                "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]},
                "status": {**claim.get("status", {}), "phase": "Bound"},
            },
        )


def recreated(pod: Json, store: Store) -> Json | None:
    """The pod that its controller makes in place of a deleted pod; None if there is no such
    controller.
    """
    metadata = pod["metadata"]
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    if owner is None or owner.get("kind") not in KEEPERS:
        return None
    identity = store.new_identity(f"{owner['name']}-")
    if owner["kind"] == "StatefulSet":
        identity["name"] = metadata["name"]
    kept = {
        name: metadata[name]
        for name in ("namespace", "labels", "annotations", "ownerReferences")
        if name in metadata
    }
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {"metadata": {**kept, **identity}, "spec": spec, "status": {"phase": "Pending"}}


def _reserved(claim: Json, users: list[Any]) -> Json:
    """The claim reserved for these users; without users its devices are free."""
    status = {**claim.get("status", {}), "reservedFor": users}
    if users:
        return {**claim, "status": status}
    status = {n: v for n, v in status.items() if n not in ("reservedFor", "allocation")}
    metadata = dict(claim["metadata"])
    metadata["finalizers"] = [f for f in metadata.get("finalizers") or () if f != FINALIZER]
    return {**claim, "metadata": metadata, "status": status}


def _volume(claim: Json, storage_class: str, reach: Mapping[str, str]) -> Json:
    metadata = claim["metadata"]
    name = f"pvc-{metadata['uid']}"
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    spec: Json = {
        "storageClassName": storage_class,
        "capacity": {"storage": asked.get("storage", "0")},
        "accessModes": claim["spec"].get("accessModes") or [],
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if reach:
        terms = [{"key": k, "operator": "In", "values": [v]} for k, v in reach.items()]
        selector = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        spec["nodeAffinity"] = {"required": selector}
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {}}


def _owned_by(pod: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }


def _key(obj: Json) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


TURNS_MAX: Final = 1_000_000
JUMPS_MAX: Final = 100
CALL_S: Final = 10.0
#: The limits for a promise of another process that is only read.
ANY_TERMS: Final = CheckAndHoldArgs(hold_s=HOLD_S_MAX, max_namespace_percentage=PERCENT_MAX)
#: Start of the simulated clock, in seconds.
START_S: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Which scheduler decides. `serves_all`: pods of other schedulers follow the first profile's
    rules too.
    """

    configuration: SchedulerConfiguration
    plugins: Catalogue = field(default_factory=Catalogue)
    seed: int = 0


class World:
    """One simulated cluster with one scheduler. `preempted`: keys of pods that were evicted, with
    what their events say. `bound`: pods to nodes, in the order of the bindings.
    """

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self.store = store
        self.hands = Hands(store)
        self.bound: dict[str, str] = {}
        self.preempted: dict[str, str] = {}
        self.attempts: Counter[str] = Counter()
        parts = Parts.fresh()
        plugins = scheduler.plugins
        runners = build_runners(
            scheduler.configuration, parts, factories=plugins.factories, known=plugins.known
        )
        #: Turns end with their facts, not with the clock, so equal clusters give equal places.
        self.machine: Machine = build_machine(
            scheduler.configuration,
            parts,
            runners,
            monotonic_s=lambda: 0.0,
            seed=scheduler.seed,
        )
        self._now_s = START_S
        #: keys of ProvisioningRequests with reserved places; failures become notes
        self.held: list[str] = []
        self.notes: list[str] = []

    def run(self) -> None:
        """Run until no fact is left."""
        self.hands.work()
        machine = self.machine
        machine.is_active = False
        ahead_s = self.store.ctx.clock() - START_S
        facts: list[Fact] = [WallClock(ahead_s), *self.store.watch()]
        while facts or machine.is_taking_in:
            facts = self._turn(facts)
        self._hold()
        machine.is_active = True
        jumps = 0
        for _ in range(TURNS_MAX):
            facts = self._turn(facts)
            if facts:
                jumps = 0
                continue
            due_s = machine.next_deadline_s()
            if due_s is not None and due_s <= self._now_s:
                continue
            jumps += 1
            if due_s is None or jumps > JUMPS_MAX or not self._is_anything_under_way():
                return
            self._now_s = due_s

    def _hold(self) -> None:
        """Reserve places for accepted ProvisioningRequests whichever scheduler decides: another
        scheduler may serve a class that this configuration does not.
        """
        cluster = self.machine.context.cluster
        requests: list[ProvisioningRequest] = list(cluster.all(PROVISIONING_REQUEST).values())
        for request in requests:
            if request.stage is not RequestStage.HELD:
                continue
            steps = holding_promised(cluster, request, ANY_TERMS)
            try:
                while True:
                    next(steps)
            except StopIteration as end:
                over: tuple[str, str] | None = end.value
            if over is None:
                self.held.append(request.metadata.key)
            else:
                key = request.metadata.key
                self.notes.append(f"nothing is held for ProvisioningRequest {key}: {over[1]}")

    def _is_anything_under_way(self) -> bool:
        """Whether time alone may change something, by a backoff or a wait for other pods."""
        places = self.machine.context.queue.places
        return bool(len(places.backoff) or len(places.error_backoff) or not self.machine.is_idle)

    def _turn(self, facts: list[Fact]) -> list[Fact]:
        answers: list[Fact] = []
        for effect in self.machine.handle(facts, self._now_s):
            answer = self._performed(effect)
            if answer is not None:
                answers.append(answer)
            self.hands.work()
            answers += self.store.facts
            self.store.facts.clear()
        return answers

    def _performed(self, effect: Effect) -> Answer | None:
        answer: Answer | None = None
        match effect:
            case EmitEvent():
                if effect.reason == "Preempted":
                    key = f"{effect.regarding.namespace}/{effect.regarding.name}"
                    self.preempted[key] = effect.note
            case CancelCall():
                pass
            case AskExtender():
                answer = Refused(effect.id, 0, "extenders are not called for hypothetical pods")
            case CallPlugin():
                answer = answer_now(effect, min(effect.timeout_s, CALL_S))
            case _:
                answer = self.store.perform(effect)
                if isinstance(effect, Bind):
                    self.bound[effect.pod.key] = effect.node
                if isinstance(effect, DeletePod):
                    self.preempted.setdefault(effect.pod.key, "")
        return answer if effect.answers and effect.wants_answer else None
