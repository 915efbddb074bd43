"""A pod's life in the cluster: pending, assumed, placed, orphaned, gone; each step counted once."""

from typing import Any

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.model.kinds import NODE, POD
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending

ONE = 1000


def cpu(cluster: Cluster, node: str = "n1") -> tuple[int, int]:
    """(milli-CPU asked for, pods) on a node."""
    row, read = cluster.nodes.row_of[node], cluster.nodes.columns.read
    return int(read("requested")[0, row]), int(read("pod_count")[row])


def web(name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu="1")


def see(cluster: Cluster, *built: PodBuilder | NodeBuilder) -> list[Any]:
    changes = []
    for one in built:
        kind = POD if isinstance(one, PodBuilder) else NODE
        changes += cluster.apply(Seen(kind, one.build()))
    return changes


def test_the_api_knows_better_where_a_pod_is() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[web()])
    cluster.assume(pending(cluster, web()), "n1")
    see(cluster, web().on("n2"))
    assert (cpu(cluster, "n1"), cpu(cluster, "n2")) == ((0, 0), (ONE, 1))
    assert not cluster.is_assumed("uid-web")
    assert recount(cluster) == []


def test_another_pod_of_the_same_name_takes_the_place_of_the_first() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    changes = see(cluster, web().metadata(uid="anew"))
    assert [(s.old and s.old.uid, s.new and s.new.uid) for s in changes] == [
        ("uid-web", None),
        (None, "anew"),
    ]
    assert (cpu(cluster), cluster.placed) == ((0, 0), {})
    assert cluster.pods_seen["default/web"].uid == "anew"


def test_an_assumed_pod_that_goes_without_a_node_is_given_back_by_its_cycle() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web()])
    cluster.assume(pending(cluster, web()), "n1")
    (change,) = cluster.apply(Gone(POD, web().build()))
    assert (change.old.uid, change.new) == ("uid-web", None)
    assert cluster.is_assumed("uid-web")


def versioned(name: str, version: str, uid: str = "") -> PodBuilder:
    return web(name).metadata(resourceVersion=version, uid=uid or f"uid-{name}")


def listed(*pods: PodBuilder) -> Listed:
    return Listed(POD, tuple(pod.build() for pod in pods))


def test_in_a_list_the_same_version_of_another_object_is_another_object() -> None:
    cluster = a_cluster(a_node("n1"))
    see(cluster, versioned("web", "1").on("n1"))
    cluster.apply(listed(versioned("web", "1", uid="anew")))
    assert (cluster.pods_seen["default/web"].uid, cpu(cluster)) == ("anew", (0, 0))


def test_nodes_that_a_list_leaves_out_are_gone() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    cluster.apply(Listed(NODE, (a_node("n2").build(), a_node("n3").build())))
    assert sorted(cluster.nodes.row_of) == ["n2", "n3"]
