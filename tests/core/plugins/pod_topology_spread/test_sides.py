"""When a side has moved, and counters that went in between."""

from asched.core.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, own_constraints
from asched.core.plugins.pod_topology_spread.domains import DomainsMemory
from asched.core.plugins.pod_topology_spread.sides import Side
from tests.topology_world import ZONE, World, a_node, a_pod, spread


def a_side(world: World) -> Side:
    pod = a_pod(
        "new", "app=web", topologySpreadConstraints=[spread("zone"), spread("zone", on=None)]
    )
    cls = world.info(pod).cls
    memory = DomainsMemory(world.cluster)
    constraints = own_constraints(pod, DO_NOT_SCHEDULE)
    return Side(world.cluster, memory, cls, constraints, frozenset({ZONE}))


def test_a_side_is_moved_by_what_is_counted_alone() -> None:
    world = World(a_node("m", "zone=a"), a_node("n", "zone=a"))
    side = a_side(world)
    assert side.moved_rows() is None  # nobody has looked yet
    world.see(a_pod("other", "app=db", node="n"))
    assert not side.moved_rows()
    world.see(a_pod("one", "app=web", node="n"))
    assert list(side.moved_rows() or ()) == [1]
    assert not side.moved_rows()
