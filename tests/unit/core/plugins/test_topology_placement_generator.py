"""Which parts of a cluster a group may be put into."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.placements import EVERYWHERE, Placement
from asched.core.framework.status import Code, Status
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.plugins.topology_placement_generator import TopologyPlacementGenerator
from tests.builders import a_node, a_pod

RACK = "example.com/rack"


def a_world(**racks: str | None) -> Cluster:
    """Nodes by name with their racks; None for a node without one."""
    cluster = Cluster()
    for name, rack in racks.items():
        node = a_node(name)
        cluster.apply(Seen(NODE, (node if rack is None else node.labels({RACK: rack})).build()))
    return cluster


def a_group(key: str | None = RACK) -> PodGroup:
    spec = {} if key is None else {"schedulingConstraints": {"topology": [{"key": key}]}}
    return decode(PodGroup, {"metadata": {"namespace": "default", "name": "crew"}, "spec": spec})


def offered(cluster: Cluster, parent: Placement = EVERYWHERE) -> dict[str, list[str]] | Status:
    """Name of each placement to its nodes."""
    plugin = TopologyPlacementGenerator(cluster)
    found = plugin.generate_placements("default/crew", parent)
    if isinstance(found, Status):
        return found
    return {
        one.name: [
            node.name
            for node, belongs in zip(
                cluster.nodes.node_at, one.mask(cluster.nodes).tolist(), strict=True
            )
            if node is not None and belongs
        ]
        for one in found
    }


def place(cluster: Cluster, name: str, node: str) -> None:
    member = a_pod(name).spec(schedulingGroup={"podGroupName": "crew"}).on(node)
    cluster.apply(Seen(POD, member.build()))


def test_each_value_of_the_label_is_a_placement_and_nodes_without_it_are_in_none() -> None:
    cluster = a_world(n1="b", n2="a", n3="b", n4=None)
    cluster.apply(Seen(POD_GROUP, a_group()))

    assert offered(cluster) == {"a": ["n2"], "b": ["n1", "n3"]}


def test_an_empty_value_is_a_value() -> None:
    cluster = a_world(n1="", n2=None)
    cluster.apply(Seen(POD_GROUP, a_group()))

    assert offered(cluster) == {"": ["n1"]}


def test_nodes_that_went_are_in_no_placement() -> None:
    cluster = a_world(n1="a", n2="b", n3="b")
    cluster.apply(Seen(POD_GROUP, a_group()))
    offered(cluster)
    for name in ("n1", "n3"):
        cluster.apply(Gone(NODE, a_node(name).build()))

    assert offered(cluster) == {"b": ["n2"]}


def test_a_group_without_a_constraint_may_go_everywhere() -> None:
    cluster = a_world(n1="a", n2=None)
    cluster.apply(Seen(POD_GROUP, a_group(key=None)))
    plugin = TopologyPlacementGenerator(cluster)

    assert plugin.generate_placements("default/crew", EVERYWHERE) == (EVERYWHERE,)


def test_a_group_that_has_a_place_stays_in_its_domain() -> None:
    cluster = a_world(n1="a", n2="b", n3="b")
    cluster.apply(Seen(POD_GROUP, a_group()))
    place(cluster, "first", "n3")

    assert offered(cluster) == {"b": ["n2", "n3"]}


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (("n1", "n2"), "more than 1 domain found for pod group: a, b"),
        (("n4",), "no topology domain found for pod default/p0"),
        (
            ("gone",),
            'getting node for pod default/p0: nodeinfo not found for node name "gone"',
        ),
    ],
    ids=["two domains", "no label", "no node"],
)
def test_a_group_whose_domain_nobody_can_tell_fails(nodes: tuple[str, ...], why: str) -> None:
    cluster = a_world(n1="a", n2="b", n4=None)
    cluster.apply(Seen(POD_GROUP, a_group()))
    for number, node in enumerate(nodes):
        place(cluster, f"p{number}", node)

    status = offered(cluster)

    assert isinstance(status, Status)
    assert status.code is Code.ERROR
    assert status.message == f"cannot determine domain for already scheduled pods: {why}"


def test_a_group_that_nobody_knows_fails() -> None:
    status = offered(a_world(n1="a"))

    assert isinstance(status, Status)
    assert status.message == 'podgroup.scheduling.k8s.io "crew" not found'
