"""No pod sleeps although it would fit.

Random clusters live through random changes. After every change the queue gets all the time it wants short of
the five-minute sweep; then each pod that still rests is tried once more from scratch, and none of them may
find a node. Hints may wake a pod in vain, they must not miss a chance.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.cycle.machine import Machine
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Bind, DeletePod
from asched.core.framework.runner import NoNodesError, run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    BY_PLURAL,
    CSI_NODE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
    STORAGE_CLASS,
    Kind,
)
from asched.core.model.pod import Pod
from asched.core.state.facts import Bound, Done, Fact, Gone, Seen
from asched.edge.host.assemble import Parts, build_machine, build_runners

Json = dict[str, Any]

STEPS = 50
ZONES = ("a", "b", "c")
APPS = ("web", "db", "job")
NAMESPACES = ("one", "two", "three")


class Changing:
    """A world that changes one object at a time, and a machine that lives in it."""

    def __init__(self, seed: int, config: Json | None = None) -> None:
        self.rng = random.Random(seed)
        self.now_s = 1000.0
        self.objects: dict[tuple[str, str], Json] = {}
        self.versions = 0
        effective = configuration(config or {})
        self.parts = Parts.fresh()
        self._effective = effective
        self.machine: Machine = build_machine(
            effective, self.parts, build_runners(effective, self.parts), counter_s=lambda: 0.0
        )
        for namespace in NAMESPACES:
            self.put(NAMESPACE, self._namespace(namespace))
        for _ in range(self.rng.randint(1, 4)):
            self.put(NODE, self._node())

    # --- the world ---------------------------------------------------------------------------------

    def put(self, kind: Kind, obj: Json) -> None:
        self.versions += 1
        obj["metadata"]["resourceVersion"] = str(self.versions)
        key = f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        self.objects[kind.plural, key] = obj
        self.turn(Seen(kind, decode(kind.record, obj)))

    def drop(self, kind: Kind) -> None:
        held = [key for plural, key in self.objects if plural == kind.plural]
        if held:
            obj = self.objects.pop((kind.plural, self.rng.choice(held)))
            self.turn(Gone(kind, decode(kind.record, obj)))

    def some(self, kind: Kind) -> Json | None:
        held = [obj for (plural, _), obj in self.objects.items() if plural == kind.plural]
        return self.rng.choice(held) if held else None

    def turn(self, *facts: Fact) -> None:
        """Hand in facts, and answer whatever is asked: bindings succeed, evictions work."""
        effects = self.machine.handle(facts, self.now_s)
        while effects:
            answers: list[Fact] = []
            for effect in effects:
                if isinstance(effect, Bind):
                    answers.append(Bound(effect.id))
                    answers.append(self._bound(effect))
                elif isinstance(effect, DeletePod):
                    answers.append(Done(effect.id))
                    gone = self.objects.pop(("pods", effect.pod.key), None)
                    if gone is not None:
                        answers.append(Gone(POD, decode(Pod, gone)))
                elif effect.answers and effect.id:
                    answers.append(Done(effect.id))
            effects = self.machine.handle(answers, self.now_s) if answers else []

    def _bound(self, bind: Bind) -> Fact:
        pod = self.objects["pods", bind.pod.key]
        pod = {**pod, "spec": {**pod["spec"], "nodeName": bind.node}}
        self.versions += 1
        pod["metadata"] = {**pod["metadata"], "resourceVersion": str(self.versions)}
        self.objects["pods", bind.pod.key] = pod
        return Seen(POD, decode(Pod, pod))

    def rest(self) -> None:
        """Let every backoff end, but not the five-minute sweep begin."""
        for _ in range(14):
            self.now_s += 1.0
            self.turn()

    # --- objects -----------------------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        return f"{prefix}-{self.rng.randrange(10_000)}"

    def _namespace(self, name: str) -> Json:
        labels = {"team": self.rng.choice(("red", "blue"))}
        return {"metadata": {"name": name, "uid": name, "labels": labels}}

    def _node(self, name: str = "") -> Json:
        rng = self.rng
        name = name or self._name("node")
        labels = {"kubernetes.io/hostname": name, "disk": rng.choice(("ssd", "hdd"))}
        if rng.random() < 0.9:
            labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
        spec: Json = {"unschedulable": True} if rng.random() < 0.15 else {}
        if rng.random() < 0.3:
            effect = rng.choice(("NoSchedule", "PreferNoSchedule"))
            spec["taints"] = [{"key": rng.choice(("gpu", "spot")), "effect": effect}]
        amounts = {
            "cpu": str(rng.choice((1, 2, 4))),
            "memory": "8Gi",
            "pods": str(rng.choice((2, 4, 10))),
        }
        if rng.random() < 0.3:
            amounts["example.com/dev"] = "2"
        status = {"allocatable": amounts}
        return {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": spec,
            "status": status,
        }

    def _pod(self) -> Json:
        rng = self.rng
        name = self._name("pod")
        requests = {"cpu": rng.choice(("100m", "500m", "1500m"))}
        if rng.random() < 0.1:
            requests["example.com/dev"] = "1"
        container: Json = {"name": "c", "image": "i", "resources": {"requests": requests}}
        if rng.random() < 0.15:
            container["ports"] = [{"containerPort": 1, "hostPort": rng.choice((80, 81))}]
        spec: Json = {"containers": [container], "schedulerName": "default-scheduler"}
        spec["priority"] = rng.choice((0, 0, 0, 10))
        spec["preemptionPolicy"] = "Never"
        if rng.random() < 0.2:
            spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
        if rng.random() < 0.3:
            spec["tolerations"] = [{"key": rng.choice(("gpu", "spot")), "operator": "Exists"}]
        extra = rng.random()
        if extra < 0.2:
            spec["affinity"] = {"podAntiAffinity": self._affinity()}
        elif extra < 0.4:
            spec["affinity"] = {"podAffinity": self._affinity()}
        elif extra < 0.6:
            spec["topologySpreadConstraints"] = [self._constraint()]
        elif extra < 0.75:
            claim = self._claim()
            spec["volumes"] = [
                {"name": "v", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
            ]
            metadata = {"name": name, "namespace": claim["metadata"]["namespace"]}
            return self._finished(metadata, spec)
        return self._finished({"name": name, "namespace": rng.choice(NAMESPACES)}, spec)

    def _finished(self, metadata: Json, spec: Json) -> Json:
        labels = {"app": self.rng.choice(APPS)}
        return {
            "metadata": {**metadata, "uid": self._name("uid"), "labels": labels},
            "spec": spec,
            "status": {},
        }

    def _term(self) -> Json:
        rng = self.rng
        term: Json = {
            "topologyKey": rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
            "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
        }
        roll = rng.random()
        if roll < 0.25:
            term["namespaceSelector"] = {"matchLabels": {"team": rng.choice(("red", "blue"))}}
        elif roll < 0.4:
            term["namespaces"] = [rng.choice(NAMESPACES)]
        return term

    def _affinity(self) -> Json:
        terms = [self._term() for _ in range(self.rng.choice((1, 1, 2)))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def _constraint(self) -> Json:
        rng = self.rng
        return {
            "maxSkew": 1,
            "topologyKey": rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
            "nodeTaintsPolicy": rng.choice(("Honor", "Ignore")),
        }

    def _claim(self) -> Json:
        rng = self.rng
        namespace, name = rng.choice(NAMESPACES), f"claim-{rng.randrange(3)}"
        known = self.objects.get(("persistentvolumeclaims", f"{namespace}/{name}"))
        if known is not None:
            return known
        modes = [rng.choice(("ReadWriteOnce", "ReadWriteOncePod"))]
        claim: Json = {
            "metadata": {"name": name, "namespace": namespace, "uid": self._name("uid")},
            "spec": {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Pending"},
        }
        if rng.random() < 0.5:
            claim["spec"]["storageClassName"] = "later"
            return claim
        volume = self._name("pv")
        claim["spec"]["volumeName"] = volume
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        zone = [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [rng.choice(ZONES)]}
        ]
        self.put(
            PERSISTENT_VOLUME,
            {
                "metadata": {"name": volume, "uid": volume},
                "spec": {
                    "accessModes": modes,
                    "capacity": {"storage": "1Gi"},
                    "csi": {"driver": "csi.example.com", "volumeHandle": volume},
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchExpressions": zone}]}
                    },
                },
                "status": {"phase": "Bound"},
            },
        )
        return claim

    # --- changes -----------------------------------------------------------------------------------

    def change(self) -> None:
        """One thing happens."""
        self.rng.choices(
            [change for change, _ in CHANGES], weights=[weight for _, weight in CHANGES]
        )[0](self)

    def add_pod(self) -> None:
        self.put(POD, self._pod())

    def add_node(self) -> None:
        self.put(NODE, self._node())

    def change_node(self) -> None:
        node = self.some(NODE)
        if node is not None:
            self.put(NODE, self._node(node["metadata"]["name"]))

    def drop_node(self) -> None:
        self.drop(NODE)

    def drop_pod(self) -> None:
        self.drop(POD)

    def relabel_pod(self) -> None:
        pod = self.some(POD)
        if pod is not None:
            labels = {"app": self.rng.choice(APPS)}
            self.put(POD, {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def end_pod(self) -> None:
        pod = self.some(POD)
        if pod is not None and pod["spec"].get("nodeName"):
            ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            self.put(POD, {**pod, "metadata": {**pod["metadata"], **ending}})

    def relabel_namespace(self) -> None:
        self.put(NAMESPACE, self._namespace(self.rng.choice(NAMESPACES)))

    def add_claim(self) -> None:
        self.put(PERSISTENT_VOLUME_CLAIM, self._claim())

    def add_class(self) -> None:
        mode = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
        self.put(STORAGE_CLASS, {"metadata": {"name": "later", "uid": "later"}, **mode})

    def limit_volumes(self) -> None:
        node = self.some(NODE)
        if node is not None:
            name = node["metadata"]["name"]
            driver: Json = {"name": "csi.example.com", "nodeID": name}
            if self.rng.random() < 0.7:
                driver["allocatable"] = {"count": self.rng.choice((0, 1, 2))}
            drivers = [driver] if self.rng.random() < 0.8 else []
            self.put(
                CSI_NODE, {"metadata": {"name": name, "uid": name}, "spec": {"drivers": drivers}}
            )

    def unlimit_volumes(self) -> None:
        self.drop(CSI_NODE)

    def add_service(self) -> None:
        selector = {"app": self.rng.choice(APPS)}
        metadata = {"name": selector["app"], "namespace": self.rng.choice(NAMESPACES), "uid": "s"}
        self.put(SERVICE, {"metadata": metadata, "spec": {"selector": selector}})

    def drop_service(self) -> None:
        self.drop(SERVICE)

    # --- the judgement -----------------------------------------------------------------------------

    def sleepers(self) -> list[str]:
        """Pods at rest for which a fresh attempt finds a node."""
        found = []
        runners = build_runners(self._effective, self.parts)
        for queued in list(self.machine.desk.queue.places.resting):
            pod = queued.pod
            runner = runners[pod.spec.scheduler_name]
            if not all(p.pre_enqueue(pod).is_success for p in runner.profile.pre_enqueue):
                continue
            try:
                answer = run_alone(runner.schedule(self.parts.cluster.classes.info_of(pod), 0))
            except NoNodesError:
                continue
            if not isinstance(answer, Rejection):
                found.append(
                    f"{pod.key}, rejected by {sorted(queued.rejectors)}, fits {answer.node}"
                )
        return found


CHANGES: list[tuple[Callable[[Changing], None], int]] = [
    (Changing.add_pod, 30),
    (Changing.add_node, 6),
    (Changing.change_node, 14),
    (Changing.drop_node, 4),
    (Changing.drop_pod, 12),
    (Changing.relabel_pod, 8),
    (Changing.end_pod, 4),
    (Changing.relabel_namespace, 4),
    (Changing.add_claim, 6),
    (Changing.add_class, 2),
    (Changing.limit_volumes, 6),
    (Changing.unlimit_volumes, 2),
    (Changing.add_service, 2),
    (Changing.drop_service, 2),
]

#: Default constraints that come from services, and a node affinity every pod gets.
CONFIGURED: Json = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": "topology.kubernetes.io/zone",
                                "whenUnsatisfiable": "DoNotSchedule",
                            }
                        ],
                    },
                },
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "disk", "operator": "In", "values": ["ssd"]}
                                        ]
                                    }
                                ]
                            }
                        }
                    },
                },
                {
                    "name": "NodeResourcesFit",
                    "args": {"ignoredResources": ["example.com/dev"]},
                },
            ],
        }
    ]
}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("config", [None, CONFIGURED], ids=["default", "configured"])
def test_no_pod_sleeps_although_it_would_fit(seed: int, config: Json | None) -> None:
    world = Changing(seed, config)
    for step in range(STEPS):
        before = world.versions
        world.change()
        world.rest()
        changed = [
            f"{p} {k}"
            for (p, k), o in world.objects.items()
            if int(o["metadata"]["resourceVersion"]) > before
        ]
        assert not world.sleepers(), f"seed {seed}, step {step}, after {changed}"


def test_kinds_of_the_simulation_are_watched() -> None:
    assert {"pods", "nodes", "namespaces", "persistentvolumeclaims"} <= BY_PLURAL.keys()
