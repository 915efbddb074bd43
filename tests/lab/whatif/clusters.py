"""Small clusters as a user would have dumped them."""

from typing import Any

from asched_lab.whatif.changes import Scenario
from asched_lab.whatif.engine import scheduler_of, suppose
from asched_lab.whatif.result import Result
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.store import Store

Json = dict[str, Any]


def a_node(name: str, cpu: str = "4", *, zone: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
        },
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def a_pod(name: str, cpu: str = "1", on: str = "", *, owner: str = "", **spec: Any) -> Json:
    owners = []
    if owner:
        kind, _, of = owner.partition("/")
        owners = [{"apiVersion": "v1", "kind": kind, "name": of, "uid": of, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": "web"},
            "ownerReferences": owners,
        },
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            "schedulerName": "default-scheduler",
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def a_deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": a_pod("t", cpu, **spec)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def a_snapshot(*objects: Json) -> Snapshot:
    snapshot = Snapshot()
    for obj in objects:
        assert snapshot.add(obj)
    return snapshot


def a_store(*objects: Json) -> Store:
    return Store(a_snapshot(*objects))


def supposed(*objects: Json, **scenario: Any) -> Result:
    """What the default scheduler makes of it."""
    snapshot = a_snapshot(*objects)
    made = Scenario(**scenario)
    return suppose(snapshot, made, scheduler_of(snapshot, made.workloads))


def places(result: Result) -> dict[str, str]:
    """Pod to node, or why not."""
    return {place.pod: place.node or place.why for place in result.places}
