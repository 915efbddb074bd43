"""What wakes a pod that found too little of something."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.framework.registrations import Hint
from asched.core.model.claim import DeviceClass
from asched.core.model.decode import decode
from asched.core.plugins.devices.amounts import Delegation
from asched.core.plugins.resources.fit_hints import FitHints
from tests.builders import Json, NodeBuilder, PodBuilder, a_cluster, a_node, a_pod

GPU = "example.com/gpu"
GPUS: Json = {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}}


def ask(at: int, cluster: Cluster, pod: PodBuilder, old: object, new: object) -> Hint:
    hint = FitHints(cluster, Delegation(cluster)).registrations()[at].hint
    assert hint is not None
    return hint(pod.build(), old, new)


def about_pod(old: PodBuilder, new: PodBuilder | None) -> Hint:
    waiting = a_pod().requests(cpu="1")
    return ask(0, a_cluster(), waiting, old.build(), new.build() if new else None)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("a placed pod goes", a_pod("a").on("n1"), None, Hint.QUEUE),
        ("a nominated one goes", a_pod("a").status(nominatedNodeName="n1"), None, Hint.QUEUE),
        ("one that waits goes", a_pod("a"), None, Hint.SKIP),
        ("it shrinks itself", a_pod().requests(cpu="2"), a_pod().requests(cpu="1"), Hint.QUEUE),
        (
            "another gives back what is wanted",
            a_pod("a").requests(cpu="2").on("n1"),
            a_pod("a").requests(cpu="1").on("n1"),
            Hint.QUEUE,
        ),
        (
            "another gives back something else",
            a_pod("a").requests(cpu="2", memory="2Gi").on("n1"),
            a_pod("a").requests(cpu="2", memory="1Gi").on("n1"),
            Hint.SKIP,
        ),
        (
            "another that never had it gives back something else",
            a_pod("a").requests(memory="2Gi").on("n1"),
            a_pod("a").requests(memory="1Gi").on("n1"),
            Hint.SKIP,
        ),
        (
            "one that waits shrinks",
            a_pod("a").requests(cpu="2"),
            a_pod("a").requests(cpu="1"),
            Hint.SKIP,
        ),
    ],
)
def test_pods(name: str, old: PodBuilder, new: PodBuilder | None, expected: Hint) -> None:
    assert about_pod(old, new) is expected


def n1(**amounts: str) -> NodeBuilder:
    return a_node("n1").offering_only(**({"cpu": "4", "memory": "8Gi", "pods": "10"} | amounts))


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("a new node that is large enough", None, n1(), Hint.QUEUE),
        ("a new node that is too small", None, n1(cpu="1"), Hint.SKIP),
        ("a new node without room for pods", None, n1(pods="0"), Hint.SKIP),
        ("it grows in what is wanted", n1(cpu="3"), n1(), Hint.QUEUE),
        ("it grows in pods", n1(pods="9"), n1(), Hint.QUEUE),
        ("it grows in something else", n1(memory="4Gi"), n1(), Hint.SKIP),
        ("it shrinks", n1(cpu="5"), n1(), Hint.SKIP),
        ("it grows and is still too small", n1(cpu="1"), n1(cpu="1500m"), Hint.SKIP),
        ("a new node that is just large enough", None, n1(cpu="2"), Hint.QUEUE),
        ("a new node with room for one", None, n1(pods="1"), Hint.QUEUE),
        ("it gets all it has", a_node("n1").status(allocatable=None), n1(), Hint.QUEUE),
        ("it loses all it had", n1(), a_node("n1").status(allocatable=None), Hint.SKIP),
        ("it offered none of it", a_node("n1").offering_only(pods="1"), n1(), Hint.QUEUE),
    ],
)
def test_nodes(name: str, old: NodeBuilder | None, new: NodeBuilder, expected: Hint) -> None:
    waiting = a_pod().requests(cpu="2")

    hint = ask(1, a_cluster(), waiting, old.build() if old else None, new.build())

    assert hint is expected


def test_a_node_that_devices_may_serve_always_helps() -> None:
    waiting = a_pod().requests({GPU: "1"})
    with_class = a_cluster(deviceclasses=[GPUS])

    assert ask(1, with_class, waiting, n1().build(), n1().build()) is Hint.QUEUE
    assert ask(1, a_cluster(), waiting, n1().build(), n1().build()) is Hint.SKIP
    offering = n1().allocatable({GPU: "1"}).build()  # of two that are wanted
    wanting = a_pod().requests({GPU: "2"})
    assert ask(1, with_class, wanting, None, offering) is Hint.SKIP


def test_device_classes() -> None:
    waiting = a_pod().requests({GPU: "1", "deviceclass.resource.kubernetes.io/nics": "1"})

    def about(old: Json | None, new: Json) -> Hint:
        decoded = decode(DeviceClass, old) if old else None
        return ask(2, a_cluster(), waiting, decoded, decode(DeviceClass, new))

    unnamed: Json = {"metadata": {"name": "gpus"}, "spec": {}}
    assert about(None, GPUS) is Hint.QUEUE
    assert about(unnamed, GPUS) is Hint.QUEUE
    assert about(GPUS, GPUS) is Hint.SKIP
    assert about(GPUS, unnamed) is Hint.SKIP
    assert about(None, unnamed) is Hint.SKIP
    assert about(None, {"metadata": {"name": "nics"}, "spec": {}}) is Hint.QUEUE


def test_nodes_without_an_ignored_resource_are_overlooked_by_the_hint() -> None:
    cluster = a_cluster()
    hints = FitHints(cluster, Delegation(cluster), lambda name: name == GPU)
    (registration,) = hints.extra_events()
    assert registration.hint is not None
    node = a_node("n1").build()

    assert registration.hint(a_pod().requests({GPU: "1"}).build(), None, node) is Hint.QUEUE
    assert registration.hint(a_pod().requests(cpu="1").build(), None, node) is Hint.SKIP
