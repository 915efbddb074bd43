"""Sums of what pods ask for: exact, never wrapped, as large as what pods and nodes name now."""

import random

import pytest

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from asched.core.model.quantity import INT64_MAX
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod

HUGE = str(INT64_MAX)
GPU = "example.com/gpu"


def a_huge(name: str, amount: str = HUGE) -> PodBuilder:
    return a_pod(name).requests(cpu="1", memory=amount).on("n1")


def show(cluster: Cluster, *objects: NodeBuilder | PodBuilder) -> None:
    for builder in objects:
        kind = POD if isinstance(builder, PodBuilder) else NODE
        cluster.apply(Seen(kind, builder.build()))


def requested(cluster: Cluster, resource: str, row: int = 0) -> int:
    index = cluster.nodes.find_resource(resource)
    assert index is not None
    return int(cluster.nodes.columns.read("requested")[index, row])


def test_sums_stay_at_the_largest_amount_and_come_back_exactly() -> None:
    cluster = a_cluster(a_node("n1"))
    pods = [a_huge("a"), a_huge("b", "7"), a_huge("c"), a_huge("d", "5Ei")]
    show(cluster, *pods, a_pod("e").requests({GPU: "1"}).on("n1"))
    amounts = cluster.nodes.pod_amounts
    assert requested(cluster, "memory") == INT64_MAX
    assert (len(amounts.beyond(0)), len(amounts.unlisted(0)), amounts.size) == (2, 1, 3)
    assert int(cluster.nodes.columns.read("nonzero")[1, 0]) == INT64_MAX
    assert recount(cluster) == []

    for pod in (pods[0], pods[3], pods[2]):
        cluster.apply(Gone(POD, pod.build()))
        assert recount(cluster) == []
    assert requested(cluster, "memory") == 7
    assert (amounts.size, dict(amounts.rows_beyond)) == (1, {})


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_coming_and_going_ends_where_it_began(seed: int) -> None:
    rng = random.Random(seed)
    cluster = a_cluster(a_node("n1"))
    amounts = ["1", "4Ei", HUGE, str(INT64_MAX - 1), "8Ei", "1Gi"]
    here: list[PodBuilder] = []
    for number in range(80):
        if here and rng.random() < 0.5:
            cluster.apply(Gone(POD, here.pop(rng.randrange(len(here))).build()))
        else:
            here.append(a_huge(f"p{number}", rng.choice(amounts)))
            show(cluster, here[-1])
        total = sum(min(info.cls.requests["memory"], INT64_MAX) for info in cluster.placed.values())
        assert requested(cluster, "memory") == min(total, INT64_MAX)


def test_a_resource_counts_as_soon_as_a_node_names_it_and_goes_with_the_last() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    show(cluster, a_pod("a").requests({GPU: "3"}).on("n1"))
    show(
        cluster, a_pod("b").requests({GPU: HUGE}).on("n2"), a_pod("c").requests({GPU: "2"}).on("n2")
    )
    assert cluster.nodes.find_resource(GPU) is None

    show(cluster, a_node("n1").allocatable({GPU: "8"}))
    assert requested(cluster, GPU) == 3
    assert requested(cluster, GPU, 1) == INT64_MAX
    width = cluster.nodes.columns.size_of("R")

    show(cluster, a_node("n1"))
    assert cluster.nodes.find_resource(GPU) is None
    assert cluster.nodes.pod_amounts.unlisted(1) == {GPU: INT64_MAX + 2}
    show(cluster, a_node("n2").allocatable({"example.com/other": "4"}))
    assert cluster.nodes.columns.size_of("R") == width
    assert requested(cluster, "example.com/other", 1) == 0
    assert recount(cluster) == []


def test_sums_of_amounts_below_nought_stay_in_64_bits_and_come_back_exactly() -> None:
    """An API server refuses them; that of a test, or another one, may not."""
    cluster = a_cluster(a_node("n1"))
    pods = [a_huge("a", f"-{HUGE}"), a_huge("b", f"-{HUGE}"), a_huge("c", "-7")]
    show(cluster, *pods)
    assert requested(cluster, "memory") == -INT64_MAX
    assert recount(cluster) == []

    for pod in pods[:2]:
        cluster.apply(Gone(POD, pod.build()))
        assert recount(cluster) == []
    assert requested(cluster, "memory") == -7
