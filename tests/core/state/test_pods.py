"""What equal pods have in common: amounts, ports, claims; and when they differ in labels alone."""

from typing import Any
from weakref import ref

import pytest

from asched.core.state.budget import Budget, OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.pods import LARGE_BYTES, PodClass
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, pending

CLUSTER = a_cluster(a_node("n1"))


def a_class(pod: PodBuilder, cluster: Cluster = CLUSTER) -> PodClass:
    return pending(cluster, pod).cls


def test_what_nobody_counts_is_left_out_of_what_a_node_loses() -> None:
    asked = {"cpu": "1", "memory": "0", "ephemeral-storage": "1Ki", "nvidia.com/gpu": "2"}
    cls = a_class(a_pod().requests({**asked, "pods": "3", "odd": "1"}))
    assert cls.accounted == {"cpu": 1000, "ephemeral-storage": 1024, "nvidia.com/gpu": 2}
    assert cls.requests["memory"] == 0


def test_amounts_that_cannot_be_read_count_nowhere() -> None:
    cls = a_class(a_pod().requests(cpu="one"))
    assert cls.accounted == {}
    assert cls.accounted_nonzero == (0, 0)


@pytest.mark.parametrize(
    ("pod", "nonzero"),
    [
        (a_pod().requests(cpu="2", memory="1Ki"), (2000, 1024)),
        (a_pod().requests(cpu="0", memory="0"), (0, 0)),
        (a_pod(), (100, 200 << 20)),
        (a_pod().requests(cpu="2"), (2000, 200 << 20)),
        (a_pod().requests(memory="1Ki"), (100, 1024)),
        (a_pod().requests(cpu="2", memory="1Ki").container(), (2100, 1024 + (200 << 20))),
        (a_pod().spec(containers=[]), (0, 0)),
    ],
)
def test_silent_containers_count_by_default_for_scoring(
    pod: PodBuilder, nonzero: tuple[int, int]
) -> None:
    cls = a_class(pod)
    assert cls.scoring_nonzero == nonzero
    assert cls.accounted_nonzero == nonzero


def test_an_overhead_is_lost_by_the_node_and_scored() -> None:
    cls = a_class(a_pod().requests(cpu="1", memory="1Ki").spec(overhead={"cpu": "500m"}))
    assert not cls.is_simple
    assert cls.accounted == {"cpu": 1500, "memory": 1024}
    assert cls.accounted_nonzero == (1500, 1024)


def test_ports_are_those_of_containers_and_sidecars() -> None:
    pod = a_pod().host_port(1).host_port(443, "UDP", "10.0.0.1")
    pod.first["ports"].append({"containerPort": 9})
    pod.init(sidecar=True).init()
    for port, container in zip((81, 82), pod.json["spec"]["initContainers"], strict=True):
        container["ports"] = [{"containerPort": 1, "hostPort": port}]
    assert a_class(pod).host_ports == (
        ("0.0.0.0", "TCP", 1),
        ("10.0.0.1", "UDP", 443),
        ("0.0.0.0", "TCP", 81),
    )


def test_claims_are_those_that_volumes_name() -> None:
    claim = {"claimName": "data"}
    volumes = [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "persistentVolumeClaim": claim},
        {"name": "c", "persistentVolumeClaim": {"claimName": "logs"}},
    ]
    assert a_class(a_pod().spec(volumes=volumes)).claim_names == ("data", "logs")


@pytest.mark.parametrize(
    ("affinity", "has"),
    [
        (None, False),
        ({"nodeAffinity": {}}, False),
        ({"podAffinity": {}}, True),
        ({"podAntiAffinity": {}}, True),
    ],
)
def test_an_empty_stanza_is_an_affinity(affinity: Any, has: bool) -> None:
    pod = a_pod() if affinity is None else a_pod().spec(affinity=affinity)
    assert a_class(pod).has_affinity == has


