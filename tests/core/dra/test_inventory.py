"""Pools as nodes see them: order, visibility, completeness, and what a change touches."""

import random
from typing import Any

import pytest

from asched.core.dra import inventory as module
from asched.core.dra.devices import DevicePlace
from asched.core.dra.inventory import Inventory
from asched.core.state import change_log
from tests.core.dra.worlds import DRIVER, a_device, a_slice

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
        state = "incomplete" if pool.is_incomplete else pool.invalid_reason
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
    ("fields", "reason"),
    [
        ({"devices": ["a", "a"]}, "duplicate device name a"),
        ({"sets": ["s", "s"]}, "duplicate counter set name s"),
        ({"uses": ("t", "c")}, "counter set t not found"),
        ({"uses": ("s", "x")}, "counter x not found in counter set s"),
    ],
)
def test_contradictions_make_a_pool_invalid(fields: dict[str, Any], reason: str) -> None:
    counter_set, counter = fields.get("uses", ("s", "c"))
    used = [{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}]
    devices = [a_device(name, consumesCounters=used) for name in fields.get("devices", ["a"])]
    sets = [{"name": n, "counters": {"c": {"value": "1"}}} for n in fields.get("sets", ["s"])]
    inventory = Inventory(
        [a_slice(*devices, of=2, name="1"), a_slice(of=2, name="2", sharedCounters=sets)]
    )
    assert seen(inventory) == [f"n1: {reason}"]


def test_changes_are_seen_and_leave_other_views_as_they_are() -> None:
    inventory = Inventory([a_slice("a"), a_slice("b", pool="q", nodeName="n2")])
    labels: dict[str, str] = {}
    far = inventory.pools_for("n2", labels)
    assert seen(inventory) == ["n1: a"]

    inventory.put(a_slice("a", "c"))
    assert seen(inventory) == ["n1: a c"]
    assert inventory.pools_for("n2", labels) is far

    inventory.remove("n1")
    assert seen(inventory) == []
    inventory.remove("n1")  # nothing to do
    assert seen(inventory) == []


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


def test_nodes_that_see_the_same_share_one_view() -> None:
    inventory = Inventory([a_slice("a", pool="p", allNodes=True)])
    assert inventory.pools_for("n1", {}) is inventory.pools_for("n2", {})
    assert inventory.is_shared(inventory.pools_for("n1", {}))
    inventory.put(a_slice(a_device("x", allNodes=True), pool="r", perDeviceNodeSelection=True))
    assert not inventory.is_shared(inventory.pools_for("n1", {}))


def test_nodes_of_a_pool() -> None:
    inventory = Inventory([a_slice("a"), a_slice("b", pool="w", allNodes=True)])
    assert inventory.nodes_of((DRIVER, "n1")) == {"n1"}
    assert inventory.nodes_of((DRIVER, "w")) is None
    assert inventory.nodes_of((DRIVER, "gone")) == set()


def test_pools_and_nodes_that_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARE", 0)
    inventory = Inventory()
    for number in range(100):
        node, record = f"n{number}", a_slice("a", pool=f"p{number}", nodeName=f"n{number}")
        inventory.put(record)
        assert seen(inventory, node) == [f"p{number}: a"]
        inventory.remove(record.metadata.name)
        assert seen(inventory, node) == []
        inventory.forget_nodes({node}, 1)
    for table in ("_versions", "_slices", "_pools", "_local", "_wide", "_built", "_interned"):
        assert len(getattr(inventory, table)) <= 2, table
    assert len(inventory._views) <= 3
    assert len(inventory._places) <= 2


def test_a_node_keeps_its_other_pools_when_one_goes() -> None:
    inventory = Inventory([a_slice("a", pool="p"), a_slice("b", pool="q"), a_slice("c", pool="r")])
    inventory.remove("q")
    assert set(inventory.have_own() or ()) == {"n1"}
    assert seen(inventory) == ["p: a", "r: c"]
    inventory.remove("p")
    inventory.remove("r")
    assert list(inventory.have_own() or ()) == []
    inventory.put(a_slice("w", pool="w", allNodes=True))
    assert inventory.have_own() is None, "any may see it"


