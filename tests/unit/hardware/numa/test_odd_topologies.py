"""What a node's agent tells that makes no sense is passed over, and no other node hears of it."""

import pytest

from asched.core.model.decode import decode
from asched.hardware.numa.topology import NodeResourceTopology
from asched.hardware.numa.zones import Zones
from tests.unit.hardware.numa.worlds import a_topology, a_zone


def told(*zones: dict[str, object]) -> NodeResourceTopology:
    return decode(NodeResourceTopology, a_topology("n1", *zones))


@pytest.mark.parametrize("name", ["node-" + "9" * 5_000, "node-²", "node-", "node--1", "node-64"])
def test_a_zone_of_no_number_is_none(name: str) -> None:
    zones = Zones(1, 1)
    zones.write(0, told({**a_zone(1, cpu="2"), "name": name}, a_zone(0, cpu="1")), ())
    assert zones.available["cpu"].tolist() == [[1000]]
