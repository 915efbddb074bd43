import pytest

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.holds import HeldAmounts, HeldPlace
from asched.core.model.kinds import NODE, POD
from tests.builders import a_cluster, a_node, a_pod

ONE_CPU = HeldAmounts({"cpu": 1000, "memory": 1 << 30}, pods=1)


def amounts_on(cluster: Cluster, node: str) -> tuple[int, int, int]:
    """(milli-CPU, bytes, pods) that count as taken."""
    read, row = cluster.nodes.columns.read, cluster.nodes.row_of[node]
    cpu, memory = read("requested")[:2, row].tolist()
    return cpu, memory, int(read("pod_count")[row])


def test_held_room_counts_as_taken_until_it_is_dropped() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[a_pod().requests(cpu="2").on("n1")])

    cluster.holds.put("a", [HeldPlace(ONE_CPU, "n1"), HeldPlace(ONE_CPU, "n2")])

    assert amounts_on(cluster, "n1") == (3000, 1 << 30, 2)
    assert amounts_on(cluster, "n2") == (1000, 1 << 30, 1)
    assert recount(cluster) == []
    assert [place.node_name for place in cluster.holds.drop("a")] == ["n1", "n2"]
    assert amounts_on(cluster, "n1") == (2000, 0, 1)
    assert not cluster.holds


def test_a_node_takes_its_places_along_and_the_owner_is_looked_at() -> None:
    n1, n2 = a_node("n1"), a_node("n2")
    cluster = a_cluster(n1, n2)
    cluster.holds.put("a", [HeldPlace(ONE_CPU, "n1"), HeldPlace(ONE_CPU, "n2")])

    cluster.apply(Gone(NODE, n1.build()))

    hold = cluster.holds.of("a")
    assert hold is not None
    assert [place.node_name for place in hold.places] == ["n2"]
    assert list(cluster.holds.touched) == ["a"]
    assert recount(cluster) == []


@pytest.mark.parametrize(
    ("cpu", "touched"),
    [("2", []), ("3", []), ("4", ["a"])],
    ids=["beside it", "up to it", "on top of it"],
)
def test_an_owner_is_looked_at_when_somebody_lies_on_its_room(cpu: str, touched: list) -> None:
    cluster = a_cluster(a_node("n1").allocatable(cpu="4"))
    cluster.holds.put("a", [HeldPlace(ONE_CPU, "n1")])

    cluster.apply(Seen(POD, a_pod("stranger").requests(cpu=cpu).on("n1").build()))

    assert list(cluster.holds.touched) == touched
