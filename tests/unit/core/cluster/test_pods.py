"""What equal pods have in common: amounts, ports, claims; and when they differ in labels alone."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodClass
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, pending

CLUSTER = a_cluster(a_node("n1"))


def a_class(pod: PodBuilder, cluster: Cluster = CLUSTER) -> PodClass:
    return pending(cluster, pod).cls


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


@pytest.mark.parametrize("at", [0, 1])
def test_a_resize_in_place_is_more_than_a_label(at: int) -> None:
    labels = CLUSTER.classes.label_set_of(a_pod().build())
    pod = a_pod().build()
    key = a_class(a_pod()).key
    both = [PodClass(1, key, pod, labels, has_resize=n == at) for n in (0, 1)]
    assert not both[0].is_relabelled(both[1])


def test_sidecars_of_a_pod_count_as_its_containers_do() -> None:
    asked = {"cpu": "1", "memory": "1Ki"}
    pod = a_pod().requests(asked).init(sidecar=True, **asked)
    assert a_class(pod).accounted == {"cpu": 2000, "memory": 2048}
    assert a_class(pod).scoring_nonzero == (2000, 2048)
    of_pod = a_pod().requests(asked).spec(resources={"requests": {"cpu": "5", "memory": "9Ki"}})
    assert a_class(of_pod).accounted_nonzero == (5000, 9216), "what the pod as a whole asks for"
