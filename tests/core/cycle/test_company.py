"""Pods that are only supposed: none has its place before all have."""

from asched.core.cycle.company import Company
from asched.core.framework.status import Code
from asched.core.state.cluster import Cluster
from tests.builders import a_cluster, a_node, a_pod, pending


def assumed(cluster: Cluster, name: str) -> str:
    info = pending(cluster, a_pod(name))
    cluster.assume(info, "n1")
    return info.pod.uid


def test_the_last_one_lets_all_of_them_go() -> None:
    cluster = a_cluster(a_node("n1"))
    company = Company(cluster, 3)
    told = [company.permit(assumed(cluster, name)) for name in "abc"]
    assert [status.code for status in told] == [Code.WAIT, Code.WAIT, Code.SUCCESS]


def test_a_pod_that_is_tried_again_counts_once() -> None:
    cluster = a_cluster(a_node("n1"))
    company = Company(cluster, 2)
    first = assumed(cluster, "a")
    assert company.permit(first).code is Code.WAIT
    assert company.permit(first).code is Code.WAIT


def test_a_place_that_was_given_back_counts_no_longer() -> None:
    cluster = a_cluster(a_node("n1"))
    company = Company(cluster, 2)
    info = pending(cluster, a_pod("a"))
    cluster.assume(info, "n1")
    company.permit(info.pod.uid)
    cluster.forget(info)
    assert company.permit(assumed(cluster, "b")).code is Code.WAIT
    assert company.permit(assumed(cluster, "c")).code is Code.SUCCESS
