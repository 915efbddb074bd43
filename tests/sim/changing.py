"""A cluster that changes one object at a time, and a machine that lives in it.

change   somebody does something                 weights in CHANGES
turn     the machine hears of it, and whatever it asks for is done at once
rest     all backoffs end; the five-minute sweep never comes
sleepers unschedulable pods that a fresh scheduler would place, or that fit by rules written down a
         second time, slowly, by somebody who knows none of the scheduler's
"""

import random
from collections.abc import Callable
from typing import Any

from asched.core.cluster.facts import Fact
from asched.core.config.defaults import configuration
from asched.core.cycle.machine import Machine
from asched.core.cycle.observer import Observer
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import NoNodesError, run_alone
from asched.core.model.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    SERVICE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)
from asched.host.assemble import Parts, build_machine, build_runners
from asched_lab.sim.checker import EndState
from tests.sim.api import TERMINATING, Api
from tests.sim.making import APPS, CLAIMS, DEVICE_CLAIMS, NAMESPACES, OURS, ZONES, Json, Making

#: Longer than the longest backoff.
REST_S = 12
NEVER_S = 1e9
#: Wishes that the rules written down a second time leave out.
BEYOND_RULES = {"volumes", "resourceClaims"}


class Rescues(Observer):
    """Counts pods that are placed, and those of them that only the sweep had woken.

    The sweep marks pods behind a gate as well, though it does not wake them: theirs is the first
    attempt when the gate opens.
    """

    def __init__(self) -> None:
        self.placed = self.rescued = 0

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None:
        self.placed += 1
        self.rescued += was_flushed and attempts > 1


