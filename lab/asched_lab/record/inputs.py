"""What a case begins with: objects and one pending pod, generated or from a file of cases.

Generated clusters have few distinct labels, taints, ports and images, so that rules meet often.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU: Final = "example.com/gpu"
IMAGES: Final = ("registry.example/app:v1", "registry.example/db:v2", "registry.example/web:v3")
APPS: Final = ("web", "db", "cache")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PRIORITIES: Final = {"low": 10, "middle": 100, "high": 1000, "polite": 1000}
NAMESPACES: Final = ("default", "team-a", "team-b")
#: Kinds whose objects a controller has to change before the pod is bound.
NEED_CONTROLLERS: Final = ("resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules")


@dataclass(frozen=True)
class Input:
    """`objects` by plural, as in the recordings; `pod` has no node."""

    name: str
    objects: dict[str, list[Json]]
    pod: Json

    def unsupported(self) -> str:
        """Why it cannot be recorded from outside; "" if it can."""
        if any(self.objects.get(kind) for kind in NEED_CONTROLLERS):
            return "devices"
        claims = self.objects.get("persistentvolumeclaims") or ()
        volumes = self.pod["spec"].get("volumes") or ()
        if any(not c["spec"].get("volumeName") for c in claims) or any(
            "ephemeral" in volume for volume in volumes
        ):
            return "claims that a controller has to bind"
        if self.pod.get("status", {}).get("nominatedNodeName"):
            return "a pod with a nominated node"
        if self.pod["spec"].get("nodeName"):
            return "a pod that names its node"
        if not all(pod["spec"].get("nodeName") for pod in self.objects.get("pods") or ()):
            return "other pods that wait"
        return ""


def read(path: Path) -> Iterator[Input]:
    """The inputs of a file of cases whose scheduler had its defaults."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            case = json.loads(line)
            if (
                "pod" in case
                and "objects" in case
                and not (case.get("config") or case.get("gates"))
            ):
                classes = runtime_classes([*case["objects"].get("pods", ()), case["pod"]])
                yield Input(
                    case["name"], {**case["objects"], "runtimeclasses": classes}, case["pod"]
                )


def runtime_classes(pods: list[Json]) -> list[Json]:
    """Give pods with a RuntimeClass one for their overhead; corpora contain none."""
    made = {}
    for pod in pods:
        if "runtimeClassName" in pod["spec"]:
            amounts = pod["spec"].get("overhead") or {}
            name = "-".join(("overhead", *amounts.values())).lower()
            pod["spec"]["runtimeClassName"] = name
            overhead = {"overhead": {"podFixed": amounts}} if amounts else {}
            made[name] = {"metadata": {"name": name}, "handler": "any", **overhead}
    return list(made.values())


def generate(seed: int, count: int) -> Iterator[Input]:
    """Random clusters of 2 to 12 nodes, the same for the same seed."""
    for number in range(count):
        yield _Cluster(Random(f"{seed}-{number}")).input(f"outside-s{seed}-{number:04d}")


