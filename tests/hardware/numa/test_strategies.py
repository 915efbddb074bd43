"""Scores of zones by their formulas, on nodes made for one edge of them each."""

from collections import Counter
from typing import Any

import pytest

from asched.hardware.numa.demand import CONTAINERS_MAX, NumaDemand, QoS
from asched.hardware.numa.strategies import (
    balanced_allocation,
    least_allocated,
    least_numa_nodes,
    most_allocated,
    zone_scores,
)
from asched.hardware.numa.topology import POD, TopologyManager, Zone
from asched.hardware.numa.zones import Zones

CORE = 1000


def a_row(*zones: dict[str, int], scope: str = POD, costs: Any = None, most: int = 8) -> Zones:
    """One node with these zones; `costs[i][j]`, if told."""
    made = Zones(0, 1)
    told = tuple(
        Zone(at, held, dict(enumerate(costs[at])) if costs else {}) for at, held in enumerate(zones)
    )
    made.write(0, told, TopologyManager("single-numa-node", scope, most), ())
    return made


def a_demand(*containers: dict[str, int]) -> NumaDemand:
    whole = dict(sum(map(Counter, containers), Counter[str]()))
    return NumaDemand(QoS.GUARANTEED, whole, (), containers, has_non_native=False)


@pytest.mark.parametrize("cores", [100, 1200])
def test_cores_are_counted_whole_and_what_has_no_weight_weighs_one(cores: int) -> None:
    """Half of the cores and a quarter of the memory: (50 * 3 + 25 * 1) / 4, and what is left."""
    zones = a_row({"cpu": cores * CORE - 999, "memory": 400})
    asked = {"cpu": cores * CORE // 2 - 999, "memory": 100}
    assert most_allocated(zones, asked, {"cpu": 3}).tolist() == [[43]]
    assert least_allocated(zones, asked, {"cpu": 3}).tolist() == [[56]]
    # the variance of 1/2 and 1/4 is 1/32
    assert balanced_allocation(zones, asked, {}).tolist() == [[96]]


def test_of_one_resource_nothing_is_uneven() -> None:
    assert balanced_allocation(a_row({"cpu": 10 * CORE}), {"cpu": CORE}, {}).tolist() == [[0]]


@pytest.mark.parametrize(("scope", "expected"), [(POD, CONTAINERS_MAX + 1), ("container", 0)])
def test_a_pod_of_very_many_containers_gets_the_points_of_the_whole(
    scope: str, expected: int
) -> None:
    demand = a_demand(*({"cpu": CORE, "memory": 1},) * (CONTAINERS_MAX + 1))
    zones = a_row({"cpu": 100 * CORE, "memory": 100}, scope=scope)
    assert zone_scores(most_allocated, zones, demand, {}).tolist() == [expected]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"disk": 1}], 100),
        ([{"disk": 1}, {"cpu": 3}], 100 - 12 + 6),
        ([{"disk": 1}, {"cpu": 6}], 100 - 24 + 6),
        ([{"disk": 1}, {"cpu": 9}], 0),
        ([{"cpu": 9}, {"disk": 1}], 0),
        ([{"cpu": 3, "disk": 1}], 0),
        ([{"cpu": 3}, {"cpu": 4}, {"cpu": 1}], 100 - 12 + 6),
        ([{"cpu": 3}, {"cpu": 5}], 100 - 24 + 6),
        ([{"cpu": 3}, {"cpu": 5}, {"cpu": 1}], 0),
    ],
)
def test_a_container_that_asks_for_nothing_of_zones_counts_no_zone(
    containers: list[dict[str, int]], expected: int
) -> None:
    """Two zones of four cores on a node that may have eight, so 12 points for each that is used."""
    zones = a_row({"cpu": 4}, {"cpu": 4}, scope="container", costs=[[10, 20], [20, 10]])
    assert least_numa_nodes(zones, a_demand(*containers)).tolist() == [expected]


@pytest.mark.parametrize(("most", "expected"), [(2, 75), (101, 100), (100, 99)])
def test_a_zone_costs_its_share_of_those_there_may_be(most: int, expected: int) -> None:
    zones = a_row({"cpu": 4}, most=most, costs=[[10]])
    assert least_numa_nodes(zones, a_demand({"cpu": 1})).tolist() == [expected]


@pytest.mark.parametrize(("number", "expected"), [(9, 94), (14, 94), (15, 0)])
def test_on_a_node_of_very_many_zones_nothing_fits(number: int, expected: int) -> None:
    zones = a_row(*[{"cpu": 4}] * number)
    assert least_numa_nodes(zones, a_demand({"cpu": 1})).tolist() == [expected]


@pytest.mark.parametrize(
    ("apart", "expected"),
    [(20, 82), (200, 82), (500, 82), (501, 76), (502, 0), (5000, 0)],
)
def test_zones_farther_from_each_other_than_can_be_told_do_not_go_together(
    apart: int, expected: int
) -> None:
    """The mean of 10, 10 and twice this is near up to 255, and none at all from 256 on."""
    zones = a_row({"cpu": 4}, {"cpu": 4}, costs=[[10, apart], [apart, 10]])
    assert least_numa_nodes(zones, a_demand({"cpu": 8})).tolist() == [expected]
