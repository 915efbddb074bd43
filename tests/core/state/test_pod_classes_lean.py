"""Lean pods: what equal pods have in common is held once, and each is still the same pod."""

from typing import Any

import pytest
from msgspec import structs

from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import PodSpec, PodStatus
from asched.core.state.pod_classes import PodClasses
from tests.builders import a_pod

#: A value of each field of a pod's parts that differs from an empty pod's.
OTHERS: dict[str, dict[str, Any]] = {
    "metadata": {
        "generation": 3,
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["f"],
        "namespace": "elsewhere",
        "resourceVersion": "77",
    },
    "spec": {
        "schedulerName": "other",
        "priority": 7,
        "preemptionPolicy": "Never",
        "nodeSelector": {"a": "b"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "k"}],
        "topologySpreadConstraints": [{"topologyKey": "k"}],
        "containers": [{"name": "other"}],
        "initContainers": [{"name": "i"}],
        "overhead": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}},
        "volumes": [{"name": "v"}],
        "hostNetwork": True,
        "hostUsers": False,
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "c"}],
        "schedulingGroup": {"podGroupName": "g"},
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 5,
    },
    "status": {
        "phase": "Running",
        "nominatedNodeName": "n9",
        "conditions": [{"type": "Ready", "status": "True"}],
        "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        "initContainerStatuses": [{"name": "i"}],
        "resources": {"requests": {"cpu": "2"}},
        "allocatedResources": {"cpu": "2"},
        "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "x"},
    },
}


def test_there_is_another_value_of_every_field() -> None:
    """Or a new field would be taken from another pod of the class, and nobody would notice."""
    parts: dict[str, type[Any]] = {"metadata": ObjectMeta, "spec": PodSpec, "status": PodStatus}
    always = {"name", "uid", "nodeName"}
    for part, record in parts.items():
        fields = {field.encode_name for field in structs.fields(record)}
        assert fields - always == OTHERS[part].keys() - always


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, fields in OTHERS.items() for name in fields]
)
def test_a_lean_pod_is_the_same_pod(part: str, name: str) -> None:
    """Whatever it has of its own, and whatever the first pod of the class has of its own."""
    plain = a_pod("one").requests(cpu="1").on("n1").build()
    own = a_pod("two").requests(cpu="1").on("n2")
    other = getattr(own, part)(**{name: OTHERS[part][name]}).build()
    for first, then in ((plain, other), (other, plain)):
        classes = PodClasses()
        held = classes.class_of(first)
        cls = classes.class_of(then)
        assert classes.lean(first, held) == first
        assert classes.lean(then, cls) == then


@pytest.mark.parametrize(
    "statuses",
    [("containerStatuses",), ("initContainerStatuses",), ()],
)
def test_equal_pods_hold_what_they_have_in_common_once(statuses: tuple[str, ...]) -> None:
    classes, told = PodClasses(), {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    one, two = (
        a_pod(name)
        .requests(cpu="1")
        .labels(app="a")
        .tolerates("k=v:NoSchedule")
        .metadata(ownerReferences=[{"kind": "ReplicaSet", "name": "r", "uid": "u"}])
        .status(phase=name, **{field: [told] for field in statuses})
        .on("n1")
        .build()
        for name in ("one", "two")
    )
    lean = [classes.lean(pod, classes.class_of(pod)) for pod in (one, two)]
    first, second = lean
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.owner_references is second.metadata.owner_references
    assert first.status.container_statuses is second.status.container_statuses
    assert first.status.init_container_statuses is second.status.init_container_statuses
    assert first is one, "it is the example of its class"
    assert first.spec.containers is not two.spec.containers
