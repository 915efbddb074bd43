"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from asched.core.cluster.pod_classes import PodClasses
from tests.builders import a_pod


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
    assert not found[2].annotations_key
    longer = a_pod("longer").spec(activeDeadlineSeconds=61).build()
    assert classes.class_of(longer) is not found[1]


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
