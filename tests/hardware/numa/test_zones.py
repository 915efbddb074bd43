"""Zones as columns, and requests that fit into one of them, case by case."""

from typing import Any

import numpy as np
import pytest

from asched.hardware.numa.match import NodeResourceTopologyMatch, NodeResourceTopologyMatchArgs
from asched.hardware.numa.topology import TopologyManager, Zone
from asched.hardware.numa.zones import FARTHEST, NOT_LISTED, Zones
from tests.builders import all_rows
from tests.hardware.numa.worlds import GPU, Json, World, a_node, a_pod, a_topology, a_zone

MANAGER = TopologyManager("single-numa-node", "pod", 4)


def test_a_row_has_its_zones_whoever_had_more_before() -> None:
    zones = Zones(0, 1)
    zones.write(
        2, (Zone(0, {"cpu": 5}, {0: 10, 3: 20}), Zone(3, {"memory": -7}, {0: 20})), MANAGER, ()
    )
    assert (zones.size, zones.width, zones.count.tolist()) == (3, 2, [0, 0, 2])
    assert zones.zones_max.tolist() == [8, 8, 4]
    assert zones.is_single.tolist() == zones.is_pod_scope.tolist() == [False, False, True]
    assert zones.of("cpu").tolist() == [[NOT_LISTED, NOT_LISTED, 5], [NOT_LISTED] * 3]
    assert zones.of("memory")[:, 2].tolist() == [NOT_LISTED, 0]
    assert zones.of("pods").tolist() == [[NOT_LISTED] * 3] * 2
    assert zones.costs[:, :, 2].tolist() == [[10, 20], [20, FARTHEST]]
    assert zones.existing()[:, 2].tolist() == [True, True]
    taken = zones.take(np.array([2, 0]))
    zones.write(2, (Zone(1, {"memory": 3}, {}),), TopologyManager(), ())
    assert zones.of("cpu")[:, 2].tolist() == [NOT_LISTED] * 2
    assert zones.of("memory")[:, 2].tolist() == [3, NOT_LISTED]
    assert (zones.costs[:, :, 2] == FARTHEST).all()
    assert (zones.count[2], zones.zones_max[2], zones.is_single[2]) == (1, 8, False)
    assert taken.of("cpu").tolist() == [[5, NOT_LISTED], [NOT_LISTED] * 2]
    zones.write(0, (), MANAGER, ())
    assert (zones.size, zones.width, zones.count.tolist()) == (3, 2, [0, 0, 1])


def test_what_is_taken_is_taken_off_every_zone_that_lists_it_and_never_below_zero() -> None:
    zones = Zones(1, 1)
    told = (Zone(0, {"cpu": 5, GPU: 1}, {}), Zone(1, {"cpu": 2}, {}))
    zones.write(0, told, MANAGER, [{"cpu": 1, GPU: 1}, {"cpu": 2, GPU: 1, "memory": 7}])
    assert zones.of("cpu")[:, 0].tolist() == [2, 0]
    assert zones.of(GPU)[:, 0].tolist() == [0, NOT_LISTED]
    assert zones.of("memory")[:, 0].tolist() == [NOT_LISTED] * 2


def verdict(zones: list[Json], pod: Json, scope: str = "container", **offered: str) -> str:
    """Of a node with these zones."""
    world = World()
    world.add(a_node("n1", **offered))
    made = [a_zone(at, **one) for at, one in enumerate(zones)]
    world.tell(a_topology("n1", *made, scope=scope))
    plugin = NodeResourceTopologyMatch(NodeResourceTopologyMatchArgs(), world.cluster)
    code = int(plugin.filter(world.pending(pod), all_rows(world.cluster), None)[0])
    return plugin.reasons[code - 1].text if code else ""


CONTAINER, INIT = "cannot align container", "cannot align init container"
TWO = [{"cpu": "4", "memory": "8Gi", GPU: "1"}, {"cpu": "4", "memory": "8Gi", GPU: "1"}]
CORE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"cpu": "4", "memory": "1Gi"}], ""),
        ([{"cpu": "5", "memory": "1Gi"}], CONTAINER),
        ([{"cpu": "4", "memory": "1Gi"}] * 2, ""),  # one after the other
        ([{"cpu": "4", "memory": "1Gi"}] * 2 + [CORE], CONTAINER),
        ([{"cpu": "3", "memory": "1Gi"}] * 2 + [CORE] * 2, ""),  # the lowest zone first
        ([{"cpu": "3", "memory": "8Gi"}] * 2 + [CORE], CONTAINER),
        # zeroes ask for nothing
        ([{GPU: "0", **CORE}], ""),
        ([{GPU: "0", "cpu": "5", "memory": "1Gi"}], CONTAINER),
        # who is not guaranteed takes cpu and memory from anywhere, and devices from a zone
        ([{"cpu": "7", GPU: "1", "_burst": True}] * 2, ""),
        ([{"cpu": "7", GPU: "1", "_burst": True}] * 3, CONTAINER),
        ([{"cpu": "4001m", "_burst": True}] * 2, ""),
        # what no node has is nowhere; what no zone lists is anywhere, if it is a device
        ([{**CORE, "example.com/nobody-has": "1"}], CONTAINER),
        ([{**CORE, "ephemeral-storage": "1Gi"}], ""),
        ([{**CORE, "hugepages-2Mi": "2Mi"}], CONTAINER),
    ],
)
def test_containers_are_aligned_one_after_the_other(containers: list[Json], expected: str) -> None:
    assert verdict(TWO, a_pod("p", *containers), **{GPU: "2"}) == expected


@pytest.mark.parametrize(
    ("offered", "expected"),
    [({}, CONTAINER), ({GPU: "0"}, CONTAINER), ({GPU: "1"}, ""), ({GPU: "2"}, "")],
)
def test_a_device_that_no_zone_lists_is_anywhere_on_a_node_that_has_some(
    offered: dict[str, str], expected: str
) -> None:
    assert verdict([dict(CORE)], a_pod("p", {**CORE, GPU: "1"}), **offered) == expected


def test_cpu_that_comes_from_anywhere_is_taken_off_no_zone() -> None:
    more = {"cpu": "4001m", "_burst": True}
    assert verdict([{"cpu": "4"}], a_pod("p", more, more, more)) == ""


def test_init_containers_are_aligned_each_alone() -> None:
    whole = {"cpu": "4", "memory": "8Gi"}
    assert verdict(TWO, a_pod("p", whole, whole, inits=(whole, whole, whole))) == ""
    assert verdict(TWO, a_pod("p", CORE, inits=(CORE, {"cpu": "5", "memory": "1Gi"}))) == INIT
    both: Any = a_pod("p", {"cpu": "5", "memory": "1Gi"}, inits=({"cpu": "5", "memory": "1Gi"},))
    assert verdict(TWO, both) == INIT
    assert verdict(TWO, both, "pod") == "cannot align pod"


def test_a_node_without_zones_has_room_for_nothing_but_what_zones_need_not_list() -> None:
    assert verdict([], a_pod("p", CORE)) == CONTAINER
    assert verdict([], a_pod("p", {GPU: "1", "_burst": True}), **{GPU: "1"}) == ""