class _Cluster:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = [f"node-{number}" for number in range(random.randint(2, 12))]
        #: In a full cluster pods fit by preemption only.
        self.is_full = random.random() < 0.3
        self.volumes: list[Json] = []
        self.claims: list[Json] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def input(self, name: str) -> Input:
        nodes = [self.node(name) for name in self.names]
        pods = [self.placed(number) for number in range(self.random.randint(0, 2 * len(nodes)))]
        if self.is_full:
            pods += [
                self.filler(f"full-{node['metadata']['name']}-{number}", node)
                for node in nodes
                for number in range(self.random.randint(1, 3))
            ]
        pod = self.pod("pending")
        if self.is_full and self.chance(0.7):
            pod["spec"]["priorityClassName"] = self.random.choice(
                ("middle", "high", "high", "polite")
            )
            pod["spec"]["containers"][0]["resources"] = {
                "requests": {"cpu": self.random.choice(("2", "3")), "memory": "1Gi"}
            }
        if self.chance(0.15):
            self.volume(pod)
        objects = {
            "namespaces": [self.namespace(name) for name in NAMESPACES],
            "priorityclasses": [
                {
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": "Never" if name == "polite" else "PreemptLowerPriority",
                }
                for name, value in PRIORITIES.items()
            ],
            "nodes": nodes,
            "persistentvolumeclaims": self.claims,
            "persistentvolumes": self.volumes,
            "services": [self.service(app) for app in APPS if self.chance(0.3)],
            "poddisruptionbudgets": [self.budget(app) for app in APPS if self.chance(0.3)],
            "pods": pods,
        }
        return Input(name, {kind: found for kind, found in objects.items() if found}, pod)

    def namespace(self, name: str) -> Json:
        return {"metadata": {"name": name, "labels": {"team": name.removeprefix("team-")}}}

    def node(self, name: str) -> Json:
        choice = self.random.choice
        labels = {HOST: name, "kubernetes.io/os": "linux", "size": choice("1379")}
        if self.chance(0.85):
            labels[ZONE] = choice(("zone-a", "zone-b", "zone-c"))
        if self.chance(0.7):
            labels["disk"] = choice(("ssd", "hdd"))
        spec: Json = {}
        if self.chance(0.3):
            spec["taints"] = [
                {"key": key, "value": choice(("x", "y")), "effect": choice(EFFECTS)}
                for key in self.random.sample(("dedicated", "spot"), self.random.randint(1, 2))
            ]
        if self.chance(0.08):
            spec["unschedulable"] = True
        amounts = {
            "cpu": choice(("2", "3900m", "4", "8")),
            "memory": choice(("4Gi", "8Gi", "7841Mi", "16Gi")),
            "ephemeral-storage": choice(("20Gi", "100Gi")),
            "pods": choice(("3", "30", "110", "110")),
        }
        if self.chance(0.25):
            amounts[GPU] = choice("248")
        images = [
            {"names": [image], "sizeBytes": (200 + 300 * number) << 20}
            for number, image in enumerate(IMAGES)
            if self.chance(0.4)
        ]
        status: Json = {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": images,
        }
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    def placed(self, number: int) -> Json:
        pod = self.pod(f"run-{number}", share=0.4, port=9000 + number)
        return self.on(pod, self.random.choice(self.names))

    def filler(self, name: str, node: Json) -> Json:
        """A pod that takes a large share of a node."""
        pod = self.pod(name, share=0.1, port=None)
        cpu = node["status"]["allocatable"]["cpu"]
        milli = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        share = self.random.choice((3, 4, 5))
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{milli * share // 10}m"}}
        if self.chance(0.7):
            pod["spec"]["priorityClassName"] = self.random.choice(("low", "middle"))
        return self.on(pod, node["metadata"]["name"])

    def on(self, pod: Json, node: str) -> Json:
        pod["spec"]["nodeName"] = node
        minute = self.random.randint(10, 59)
        pod["status"] = {"phase": "Running", "startTime": f"2026-03-01T08:{minute}:00Z"}
        return pod

    def pod(self, name: str, share: float = 1.0, port: int | None = 8080) -> Json:
        """A pod with some rules; `share` of them for a pod that runs already."""
        labels = {"app": self.random.choice(APPS), "tier": self.random.choice(("front", "back"))}
        namespace = self.random.choice(("default", "default", *NAMESPACES[1:]))
        spec: Json = {"containers": [self.container("main")], "terminationGracePeriodSeconds": 30}
        if self.chance(0.2):
            spec["containers"].append(self.container("side"))
        if self.chance(0.2):
            always = {"restartPolicy": "Always"} if self.chance(0.5) else {}
            spec["initContainers"] = [{**self.container("first"), **always}]
        if port is not None and self.chance(0.15):
            number = self.random.choice((8080, 8081)) if port == 8080 else port
            spec["containers"][0]["ports"] = [{"containerPort": number, "hostPort": number}]
        if self.chance(0.3):
            spec["priorityClassName"] = self.random.choice(tuple(PRIORITIES))
        if self.chance(0.5 * share):
            spec["tolerations"] = [self.toleration() for _ in range(self.random.randint(1, 2))]
        if self.chance(0.15 * share):
            spec["nodeSelector"] = {"disk": self.random.choice(("ssd", "hdd"))}
        affinity = self.affinity(share)
        if affinity:
            spec["affinity"] = affinity
        if self.chance(0.3 * share):
            spec["topologySpreadConstraints"] = self.spread()
        return {
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": spec,
        }

    def container(self, name: str) -> Json:
        choice = self.random.choice
        requests = {}
        if self.chance(0.8):
            requests["cpu"] = choice(("50m", "100m", "333m", "1"))
        if self.chance(0.8):
            requests["memory"] = choice(("100M", "256Mi", "1Gi", "1500Mi"))
        if self.chance(0.1):
            requests["ephemeral-storage"] = choice(("1Gi", "30Gi"))
        resources: Json = {"requests": requests}
        if self.chance(0.08):
            requests[GPU] = choice("12")
            resources["limits"] = {GPU: requests[GPU]}
        return {"name": name, "image": choice(IMAGES), "resources": resources}

    def toleration(self) -> Json:
        key = self.random.choice(("dedicated", "spot"))
        made: Json = {"key": key, "operator": "Exists"}
        if self.chance(0.5):
            made = {"key": key, "operator": "Equal", "value": self.random.choice(("x", "y"))}
        if self.chance(0.5):
            made["effect"] = self.random.choice(EFFECTS)
        return made

    def affinity(self, share: float) -> Json:
        made: Json = {}
        node: Json = {}
        if self.chance(0.2 * share):
            terms = [self.node_term() for _ in range(self.random.randint(1, 2))]
            node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.chance(0.3 * share):
            node["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.random.randint(1, 100), "preference": self.node_term()}
                for _ in range(2)
            ]
        if node:
            made["nodeAffinity"] = node
        for kind, required in (("podAffinity", 0.12), ("podAntiAffinity", 0.2)):
            rules: Json = {}
            if self.chance(required * share):
                rules["requiredDuringSchedulingIgnoredDuringExecution"] = [self.pod_term()]
            if self.chance(0.2 * share):
                rules["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": self.random.randint(1, 100), "podAffinityTerm": self.pod_term()}
                ]
            if rules:
                made[kind] = rules
        return made

    def node_term(self) -> Json:
        expressions = (
            {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]},
            {"key": ZONE, "operator": "NotIn", "values": ["zone-a"]},
            {"key": "disk", "operator": "Exists"},
            {"key": "disk", "operator": "DoesNotExist"},
            {"key": "size", "operator": "Gt", "values": ["2"]},
            {"key": "size", "operator": "Lt", "values": ["8"]},
        )
        return {"matchExpressions": self.random.sample(expressions, self.random.randint(1, 2))}

    def pod_term(self) -> Json:
        made: Json = {
            "topologyKey": self.random.choice((ZONE, HOST)),
            "labelSelector": {"matchLabels": {"app": self.random.choice(APPS)}},
        }
        if self.chance(0.3):
            made["namespaces"] = ["team-a", "default"]
        elif self.chance(0.3):
            made["namespaceSelector"] = {"matchLabels": {"team": "a"}}
        if self.chance(0.15):
            made["matchLabelKeys"] = ["tier"]
        return made

    def spread(self) -> list[Json]:
        keys = self.random.sample((ZONE, HOST), self.random.randint(1, 2))
        made = []
        for key in keys:
            constraint: Json = {
                "maxSkew": self.random.randint(1, 2),
                "topologyKey": key,
                "whenUnsatisfiable": self.random.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": {"app": self.random.choice(APPS)}},
            }
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.3):
                constraint["minDomains"] = self.random.randint(2, 4)
            if self.chance(0.2):
                constraint["nodeTaintsPolicy"] = "Honor"
            if self.chance(0.2):
                constraint["matchLabelKeys"] = ["tier"]
            made.append(constraint)
        return made

    def service(self, app: str) -> Json:
        spec = {"selector": {"app": app}, "ports": [{"port": 80}], "clusterIP": "None"}
        return {"metadata": {"name": app, "namespace": "default"}, "spec": spec}

    def budget(self, app: str) -> Json:
        allowed = self.random.randint(0, 1)
        return {
            "metadata": {"name": app, "namespace": self.random.choice(NAMESPACES)},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "currentHealthy": 1 + allowed,
                "desiredHealthy": 1,
                "expectedPods": 1 + allowed,
            },
        }

    def volume(self, pod: Json) -> None:
        """A claim that is bound to a volume of one zone."""
        namespace = pod["metadata"]["namespace"]
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        amount = {"storage": "1Gi"}
        zone = {"key": ZONE, "operator": "In", "values": [self.random.choice(("zone-a", "zone-b"))]}
        self.claims.append(
            {
                "metadata": {
                    "name": "data",
                    "namespace": namespace,
                    "uid": "claim-uid",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {**common, "resources": {"requests": amount}, "volumeName": "volume"},
                "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": amount},
            }
        )
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": "claim-uid"}
        self.volumes.append(
            {
                "metadata": {"name": "volume"},
                "spec": {
                    **common,
                    "capacity": amount,
                    "csi": {"driver": "csi.example.com", "volumeHandle": "handle"},
                    "claimRef": {**reference, "namespace": namespace, "name": "data"},
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
                    },
                },
                "status": {"phase": "Bound"},
            }
        )
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod["spec"]["volumes"] = [volume]
