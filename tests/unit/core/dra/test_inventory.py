"""Pools as nodes see them: order, visibility, completeness, and what a change touches."""

from typing import Any

import pytest

from asched.core.dra.inventory import Inventory
from tests.device_builders import a_device, a_slice

ZONE_A = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}


def seen(inventory: Inventory, node: str = "n1", **labels: str) -> list[str]:
    """`pool: devices` of each pool in order; a pool that cannot be used says why."""
    told = []
    for pool in inventory.pools_for(node, labels):
        names = " ".join(device.id.device for device in pool.devices)
        state = "incomplete" if pool.is_incomplete else "invalid" if pool.is_invalid else ""
        told.append(f"{pool.id[1]}: {state or names}")
    return told


def test_a_node_sees_its_own_slices() -> None:
    inventory = Inventory([a_slice("a"), a_slice("b", pool="q", nodeName="n2")])
    assert seen(inventory) == ["n1: a"]
    assert seen(inventory, "n2") == ["q: b"]
    assert seen(inventory, "n3") == []


def test_slices_for_all_nodes_and_for_selected_ones() -> None:
    inventory = Inventory(
        [a_slice("a", pool="p", allNodes=True), a_slice("b", pool="q", nodeSelector=ZONE_A)]
    )
    assert seen(inventory, zone="a") == ["p: a", "q: b"]
    assert seen(inventory, zone="b") == ["p: a"]


def test_a_slice_whose_devices_choose_is_seen_where_one_of_them_is() -> None:
    local = a_device("x", nodeName="n1"), a_device("y", nodeName="n2")
    inventory = Inventory([a_slice(*local, perDeviceNodeSelection=True)])
    assert seen(inventory, "n1") == ["n1: x y"]
    assert seen(inventory, "n3") == []


def test_pools_come_by_driver_and_name_and_slices_by_name() -> None:
    inventory = Inventory(
        [
            a_slice("d", pool="b", driver="z.com", name="4"),
            a_slice("c", pool="b", of=2, name="3"),
            a_slice("b", pool="b", of=2, name="2"),
            a_slice("a", pool="a", name="1"),
        ]
    )
    assert seen(inventory) == ["a: a", "b: b c", "b: d"]


def test_pools_that_bind_under_conditions_come_last() -> None:
    binds = a_device("a", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    inventory = Inventory([a_slice(binds, pool="a"), a_slice("b", pool="b")])
    assert seen(inventory) == ["b: b", "a: a"]


def test_only_the_newest_generation_counts() -> None:
    inventory = Inventory([a_slice("old", name="1"), a_slice("new", name="2", generation=2)])
    assert seen(inventory) == ["n1: new"]


def test_a_pool_that_is_replaced_elsewhere_is_passed_over() -> None:
    inventory = Inventory(
        [
            a_slice("a", pool="p", name="1", of=2),
            a_slice("b", pool="p", name="2", of=2, generation=2, nodeName="n2"),
        ]
    )
    assert seen(inventory) == []


def test_slices_of_other_nodes_make_a_pool_complete() -> None:
    near, far = (
        a_slice("a", pool="p", name="1", of=2),
        a_slice("b", pool="p", name="2", of=2, nodeName="n2"),
    )
    assert seen(Inventory([near])) == ["p: incomplete"]
    assert seen(Inventory([near, far])) == ["p: a"]


@pytest.mark.parametrize(
    "fields",
    [
        {"devices": ["a", "a"]},
        {"sets": ["s", "s"]},
        {"uses": ("t", "c")},
        {"uses": ("s", "x")},
    ],
)
def test_contradictions_make_a_pool_invalid(fields: dict[str, Any]) -> None:
    counter_set, counter = fields.get("uses", ("s", "c"))
    used = [{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}]
    devices = [a_device(name, consumesCounters=used) for name in fields.get("devices", ["a"])]
    sets = [{"name": n, "counters": {"c": {"value": "1"}}} for n in fields.get("sets", ["s"])]
    inventory = Inventory(
        [a_slice(*devices, of=2, name="1"), a_slice(of=2, name="2", sharedCounters=sets)]
    )
    assert seen(inventory) == ["n1: invalid"]


def test_a_slice_may_move_to_another_pool_and_node() -> None:
    inventory = Inventory([a_slice("a", name="s")])
    assert seen(inventory) == ["n1: a"]
    inventory.put(a_slice("a", name="s", pool="q", nodeName="n2"))
    assert seen(inventory) == []
    assert seen(inventory, "n2") == ["q: a"]


def test_a_node_whose_labels_change_sees_other_pools() -> None:
    inventory = Inventory([a_slice("b", pool="q", nodeSelector=ZONE_A)])
    assert seen(inventory, zone="a") == ["q: b"]
    assert seen(inventory, zone="b") == []
    assert seen(inventory, zone="a") == ["q: b"]
