"""A realistic cluster and a realistic set of pods: several sizes, zones, taints, priorities,
misfits.

Deterministic for a seed. Objects are plain API mappings, as a user would apply them.
"""

import random
from collections.abc import Iterator
from typing import Any, Final

JsonObject = dict[str, Any]

ZONES: Final = ("europe-1a", "europe-1b", "europe-1c")
APPS: Final = 24
NAMESPACES: Final = ("shop", "search", "batch", "ml")

#: (share of 100, cores, memory GiB, instance type)
SIZES: Final = (
    (50, 4, 16, "standard-4"),
    (30, 8, 32, "standard-8"),
    (20, 16, 64, "standard-16"),
)
BATCH_TAINT: Final = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SPOT_TAINT: Final = {"key": "spot", "value": "true", "effect": "PreferNoSchedule"}


def namespaces() -> Iterator[JsonObject]:
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def priority_classes() -> Iterator[JsonObject]:
    for name, value in (("high", 1000), ("low", -10)):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }


def nodes(count: int) -> Iterator[JsonObject]:
    """Nodes of three sizes in three zones; of every 40, two are tainted, one has GPUs, one is
    cordoned.
    """
    for index in range(count):
        cores, memory, instance = _size(index * 7919 % 100)
        kind = index % 40
        labels = {
            "kubernetes.io/hostname": f"node-{index:05d}",
            "topology.kubernetes.io/zone": ZONES[index % 3],
            "topology.kubernetes.io/region": "europe-1",
            "node.kubernetes.io/instance-type": instance,
            "disk": "ssd" if index % 3 else "hdd",
        }
        amounts = {
            "cpu": str(cores),
            "memory": f"{memory}Gi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
        }
        spec: JsonObject = {}
        if kind in (3, 17):
            spec["taints"] = [BATCH_TAINT]
        elif kind == 5:
            spec["taints"] = [GPU_TAINT]
            amounts["nvidia.com/gpu"] = "8"
            labels["gpu"] = "a100"
        elif kind == 11 and count > 40:
            spec["unschedulable"] = True
        elif kind in (23, 29):
            spec["taints"] = [SPOT_TAINT]
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{index:05d}", "labels": labels},
            "spec": spec,
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def _size(percent: int) -> tuple[int, int, str]:
    for share, cores, memory, instance in SIZES:
        if percent < share:
            return cores, memory, instance
        percent -= share
    return SIZES[0][1:]


def pods(count: int, scheduler_name: str, seed: int = 0) -> Iterator[JsonObject]:
    """Mostly small services, some batch pods, some with constraints, a few with GPUs, one in 100
    that fits nowhere.
    """
    rng = random.Random(seed)
    for index in range(count):
        roll = rng.randrange(1000)
        app = f"app-{rng.randrange(APPS)}"
        if roll < 550:
            namespace, spec = "shop", _spec("100m", "128Mi")
        elif roll < 740:
            namespace, spec = "search", _spec("250m", "512Mi")
            if roll < 600:
                spec["priorityClassName"] = "high"
        elif roll < 800:
            namespace, spec = "search", _spec("200m", "256Mi", nodeSelector={"disk": "ssd"})
        elif roll < 850:
            namespace, spec = "shop", _spec("100m", "128Mi", **_spread(app))
        elif roll < 880:
            namespace, spec = "search", _spec("150m", "256Mi", **_apart(app))
        elif roll < 970:
            namespace, spec = "batch", _spec("500m", "1Gi", tolerations=[_tolerates(BATCH_TAINT)])
            spec["priorityClassName"] = "low"
        elif roll < 990:
            namespace, spec = "ml", _spec("1", "4Gi", gpu="1", tolerations=[_tolerates(GPU_TAINT)])
        else:
            namespace, spec = "ml", _misfit(roll)
        spec["schedulerName"] = scheduler_name
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{app}-{index:06d}",
                "namespace": namespace,
                "labels": {"app": app, "tier": namespace},
            },
            "spec": spec,
        }


def _spec(cpu: str, memory: str, gpu: str = "", **more: Any) -> JsonObject:
    requests = {"cpu": cpu, "memory": memory}
    limits = {}
    if gpu:
        requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"] = gpu
    resources: JsonObject = {"requests": requests}
    if limits:
        resources["limits"] = limits
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {"containers": [container], **more}


def _spread(app: str) -> JsonObject:
    constraint = {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app, "tier": "shop"}},
    }
    return {"topologySpreadConstraints": [constraint]}


def _apart(app: str) -> JsonObject:
    term = {
        "weight": 50,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": app}},
        },
    }
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rule}}


def _tolerates(taint: JsonObject) -> JsonObject:
    return {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}


def _misfit(roll: int) -> JsonObject:
    if roll < 994:
        return _spec("96", "1Gi")
    if roll < 997:
        return _spec("100m", "128Mi", nodeSelector={"disk": "tape"})
    return _spec("1", "4Gi", gpu="16", tolerations=[_tolerates(GPU_TAINT)])
