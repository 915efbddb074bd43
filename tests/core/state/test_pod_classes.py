"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from typing import Any

import msgspec
import pytest
from msgspec import structs

from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod, PodSpec, PodStatus, spec_key
from asched.core.state import pod_classes
from asched.core.state.pod_classes import CLASS_BYTES, RECENT_BYTES_MAX, PodClasses
from tests.builders import a_pod


def test_equal_pods_share_a_class() -> None:
    classes = PodClasses()
    one, two = (a_pod(name).requests(cpu="1").build() for name in ("one", "two"))
    assert classes.class_of(one) is classes.class_of(two)
    assert classes.class_of(one) is not classes.class_of(a_pod("three").requests(cpu="2").build())


def test_pods_of_different_groups_share_a_class_and_keep_their_groups() -> None:
    """A thousand groups of equal pods cost what a thousand equal pods cost."""
    classes = PodClasses()
    members = [
        a_pod(name).spec(nodeName="n", schedulingGroup={"podGroupName": group}).build()
        for name, group in (("one", "a"), ("two", "b"))
    ]
    first, second = (classes.class_of(pod) for pod in members)
    assert first is second
    assert [classes.lean(pod, first) for pod in members] == members


def test_a_volume_that_no_rule_reads_has_no_name() -> None:
    """The API server mounts a token in every pod, under another name in each."""

    def mounting(name: str, *volumes: dict[str, object]) -> Pod:
        token = {"name": f"kube-api-access-{name}", "projected": {"sources": []}}
        return a_pod(name).spec(volumes=[token, *volumes]).build()

    classes = PodClasses()
    assert classes.class_of(mounting("one")) is classes.class_of(mounting("two"))
    assert classes.class_of(mounting("one")) is classes.class_of(a_pod("three").build())

    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": c}} for c in ("x", "x", "y")]
    x, x_too, y = (classes.class_of(mounting(str(n), claim)) for n, claim in enumerate(claims))
    assert x is x_too
    assert x is not y
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    assert classes.class_of(mounting("one", own)) is not classes.class_of(mounting("two", own))


def test_a_class_outlives_its_last_pod_for_a_while() -> None:
    """Pods that come one by one, each bound before the next, are of one class."""
    classes = PodClasses()
    number = classes.class_of(a_pod("one").requests(cpu="1").build()).number
    for index in range(100):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("two").requests(cpu="1").build()).number == number

    for index in range(RECENT_BYTES_MAX // CLASS_BYTES):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("three").requests(cpu="1").build()).number != number


def test_large_pods_push_out_more_of_those_that_nobody_uses() -> None:
    classes = PodClasses()
    usual = [classes.class_of(a_pod(name).labels(of=name).build()).number for name in "abc"]
    for index in range(40):
        classes.class_of(
            a_pod("large")
            .spec(nodeName="", nodeSelector={"k": f"{index}"})
            .labels({f"key-{k}": "v" * 60 for k in range(1_000)})
            .build()
        )
    assert 1 <= len(classes._recent_large) < 40
    for _ in range(2):
        classes.class_of(a_pod("large").labels(x="y" * 3_000_000).build())
    assert len(classes._recent_large) == 1
    now = [classes.class_of(a_pod(name).labels(of=name).build()).number for name in "abc"]
    assert now == usual, "large ones take no room from the others"


def a_large_pod(name: str) -> Pod:
    return a_pod(name).labels(x="y" * 100_000, of=name).build()


def test_the_key_of_a_large_pod_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(pod: Pod) -> bytes:
        made.append(pod.metadata.name)
        return spec_key(pod)

    monkeypatch.setattr(pod_classes, "spec_key", counted)
    classes, (one, two) = PodClasses(), map(a_large_pod, ("one", "two"))
    for _ in range(3):
        assert classes.class_of(one) is not classes.class_of(two)
    assert made == ["one", "two"]
    changed = msgspec.structs.replace(one, status=PodStatus(nominated_node_name="n"))
    assert classes.class_of(changed) is classes.class_of(one)
    assert made == ["one", "two", "one", "one"], "another version"
    classes.gone(one)
    classes.gone(two)
    assert classes._large_keys._bytes == 0
    assert not classes._large_keys._keys


def test_keys_of_large_pods_are_held_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_classes, "LARGE_KEYS_BYTES_MAX", 350_000)
    classes = PodClasses()
    for number in range(10):
        classes.class_of(a_large_pod(f"{number}"))
    assert len(classes._large_keys._keys) == 3


