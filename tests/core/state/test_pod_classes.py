"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from typing import Any

import msgspec
import pytest

from asched.core.model.pod import Pod, PodStatus, spec_key
from asched.core.model.vast import VAST_BYTES
from asched.core.state import pod_classes
from asched.core.state.nodes import AMOUNTS, START_TIMES
from asched.core.state.pod_classes import (
    BYTES_PER_KEY_BYTE,
    CLASS_BYTES,
    RECENT_BYTES_MAX,
    PodClasses,
)
from asched.core.state.pods import LARGE_BYTES
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


@pytest.mark.parametrize("by_key", [False, True])
def test_classes_that_are_asked_for_stay_and_those_unused_for_longest_go(
    by_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = PodClasses()
    pods = [a_pod(f"p{number}").selects(own=f"{number:02}").build() for number in range(30)]
    size = CLASS_BYTES + BYTES_PER_KEY_BYTE * len(classes.key_of(pods[0]))
    monkeypatch.setattr(pod_classes, "RECENT_BYTES_MAX", 10 * size)
    classes = PodClasses()
    key = classes.class_of(pods[0]).key
    for pod in pods:
        classes.class_of(pod)
        for _ in range(20):
            classes.info_of(pods[0], key if by_key else None)
    numbers = [classes.class_of(pods[at]).number for at in (*range(21, 30), 0, 20)]

    assert numbers == [*range(22, 31), 1, 31]


def test_large_pods_push_out_more_of_those_that_nobody_uses() -> None:
    classes = PodClasses()
    usual = [classes.class_of(a_pod(name).labels(of=name).build()).number for name in "abc"]
    for index in range(40):
        large = (
            a_pod("large")
            .spec(nodeName="", nodeSelector={"k": f"{index}"})
            .labels({f"key-{k}": "v" * 60 for k in range(1_000)})
            .build()
        )
        classes.class_of(large)
        classes.info_of(large, classes.key_of(large))
    assert 1 <= len(classes._recent_large) < 40
    for _ in range(2):
        classes.class_of(a_pod("large").labels(x="y" * 3_000_000).build())
    assert len(classes._recent_large) == 1
    now = [classes.class_of(a_pod(name).labels(of=name).build()).number for name in "abc"]
    assert now == usual, "large ones take no room from the others"


def a_large_pod(name: str) -> Pod:
    return a_pod(name).labels(x="y" * 100_000, of=name).build()


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods of which a key is made."""
    made: list[str] = []

    def counted(pod: Pod) -> bytes:
        made.append(pod.metadata.name)
        return spec_key(pod)

    monkeypatch.setattr(pod_classes, "spec_key", counted)
    return made


def test_the_key_of_a_large_pod_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = counting(monkeypatch)
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
    made, classes = counting(monkeypatch), PodClasses()
    pods = [a_large_pod(f"{number}") for number in range(10)]
    for pod in pods:
        classes.class_of(pod)
    for pod in reversed(pods[-3:]):
        classes.class_of(pod)
    assert made == [f"{number}" for number in range(10)], "the last three are held"
    classes.class_of(pods[-4])
    assert made[10:] == ["6"]


def test_the_key_of_a_pod_larger_than_the_bound_is_held_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_classes, "LARGE_KEYS_BYTES_MAX", 1)
    made, classes = counting(monkeypatch), PodClasses()
    one, two, plain = a_large_pod("one"), a_large_pod("two"), a_pod("plain").build()
    for pod in (one, plain, one, two, plain, two, one):
        classes.class_of(pod)
    assert made == ["one", "plain", "two", "plain", "one"]


def test_a_pod_that_is_asked_about_again_at_once_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, classes = counting(monkeypatch), PodClasses()
    one = a_pod("one").build()
    assert classes.class_of(one) is classes.class_of(one)
    assert made == ["one"]


@pytest.mark.parametrize(
    ("size", "long", "made_again"), [(0, 0, True), (VAST_BYTES, 1, True), (LARGE_BYTES, 1, False)]
)
def test_long_keys_are_told_of_and_those_of_large_pods_held(
    size: int, long: int, made_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, classes = counting(monkeypatch), PodClasses()
    pod = a_pod("one").labels(x="y" * size).build()
    key = classes.key_of(pod)
    assert classes.long_keys == long
    assert classes.class_of(pod).key == key
    assert made == ["one"] * (1 + made_again)


def test_once_pods_are_told_apart_by_more_the_keys_of_large_ones_say_so() -> None:
    classes = PodClasses()
    one, two = (
        a_pod(name).labels(x="y" * 100_000).metadata(annotations={"a": name}).build()
        for name in ("one", "two")
    )
    assert classes.class_of(one) is classes.class_of(two)
    classes.tell_apart_by(["a"])
    assert classes.class_of(two) is not classes.class_of(one), "the one asked for last, too"


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
    classes.tell_apart_by(("colour",))
    assert len({classes.class_of(pod).number for pod in (plain, short, patient)}) == 1

    classes.tell_apart_by_deadlines()

    found = [classes.class_of(pod) for pod in (patient, short, plain)]
    assert len({cls.number for cls in found}) == 3
    assert not found[2].told
    longer = a_pod("longer").spec(activeDeadlineSeconds=61).build()
    assert classes.class_of(longer) is not found[1]


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


def test_a_key_is_the_same_whoever_makes_it() -> None:
    """Of a placed pod whose annotations and status count."""
    classes = PodClasses()
    classes.tell_apart_by(("colour",))
    told = {"name": "c0", "resources": {"requests": {"cpu": "2"}}}
    pod = a_pod().metadata(annotations={"colour": "red"}).on("n1").status(containerStatuses=[told])
    assert classes.key_of(pod.build()) == classes.class_of(pod.build()).key
    assert classes.class_of(pod.build()).tells_of_resize


@pytest.mark.parametrize(
    ("status", "tells"),
    [
        ({}, False),
        ({"containerStatuses": [{"name": "c0"}]}, False),
        ({"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "2"}}]}, False),
        ({"containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "2"}}}]}, True),
        ({"initContainerStatuses": [{"name": "i0", "resources": {}}]}, True),
        ({"resources": {"requests": {"cpu": "2"}}}, True),
        ({"allocatedResources": {"cpu": "2"}}, False),
    ],
)
def test_a_status_that_tells_of_resources_has_a_say_in_what_a_placed_pod_holds(
    status: dict[str, Any], tells: bool
) -> None:
    """What is allocated counts beside `resources` alone: without them no container, and no pod as
    a whole, holds anything else than it asks for.
    """
    classes = PodClasses()
    placed = classes.class_of(a_pod().requests(cpu="1").on("n1").status(**status).build())
    assert placed.tells_of_resize is tells
    assert (placed is classes.class_of(a_pod().requests(cpu="1").build())) is not tells
    waiting = a_pod("waits").requests(cpu="1").status(**status).build()
    assert not classes.class_of(waiting).tells_of_resize


def test_a_placed_pod_counts_as_another_by_its_start_and_by_what_amounts_are_told_by() -> None:
    classes = PodClasses()

    def version(started: str = "", **annotations: str) -> Pod:
        start = {"startTime": f"2026-01-01T00:00:0{started}Z"} if started else {}
        return a_pod().on("n1").metadata(annotations=annotations or None).status(**start).build()

    plain, red, both = version(), version(colour="red"), version(colour="red", size="9")
    assert classes.moved(plain, red) == 0
    classes.amounts_are_told_by(["colour"])
    classes.amounts_are_told_by(["size"])
    assert classes.moved(plain, version(other="x")) == 0
    assert classes.moved(red, version(colour="red", other="x")) == 0
    for old, new in ((plain, red), (red, plain), (red, both), (both, red)):
        assert classes.moved(old, new) == AMOUNTS
    assert classes.moved(red, version("1", colour="red")) == START_TIMES
    assert classes.moved(version("1"), version("2", colour="red")) == START_TIMES | AMOUNTS


def test_without_a_budget_nobody_counts_what_large_pods_cost() -> None:
    classes = PodClasses()
    for _ in range(3):
        classes.class_of(a_large_pod("one")).charge()
