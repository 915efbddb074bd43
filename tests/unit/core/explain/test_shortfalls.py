"""How much is missing, on which node, and which taints are in the way."""

from asched.core.model.requests import written
from asched.core.model.taint import spelt
from asched.insight.explain.shortfalls import (
    missing_everywhere,
    missing_on,
    missing_shares,
    taints_in_the_way,
    untolerated,
)
from tests.builders import a_cluster, a_node, a_pod, pending

CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


def test_what_no_node_has_enough_of_is_told_with_the_most_that_one_has() -> None:
    cluster = a_cluster(
        a_node("n1").allocatable(cpu="2", memory="8Gi"),
        a_node("n2").allocatable(cpu="1300m", memory="64Gi"),
        pods=[a_pod("other").requests(cpu="1").on("n1")],
    )
    info = pending(cluster, a_pod().requests(cpu="64", memory="16Gi"))
    assert missing_everywhere(cluster, info) == [
        {"resource": "cpu", "asked": "64", "mostFree": "1300m", "node": "n2"}
    ]
    assert missing_on(cluster, info, 0) == {
        "cpu": {"asked": "64", "free": "1"},
        "memory": {"asked": "16Gi", "free": "8Gi"},
    }
    assert missing_on(cluster, info, 1).keys() == {"cpu"}
    assert missing_shares(cluster, info).tolist() == [63 / 64 + 0.5, (64 - 1.3) / 64]


def test_a_full_node_misses_a_place_and_an_overdrawn_one_no_more_than_all() -> None:
    cluster = a_cluster(
        a_node("n1").allocatable(cpu="1", pods="1"),
        pods=[a_pod("other").requests(cpu="4").on("n1")],
    )
    info = pending(cluster, a_pod().requests(cpu="2"))
    assert missing_on(cluster, info, 0) == {
        "cpu": {"asked": "2", "free": "0"},
        "pods": {"asked": "1", "free": "0"},
    }
    assert missing_shares(cluster, info).tolist() == [2.0]


def test_as_much_as_is_left_is_enough_and_less_than_nothing_is_nothing() -> None:
    cluster = a_cluster(
        a_node("n1").allocatable(cpu="3", memory="1Gi", pods="2"),
        pods=[a_pod("other").requests(cpu="1", memory="2Gi").on("n1")],
    )
    enough = pending(cluster, a_pod().requests(cpu="2", memory="0"))
    assert missing_everywhere(cluster, enough) == []
    assert missing_on(cluster, enough, 0) == {}
    assert missing_shares(cluster, enough).tolist() == [0.0]

    overdrawn = pending(cluster, a_pod().requests(cpu="2001m", memory="1"))
    assert missing_everywhere(cluster, overdrawn) == [
        {"resource": "cpu", "asked": "2001m", "mostFree": "2", "node": "n1"},
        {"resource": "memory", "asked": "1", "mostFree": "0", "node": "n1"},
    ]
    assert missing_on(cluster, overdrawn, 0).keys() == {"cpu", "memory"}


def test_a_cordon_that_is_written_as_a_taint_as_well_keeps_off_once() -> None:
    cluster = a_cluster(
        a_node("n1").cordoned().taints(CORDON), a_node("n2").cordoned(), a_node("n3").taints(CORDON)
    )
    assert taints_in_the_way(cluster, pending(cluster, a_pod())) == [{"taint": CORDON, "nodes": 3}]


def test_taints_are_told_by_how_many_nodes_have_them() -> None:
    cluster = a_cluster(
        a_node("n1").taints("team=a:NoSchedule soft=x:PreferNoSchedule"),
        a_node("n2").taints("team=a:NoSchedule gpu:NoExecute"),
        a_node("n3").cordoned(),
        a_node("n4").taints("spot:NoSchedule"),
    )
    for name, wanted in (("n2", "gpu:NoExecute"), ("n3", CORDON)):
        node = cluster.nodes.node_at[cluster.nodes.row_of[name]]
        assert node is not None
        found = untolerated(node, a_pod().tolerates("team=a:NoSchedule").build())
        assert [spelt(taint) for taint in found] == [wanted]
        assert untolerated(node, a_pod().build())
    info = pending(cluster, a_pod().tolerates("spot:NoSchedule"))
    assert taints_in_the_way(cluster, info) == [
        {"taint": "team=a:NoSchedule", "nodes": 2},
        {"taint": "gpu:NoExecute", "nodes": 1},
        {"taint": "node.kubernetes.io/unschedulable:NoSchedule", "nodes": 1},
    ]


def test_amounts_are_written_exactly() -> None:
    assert [written("cpu", n) for n in (0, 250, 2000)] == ["0", "250m", "2"]
    assert [written("memory", n) for n in (0, 1025, 3 << 20, 1 << 31)] == [
        "0",
        "1025",
        "3Mi",
        "2Gi",
    ]
    assert written("nvidia.com/gpu", 8) == "8"
