"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from asched.core.model.pod import Pod
from asched.core.state.pod_classes import (
    CLASS_BYTES,
    RECENT_BYTES_MAX,
    PodClasses,
)
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
