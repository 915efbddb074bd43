"""What a pod's claims are given, and why they are not."""

from asched.core.framework.status import Status
from asched.core.model.kinds import RESOURCE_SLICE
from asched.core.plugins.devices.allocation import ClaimDemand, allocated
from asched.core.plugins.devices.binding import Reserved
from tests.core.dra.worlds import a_device, a_slice, asks
from tests.core.plugins.dra_world import DraWorld, a_claim_object, a_pod


def given(world: DraWorld, *claims: str, node: str = "n1", number: int = 0) -> Reserved | Status:
    data = world.plugin.pre_filter(world.info(a_pod(*claims))).data
    assert isinstance(data, ClaimDemand)
    target = world.cluster.node_of(node)
    assert target is not None
    return allocated(world.plugin._ledger, world.plugin._book, data, target, number)


def devices(found: Reserved | Status) -> list[list[str]]:
    assert isinstance(found, Reserved), found
    return [[one.device for one in result.devices.results or ()] for _, result in found.allocations]


def test_the_first_solution_or_the_one_of_a_number() -> None:
    world = DraWorld(a_claim_object("c"), a_claim_object("d"))
    kinds = [a_device(name, attributes={"size": name}) for name in "xy"]
    world.see(RESOURCE_SLICE, a_slice(*kinds))

    assert devices(given(world, "c", "d")) == [["x"], ["y"]]
    assert devices(given(world, "c", "d", number=1)) == [["y"], ["x"]]
    assert given(world, "c", "d", number=2) == given(world, "c", node="n2")


def test_why_there_is_none() -> None:
    world = DraWorld(a_claim_object("c"), a_claim_object("broken", asks("no.such")))

    found = given(world, "c", node="n2")
    assert isinstance(found, Status)
    assert found.message == "claim allocation not found for node"
    found = given(world, "broken")
    assert isinstance(found, Status)
    assert "CEL" in found.message
