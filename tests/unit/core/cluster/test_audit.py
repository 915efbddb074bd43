"""The audit stays silent while counts are right, and names what is wrong when they are not."""

import pytest

from asched.core.cluster.audit import compare, recount, recount_row
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from tests.builders import a_cluster, a_node, a_pod
from tests.conformance.contract.worlds import a_world, changes


@pytest.mark.parametrize("seed", range(4))
def test_a_cluster_that_lived_through_changes_counts_like_a_fresh_one(seed: int) -> None:
    world = a_world(seed)
    for _ in changes(world, seed, 20):
        assert recount(world.cluster) == []


def test_an_amount_that_drifted_is_named_with_its_node_and_resource() -> None:
    cluster = a_cluster(a_node("n1"), pods=[a_pod("web").requests(cpu="500m").on("n1")])
    cluster.nodes.columns.write["requested"][0, 0] += 1

    assert recount(cluster) == ["node n1, requested, cpu: kept 501, counted 500"]


def test_a_row_that_was_not_cleared_is_named() -> None:
    cluster = a_cluster(a_node("n1"))
    cluster.nodes.columns.write["pod_count"][7] = 1

    assert recount(cluster) == ["column pod_count: a row without a node is not zero"]


def test_an_object_missed_by_the_watch_is_named_on_either_side() -> None:
    old, new = a_node("old").build(), a_node("new").build()
    cluster = a_cluster(a_node("old"))

    assert compare(cluster, {NODE: [old]}) == []
    assert compare(cluster, {NODE: [new]}) == [
        "nodes new: exists only in the API",
        "nodes old: does not exist in the API",
    ]


def test_a_pod_on_another_node_than_the_api_says_is_named() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    cluster.apply(Seen(POD, a_pod("web").on("n1").build()))

    assert compare(cluster, {POD: [a_pod("web").on("n2").build()]}) == [
        "pod default/web: counted on 'n1', the API says 'n2'"
    ]


def test_pods_of_a_node_that_left_are_counted_among_the_orphans() -> None:
    cluster = a_cluster(a_node("n1"), pods=[a_pod("web").on("n1")])
    cluster.apply(Gone(NODE, a_node("n1").build()))

    assert recount(cluster) == []


@pytest.mark.parametrize("seed", range(3))
def test_each_row_of_a_cluster_that_lived_counts_like_a_fresh_one(seed: int) -> None:
    world = a_world(seed)
    for _ in changes(world, seed, 10):
        nodes = world.cluster.nodes
        for row in nodes.row_of.values():
            assert recount_row(world.cluster, row) == []


def test_a_row_that_drifted_is_named_and_others_are_not() -> None:
    pods = [a_pod("web").requests(cpu="500m").on("n1"), a_pod("db").on("n2")]
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=pods)
    cluster.nodes.columns.write["requested"][0, cluster.nodes.row_of["n1"]] += 1
    cluster.nodes.columns.write["pod_count"][cluster.nodes.row_of["n2"]] -= 1

    found = [recount_row(cluster, cluster.nodes.row_of[name]) for name in ("n1", "n2")]

    assert found == [
        ["node n1, requested, cpu: kept 501, counted 500"],
        ["node n2, pod_count: kept 0, counted 1"],
    ]