def test_once_pods_are_told_apart_by_more_the_keys_of_large_ones_say_so() -> None:
    classes = PodClasses()
    one, two = (
        a_pod(name).labels(x="y" * 100_000).metadata(annotations={"a": name}).build()
        for name in ("one", "two")
    )
    assert classes.class_of(one) is classes.class_of(two)
    classes.tell_apart_by(["a"])
    assert classes.class_of(one) is not classes.class_of(two)


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


def test_equal_pods_hold_what_they_have_in_common_once() -> None:
    classes = PodClasses()
    one, two = (
        a_pod(name)
        .requests(cpu="1")
        .labels(app="a")
        .tolerates("k=v:NoSchedule")
        .status(containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
        .on("n1")
        .build()
        for name in ("one", "two")
    )
    lean = [classes.lean(pod, classes.class_of(pod)) for pod in (one, two)]
    first, second = lean
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels
    assert first.status.container_statuses is second.status.container_statuses
    assert first.spec.containers is not two.spec.containers


def test_deadlines_tell_pods_apart_where_a_rule_reads_them() -> None:
    classes = PodClasses()
    plain, short, patient = (
        a_pod(name).spec(**spec).build()
        for name, spec in (
            ("plain", {}),
            ("short", {"activeDeadlineSeconds": 60}),
            ("patient", {"terminationGracePeriodSeconds": 600}),
        )
    )
    assert classes.class_of(short) is classes.class_of(plain)

    classes.tell_apart_by_deadlines()

    assert len({classes.class_of(pod).number for pod in (plain, short, patient)}) == 3


def test_a_key_is_known_without_a_class_and_leads_to_it() -> None:
    classes = PodClasses()
    one, two = (a_pod(name).requests(cpu="1").build() for name in ("one", "two"))
    key = classes.key_of(one)
    assert classes.key_of(two) is key, "held once"
    cls = classes.info_of(one, key).cls
    assert cls.key == key
    assert cls.number == 1, "the first that was made"
    assert classes.key_of(two) is cls.key
    assert classes.info_of(two, key).cls is cls
    assert classes.info_of(a_pod("web").build(), (key, "group")).cls is cls
    assert classes.info_of(two, ("something", "else")).cls is cls


def test_keys_are_held_once_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = PodClasses()
    size = len(classes.key_of(a_pod("one").requests(cpu="1").build()))
    monkeypatch.setattr(pod_classes, "KEYS_BYTES_MAX", 3 * size)
    held = []
    for cpu in range(1, 10):
        classes.key_of(a_pod("one").requests(cpu=str(cpu)).build())
        held.append(len(classes._keys))
    assert held == [1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_annotations_that_a_rule_reads_tell_pods_apart() -> None:
    classes = PodClasses()
    plain, red, blue = (
        a_pod(name).metadata(annotations=told).build()
        for name, told in (("plain", {}), ("red", {"colour": "red"}), ("blue", {"colour": "blue"}))
    )
    assert classes.class_of(red) is classes.class_of(blue)
    classes.tell_apart_by(("colour",))
    assert len({classes.class_of(one) for one in (plain, red, blue)}) == 3
    again = a_pod("again").metadata(annotations={"colour": "red", "other": "x"}).build()
    assert classes.class_of(again) is classes.class_of(red)


def test_labels_alone_tell_pods_apart_whose_annotations_are_read() -> None:
    classes = PodClasses()
    classes.tell_apart_by(("colour",))
    red, labelled, blue = (
        classes.class_of(
            a_pod(name).labels(**labels).metadata(annotations={"colour": colour}).build()
        )
        for name, labels, colour in (
            ("red", {}, "red"),
            ("labelled", {"a": "b"}, "red"),
            ("blue", {"a": "b"}, "blue"),
        )
    )
    assert red.is_relabelled(labelled)
    assert not red.is_relabelled(blue)
