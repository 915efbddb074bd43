"""NodeName: the named node and no other."""

from asched.core.plugins.node_name import NodeName
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending


def test_a_pod_that_names_no_node_fits_on_all() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))

    assert NodeName().filter(pending(cluster, a_pod()), all_rows(cluster), None).tolist() == [0, 0]


def test_a_pod_that_names_one_fits_there_only() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    pod = pending(cluster, a_pod().on("n2"))

    assert NodeName().filter(pod, all_rows(cluster), None).tolist() == [1, 0]


def test_a_name_nobody_has_fits_nowhere() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    pod = pending(cluster, a_pod().on("n3"))

    assert NodeName().filter(pod, all_rows(cluster), None).tolist() == [1, 1]
    assert NodeName().explain(pod, 1).message == "node(s) didn't match the requested node name"