def test_classes_that_differ_in_labels_alone_are_relabelled() -> None:
    plain = a_class(a_pod().requests(cpu="1"))
    labelled = a_class(a_pod().requests(cpu="1").labels(a="b"))
    assert plain is not labelled
    assert plain.is_relabelled(labelled)
    assert labelled.is_relabelled(plain)
    assert not plain.is_relabelled(a_class(a_pod().requests(cpu="2").labels(a="b")))


def test_what_was_derived_from_an_equal_spec_is_taken_over() -> None:
    old, new = a_class(a_pod().host_port(80)), a_class(a_pod().host_port(80).labels(a="b"))
    ports, own = old.host_ports, new.claim_names
    new.take_over(old)
    assert new.host_ports is ports
    assert new.claim_names is own
    assert "label_set" not in {name for name in vars(new) if vars(new)[name] is old.label_set}
    assert new.label_set.labels == {"a": "b"}


class Memory:
    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def forget(self, number: int, /) -> None:
        self.forgotten.append(number)


def test_a_class_that_goes_is_forgotten_by_whoever_knew_it() -> None:
    memory, gone = Memory(), Memory()
    labels = CLUSTER.classes.label_set_of(a_pod().build())
    cls = PodClass(17, b"", a_pod().build(), labels, budget=Budget())
    cls.known_by += [ref(memory), ref(gone)]
    del gone
    del cls
    assert memory.forgotten == [17]


@pytest.mark.parametrize("at", [0, 1])
def test_a_resize_in_place_is_more_than_a_label(at: int) -> None:
    labels = CLUSTER.classes.label_set_of(a_pod().build())
    pod = a_pod().build()
    key = a_class(a_pod()).key
    both = [PodClass(1, key, pod, labels, budget=Budget(), tells_of_resize=n == at) for n in (0, 1)]
    assert not both[0].is_relabelled(both[1])


def test_sidecars_of_a_pod_count_as_its_containers_do() -> None:
    asked = {"cpu": "1", "memory": "1Ki"}
    pod = a_pod().requests(asked).init(sidecar=True, **asked)
    assert a_class(pod).accounted == {"cpu": 2000, "memory": 2048}
    assert a_class(pod).scoring_nonzero == (2000, 2048)
    of_pod = a_pod().requests(asked).spec(resources={"requests": {"cpu": "5", "memory": "9Ki"}})
    assert a_class(of_pod).accounted_nonzero == (5000, 9216), "what the pod as a whole asks for"


def test_what_equal_pods_hold_is_no_affair_of_the_status_of_one_that_has_no_node() -> None:
    """Like that of a running pod which somebody asks about as if it were waiting."""
    cluster = a_cluster(a_node("n1"))
    told = {"name": "c0", "resources": {"requests": {"cpu": "2", "memory": "9"}}}
    asked = {"cpu": "1", "memory": "5"}
    runs = a_pod("runs").requests(asked).on("n1").status(containerStatuses=[told]).build()
    first = cluster.classes.info_of(runs.on("")).cls
    assert first is a_class(a_pod("waits").requests(asked), cluster)
    assert first.accounted == {"cpu": 1000, "memory": 5}
    assert first.accounted_nonzero == (1000, 5)
    assert cluster.classes.info_of(runs).cls.accounted == {"cpu": 2000, "memory": 9}


def test_large_pods_are_charged_by_their_size_and_small_ones_are_not() -> None:
    cluster = a_cluster()
    small = a_class(a_pod(), cluster)
    large = a_class(a_pod().metadata().spec(nodeSelector={"a": "x" * LARGE_BYTES}), cluster)
    cluster.budget.open(1)
    small.charge()
    assert cluster.budget.left == 1
    large.charge()
    assert -25 < cluster.budget.left < -20  # 64 KiB at 3,000 bytes a step
    with pytest.raises(OutOfTurn):
        large.charge()


def test_a_pod_says_where_it_is() -> None:
    cluster = a_cluster(a_node("n1"))
    info = pending(cluster, a_pod("web"))
    assert (info.row, info.node_name, info.assumed, info.state) == (-1, "", False, None)
    assert repr(info) == "<PodInfo default/web on ->"
    cluster.assume(info, "n1")
    assert repr(info) == "<PodInfo default/web on n1 assumed>"