def test_which_nodes_may_see_something_else_since_then() -> None:
    inventory = Inventory([a_slice("a"), a_slice("b", pool="q", name="2", nodeName="n2")])
    then = inventory.generation
    assert inventory.nodes_since(then) == set()
    inventory.put(a_slice("c", pool="q", name="2", nodeName="n3"))
    inventory.put(a_slice("d", pool="q", name="3", nodeName="n4"))
    assert inventory.nodes_since(then) == {"n2", "n3", "n4"}, "also who had it before"
    last = inventory.generation
    inventory.remove("3")
    assert inventory.nodes_since(last) == {"n3", "n4"}
    inventory.put(a_slice("e", pool="w", name="w", allNodes=True))
    assert inventory.nodes_since(last) is None
    assert inventory.nodes_since(-1) is None, "nobody knows what was before"


WHERE: list[dict[str, Any]] = [
    {"nodeName": "n1"},
    {"nodeName": "n2"},
    {"allNodes": True},
    {"nodeSelector": ZONE_A},
]


@pytest.mark.parametrize("seed", range(20))
def test_views_are_those_of_an_inventory_made_anew(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of nodes that did not look for so long that nobody knows what changed."""
    monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", 4)
    monkeypatch.setattr(module, "SPARE", seed % 3)
    rng = random.Random(seed)
    inventory, slices = Inventory(), {}
    for _ in range(60):
        name = f"s{rng.randrange(6)}"
        if name in slices and rng.random() < 0.4:
            del slices[name]
            inventory.remove(name)
        else:
            where = rng.choice(
                [
                    {"nodeName": "n1"},
                    {"nodeName": "n2"},
                    {"allNodes": True},
                    {"nodeSelector": ZONE_A},
                ]
            )
            fields = {"pool": f"p{rng.randrange(3)}", "of": rng.choice((1, 1, 2)), **where}
            slices[name] = a_slice(f"d{rng.randrange(9)}", name=name, **fields)
            inventory.put(slices[name])
        if rng.random() < 0.4:
            node, labels = rng.choice([("n1", {}), ("n2", {"zone": "a"}), ("n3", {"zone": "b"})])
            assert seen(inventory, node, **labels) == seen(
                Inventory(slices.values()), node, **labels
            )
    assert sorted(inventory.names()) == sorted(slices)
    assert all(inventory.record(name) is record for name, record in slices.items())


def test_nodes_share_their_views_whatever_changed_elsewhere() -> None:
    inventory = Inventory([a_slice("a", pool="p", allNodes=True), a_slice("b", pool="q")])
    view = inventory.pools_for("n2", {})
    inventory.put(a_slice("c", pool="q"))
    assert inventory.pools_for("n3", {}) is view is inventory.pools_for("n2", {})


def test_slices_are_looked_at_once_and_equal_places_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    matches = DevicePlace.matches
    monkeypatch.setattr(
        DevicePlace, "matches", lambda *told: looked.append(told[1]) or matches(*told)
    )
    selector = [
        a_slice("a", pool=f"p{number}", name=f"s{number}", nodeSelector=ZONE_A)
        for number in range(9)
    ]
    inventory, labels = Inventory(selector), {"zone": "a"}
    for node in ("n1", "n1", "n2", "n1"):
        assert len(inventory.pools_for(node, labels)) == 9
    assert looked == ["n1", "n2"]
    inventory.put(a_slice("b", pool="far", name="far", nodeName="n7"))
    inventory.pools_for("n1", labels)
    assert looked == ["n1", "n2"]


def test_views_of_nodes_that_live_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """None goes before they are more than twice the nodes."""
    monkeypatch.setattr(module, "SPARE", 1)
    inventory = Inventory([a_slice("a", pool="p", allNodes=True)])
    living = [f"n{number}" for number in range(4)]
    for name in (*living, "gone0", "gone1", "gone2", "gone3", "gone4"):
        inventory.pools_for(name, {})
    inventory.forget_nodes(living, 4)
    assert len(inventory._views) == 9
    inventory.pools_for("gone5", {})
    inventory.forget_nodes(living, 4)
    assert list(inventory._views) == living