class Changing:
    """`configured` is the configuration of the profile that most pods use; `sweep_s` the age at
    which unschedulable pods are tried again without a reason.
    """

    def __init__(
        self,
        seed: int,
        configured: Json | None = None,
        *,
        refusals: float = 0.03,
        sweep_s: float = NEVER_S,
    ) -> None:
        self.rng = random.Random(seed)
        self.now_s = 1000.0
        self.make = Making(self.rng)
        self.api = Api(self.rng, refusals)
        first = {**(configured or {}), "schedulerName": OURS[0]}
        self._effective = configuration({"profiles": [first, {"schedulerName": OURS[1]}]})
        self._configured = configured
        self.rescues = Rescues()
        #: How many times rules written down a second time were asked about a pod.
        self.judged_by_rules = 0
        self.parts = Parts.fresh()
        self.runners = build_runners(self._effective, self.parts)
        self.machine: Machine = build_machine(
            self._effective,
            self.parts,
            self.runners,
            monotonic_s=lambda: 0.0,
            observer=self.rescues,
            max_in_unschedulable_s=sweep_s,
        )
        for namespace in NAMESPACES:
            self.put(NAMESPACE, self.make.namespace(namespace))
        for _ in range(self.rng.randint(2, 6)):
            self.put(NODE, self.make.node())

    def put(self, kind: Kind, obj: Json) -> None:
        known = self.api.get(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if known is not None:
            obj["metadata"].setdefault("uid", known["metadata"]["uid"])
        self.turn(self.api.put(kind, obj))

    def drop(self, kind: Kind, obj: Json) -> None:
        self.turn(self.api.drop(kind, obj))

    def drop_some(self, kind: Kind) -> None:
        obj = self.some(kind)
        if obj is not None:
            self.drop(kind, obj)

    def some(self, kind: Kind, suits: Callable[[Json], Any] = lambda _: True) -> Json | None:
        found = [obj for obj in self.api.all(kind) if suits(obj)]
        return self.rng.choice(found) if found else None

    def turn(self, *facts: Fact) -> None:
        effects = self.machine.handle(facts, self.now_s)
        while effects:
            answers = [fact for effect in effects for fact in self.api.carry_out(effect)]
            effects = self.machine.handle(answers, self.now_s) if answers else []

    def rest(self) -> None:
        for _ in range(REST_S):
            self.now_s += 1.0
            self.turn()

    def sleepers(self) -> list[str]:
        """Pods unschedulable for which schedulers without any memory find a node, or slow rules."""
        found = []
        fresh = build_runners(self._effective, self.parts)
        end = self._end_state()
        for queued in list(self.machine.context.queue.places.unschedulable):
            pod = queued.pod
            profile = self.runners[pod.spec.scheduler_name].profile
            if not all(gate.pre_enqueue(pod).is_success for gate in profile.pre_enqueue):
                continue
            if pod.spec.scheduler_name == OURS[1] or not self._configured:
                obj = self.api.get(POD, pod.metadata.namespace, pod.metadata.name)
                assert obj is not None
                if not obj["spec"].keys() & BEYOND_RULES:
                    self.judged_by_rules += 1
                    fits = [name for name in end.nodes if end.fits(name, obj)]
                    found += [f"{pod.key} fits {name}, by the rules" for name in fits[:1]]
            runner = fresh[pod.spec.scheduler_name]
            info = self.parts.cluster.classes.info_of(pod)
            try:
                answer = run_alone(runner.schedule(info, 0))
            except NoNodesError:
                continue
            if not isinstance(answer, Rejection):
                blamed = sorted(queued.rejectors)
                found.append(f"{pod.key}, rejected by {blamed}, fits {answer.node}")
        return found

    def _end_state(self) -> EndState:
        """Nominated pods hold the places that are promised to them."""
        end = EndState(self.api.all(NODE), self.api.all(POD), self.api.all(NAMESPACE))
        for node, pods in self.parts.nominator.nodes().items():
            for pod in pods.values():
                obj = self.api.get(POD, pod.metadata.namespace, pod.metadata.name)
                if obj is not None and not obj["spec"].get("nodeName") and node in end.nodes:
                    end.place(obj, node)
        return end

    # --- nodes and namespaces ---------------------------------------------------------------------

    def change(self) -> str:
        """One thing happens; returns what."""
        chosen = self.rng.choices(list(CHANGES), weights=list(CHANGES.values()))[0]
        chosen(self)
        return chosen.__name__

    def add_node(self) -> None:
        self.put(NODE, self.make.node())

    def change_node(self) -> None:
        node = self.some(NODE)
        if node is not None:
            other = self.make.node(node["metadata"]["name"])
            part = self.rng.choice(("metadata", "spec", "status"))
            self.put(NODE, {**node, part: other[part]})

    def drop_node(self) -> None:
        self.drop_some(NODE)

    def relabel_namespace(self) -> None:
        self.put(NAMESPACE, self.make.namespace(self.rng.choice(NAMESPACES)))

    # --- pods -------------------------------------------------------------------------------------

    def add_pod(self) -> None:
        self.put(POD, self.make.pod())

    def drop_pod(self) -> None:
        self.drop_some(POD)

    def finish_pod(self) -> None:
        pod = self.some(POD, lambda pod: "deletionTimestamp" in pod["metadata"])
        if pod is not None:
            self.drop(POD, pod)

    def end_pod(self) -> None:
        pod = self.some(POD, lambda pod: pod["spec"].get("nodeName"))
        if pod is not None:
            self.put(POD, {**pod, "metadata": {**pod["metadata"], **TERMINATING}})

    def relabel_pod(self) -> None:
        pod = self.some(POD)
        if pod is not None:
            labels = {"app": self.rng.choice(APPS)}
            self.put(POD, {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def shrink_pod(self) -> None:
        pod = self.some(POD)
        if pod is not None:
            container = pod["spec"]["containers"][0]
            requests = {**container["resources"]["requests"], "cpu": "50m"}
            smaller = {**container, "resources": {"requests": requests}}
            self.put(POD, {**pod, "spec": {**pod["spec"], "containers": [smaller]}})

    def tolerate(self) -> None:
        pod = self.some(POD)
        if pod is not None:
            more = [*pod["spec"].get("tolerations", ()), self.make.toleration()]
            self.put(POD, {**pod, "spec": {**pod["spec"], "tolerations": more}})

    def ungate_pod(self) -> None:
        pod = self.some(POD, lambda pod: pod["spec"].get("schedulingGates"))
        if pod is not None:
            spec = {k: v for k, v in pod["spec"].items() if k != "schedulingGates"}
            self.put(POD, {**pod, "spec": spec})

    def place_elsewhere(self) -> None:
        """Somebody else places a pod, its own or one of ours."""
        pod = self.some(POD, lambda pod: not pod["spec"].get("nodeName"))
        node = self.some(NODE)
        if pod is not None and node is not None:
            name = node["metadata"]["name"]
            self.put(POD, {**pod, "spec": {**pod["spec"], "nodeName": name}})

    # --- volumes ----------------------------------------------------------------------------------

    def add_claim(self) -> None:
        namespace, name = self.rng.choice(NAMESPACES), self.rng.choice(CLAIMS)
        if self.api.get(PERSISTENT_VOLUME_CLAIM, namespace, name) is not None:
            return
        claim = self.make.claim(namespace, name)
        self.put(PERSISTENT_VOLUME_CLAIM, claim)
        if self.make.often(0.5):
            self._bind(namespace, name)

    def bind_claim(self) -> None:
        claim = self.some(PERSISTENT_VOLUME_CLAIM, lambda c: "volumeName" not in c["spec"])
        if claim is not None:
            self._bind(claim["metadata"]["namespace"], claim["metadata"]["name"])

    def _bind(self, namespace: str, name: str) -> None:
        claim = self.api.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if claim is None or "volumeName" in claim["spec"]:
            return
        of = {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]}
        volume = self.make.volume(self.rng.choice((*ZONES, None)), **of)
        self.put(PERSISTENT_VOLUME, volume)
        self.turn(self.api.bound(claim, volume["metadata"]["name"]))

    def add_ephemeral_claim(self) -> None:
        pod = self.some(POD, lambda pod: "ephemeral" in pod["spec"].get("volumes", [{}])[0])
        if pod is not None:
            name = f"{pod['metadata']['name']}-v"
            claim = self.make.claim(pod["metadata"]["namespace"], name, pod)
            self.put(PERSISTENT_VOLUME_CLAIM, claim)

    def drop_claim(self) -> None:
        self.drop_some(PERSISTENT_VOLUME_CLAIM)

    def add_volume(self) -> None:
        self.put(PERSISTENT_VOLUME, self.make.volume(self.rng.choice((*ZONES, None))))

    def drop_volume(self) -> None:
        self.drop_some(PERSISTENT_VOLUME)

    def free_volume(self) -> None:
        volume = self.some(PERSISTENT_VOLUME, lambda pv: "claimRef" in pv["spec"])
        if volume is not None:
            spec = {k: v for k, v in volume["spec"].items() if k != "claimRef"}
            self.put(PERSISTENT_VOLUME, {**volume, "spec": spec, "status": {"phase": "Available"}})

    def relabel_volume(self) -> None:
        volume = self.some(PERSISTENT_VOLUME)
        if volume is not None:
            self.put(
                PERSISTENT_VOLUME, {**volume, "metadata": {"name": volume["metadata"]["name"]}}
            )

    def change_class(self) -> None:
        self.put(STORAGE_CLASS, self.make.storage_class(self.rng.choice(("later", "now"))))

    def drop_class(self) -> None:
        self.drop_some(STORAGE_CLASS)

    def change_driver(self) -> None:
        self.put(CSI_DRIVER, self.make.csi_driver())

    def drop_driver(self) -> None:
        self.drop_some(CSI_DRIVER)

    def change_capacity(self) -> None:
        self.put(CSI_STORAGE_CAPACITY, self.make.capacity(self.rng.choice(ZONES)))

    def drop_capacity(self) -> None:
        self.drop_some(CSI_STORAGE_CAPACITY)

    def limit_volumes(self) -> None:
        node = self.some(NODE)
        if node is not None:
            self.put(CSI_NODE, self.make.csi_node(node["metadata"]["name"]))

    def unlimit_volumes(self) -> None:
        self.drop_some(CSI_NODE)

    def attach(self) -> None:
        node, volume = self.some(NODE), self.some(PERSISTENT_VOLUME)
        if node is not None and volume is not None:
            names = volume["metadata"]["name"], node["metadata"]["name"]
            self.put(VOLUME_ATTACHMENT, self.make.attachment(*names))

    def detach(self) -> None:
        self.drop_some(VOLUME_ATTACHMENT)

    # --- devices ----------------------------------------------------------------------------------

    def change_device_class(self) -> None:
        self.put(DEVICE_CLASS, self.make.device_class())

    def drop_device_class(self) -> None:
        self.drop_some(DEVICE_CLASS)

    def change_slice(self) -> None:
        node = self.some(NODE)
        if node is not None:
            generation = self.rng.choice((1, 1, 2))
            self.put(RESOURCE_SLICE, self.make.resource_slice(node["metadata"]["name"], generation))

    def drop_slice(self) -> None:
        self.drop_some(RESOURCE_SLICE)

    def add_device_claim(self) -> None:
        namespace, name = self.rng.choice(NAMESPACES), self.rng.choice(DEVICE_CLAIMS)
        if self.api.get(RESOURCE_CLAIM, namespace, name) is None:
            self.put(RESOURCE_CLAIM, self.make.resource_claim(namespace, name))

    def drop_device_claim(self) -> None:
        self.drop_some(RESOURCE_CLAIM)

    def free_devices(self) -> None:
        claim = self.some(RESOURCE_CLAIM, lambda claim: claim["status"])
        if claim is not None:
            self.put(RESOURCE_CLAIM, {**claim, "status": {}})

    # --- what default constraints come from -------------------------------------------------------

    def add_service(self) -> None:
        selector = {"app": self.rng.choice(APPS)}
        metadata = {"name": selector["app"], "namespace": self.rng.choice(NAMESPACES)}
        self.put(SERVICE, {"metadata": metadata, "spec": {"selector": selector}})

    def drop_service(self) -> None:
        self.drop_some(SERVICE)

    def change_replica_set(self) -> None:
        selector = {"matchLabels": {"app": self.rng.choice(APPS)}}
        metadata = {"name": "set", "namespace": self.rng.choice(NAMESPACES)}
        self.put(REPLICA_SET, {"metadata": metadata, "spec": {"selector": selector}})


CHANGES: dict[Callable[[Changing], None], int] = {
    Changing.add_pod: 50,
    Changing.add_node: 6,
    Changing.change_node: 20,
    Changing.drop_node: 4,
    Changing.relabel_namespace: 4,
    Changing.drop_pod: 12,
    Changing.finish_pod: 6,
    Changing.end_pod: 4,
    Changing.relabel_pod: 8,
    Changing.shrink_pod: 4,
    Changing.tolerate: 4,
    Changing.ungate_pod: 3,
    Changing.place_elsewhere: 4,
    Changing.add_claim: 8,
    Changing.bind_claim: 4,
    Changing.add_ephemeral_claim: 3,
    Changing.drop_claim: 3,
    Changing.add_volume: 3,
    Changing.drop_volume: 2,
    Changing.free_volume: 2,
    Changing.relabel_volume: 1,
    Changing.change_class: 4,
    Changing.drop_class: 1,
    Changing.change_driver: 2,
    Changing.drop_driver: 2,
    Changing.change_capacity: 4,
    Changing.drop_capacity: 1,
    Changing.limit_volumes: 6,
    Changing.unlimit_volumes: 2,
    Changing.attach: 3,
    Changing.detach: 3,
    Changing.change_device_class: 3,
    Changing.drop_device_class: 1,
    Changing.change_slice: 5,
    Changing.drop_slice: 2,
    Changing.add_device_claim: 4,
    Changing.drop_device_claim: 2,
    Changing.free_devices: 2,
    Changing.add_service: 3,
    Changing.drop_service: 2,
    Changing.change_replica_set: 1,
}
