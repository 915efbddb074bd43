"""The search: which devices are chosen, in which order, and when there is no way."""

from typing import Any, NamedTuple

import pytest

from asched.core.config.gates import DEFAULT_GATES
from asched.core.dra.allocator import INVALID_POOLS, DeviceSearch, NodeRejected, OutOfSteps
from asched.core.dra.plan import AllocationError
from tests.device_builders import (
    DRIVER,
    NODE_NAME,
    World,
    a_claim,
    a_class,
    a_device,
    a_slice,
    asks,
    first_of,
    held,
)
from tests.unit.core.dra.sizes import BIG, SAME_NUMA, SIZES, SMALL, A

OTHER_NUMA = ({"distinctAttribute": f"{DRIVER}/numa"},)


class Case(NamedTuple):
    name: str
    requests: list[dict[str, Any]]
    expected: list[str] | None
    taken: tuple[str, ...] = ()
    constraints: tuple[dict[str, Any], ...] = ()


CASES = [
    Case("the first device is taken", [asks()], ["a"]),
    Case("one that is held is passed over", [asks()], ["b"], taken=("a",)),
    Case("several are taken in order", [asks(count=2)], ["a", "b"]),
    Case("more than there are cannot be had", [asks(count=4)], None),
    Case("a selector chooses", [asks(BIG)], ["b"]),
    Case("all selectors must hold", [asks(BIG, f"{A}.numa == 1")], ["c"]),
    Case("a selector nobody meets", [asks("false")], None),
    Case("an earlier request gives way to a later one", [asks(), asks(SMALL)], ["b", "a"]),
    Case("all means all", [asks(all=True)], ["a", "b", "c"]),
    Case("all that match", [asks(BIG, all=True)], ["b", "c"]),
    Case("all fails while one is held", [asks(all=True)], None, taken=("b",)),
    Case("all of none is nothing", [asks("false", all=True)], None),
    Case("equal in an attribute", [asks(count=2)], ["a", "b"], constraints=SAME_NUMA),
    Case("too few are equal", [asks(count=3)], None, constraints=SAME_NUMA),
    Case("different in an attribute", [asks(count=2)], ["a", "c"], constraints=OTHER_NUMA),
    Case(
        "a constraint may name one request",
        [asks(BIG), asks(BIG), asks()],
        ["b", "c", "a"],
        constraints=[{"requests": ["r0"], "matchAttribute": f"{DRIVER}/numa"}],
    ),
    Case(
        "a device without the attribute meets no constraint",
        [asks()],
        None,
        constraints=({"matchAttribute": f"{DRIVER}/absent"},),
    ),
    Case("the first alternative if it works", [first_of(asks(BIG), asks(SMALL))], ["b"]),
    Case("the next one otherwise", [first_of(asks("false"), asks(SMALL))], ["a"]),
    Case(
        "an alternative gives way so that a later request can be met",
        [first_of(asks(BIG, count=2), asks(SMALL)), asks(BIG)],
        ["a", "b"],
    ),
    Case("no alternative works", [first_of(asks("false"), asks(count=9))], None),
    Case("admin access looks past holders", [asks(adminAccess=True)], ["a"], taken=("a",)),
    Case("but takes no device of the claim twice", [asks(adminAccess=True, count=4)], None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_choice(case: Case) -> None:
    world = World(a_slice(*SIZES))
    world.taken.put("other", held(*case.taken))
    claim = a_claim(*case.requests, constraints=list(case.constraints))

    found = world.devices(claim)

    assert found == (None if case.expected is None else [case.expected])


def test_a_claim_with_all_devices_leaves_none_for_the_next() -> None:
    world = World(a_slice("a", "b"))
    assert world.devices(a_claim(asks(all=True), name="x"), a_claim(asks(), name="y")) is None


@pytest.mark.parametrize(
    ("taint", "tolerations", "expected"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, [], None),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, [], None),
        ({"key": "k", "value": "v", "effect": "None"}, [], [["a"]]),
        ({"key": "k", "effect": "NoSchedule"}, [{"key": "k", "operator": "Exists"}], [["a"]]),
        ({"key": "k", "effect": "NoSchedule"}, [{"operator": "Exists"}], [["a"]]),
        (
            {"key": "k", "value": "v", "effect": "NoSchedule"},
            [{"key": "k", "operator": "Equal", "value": "w"}],
            None,
        ),
        (
            {"key": "k", "value": "v", "effect": "NoSchedule"},
            [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}],
            None,
        ),
    ],
)
def test_taints(
    taint: dict[str, str], tolerations: list[dict[str, str]], expected: list[list[str]] | None
) -> None:
    world = World(a_slice(a_device("a", taints=[taint])))
    assert world.devices(a_claim(asks(tolerations=tolerations))) == expected


def test_a_claim_has_at_most_32_devices() -> None:
    world = World(a_slice(*(f"d{i:02}" for i in range(40))))
    assert len((world.devices(a_claim(asks(count=32))) or [[]])[0]) == 32
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds"):
        world.devices(a_claim(asks(count=20), asks(count=13)))


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (a_claim(asks(of="absent")), "could not retrieve device class absent"),
        (a_claim(asks(allocationMode="Some")), "unsupported count mode Some"),
        (a_claim(asks("1 + 1")), r"claim d/c: selector #0: CEL runtime error: CEL result of type"),
        (a_claim(asks("nope")), r"claim d/c: selector #0: CEL compile error: compilation failed"),
        (a_claim(asks(), constraints=({},)), r"claim d/c, constraint #0: empty constraint"),
        (
            a_claim(asks(all=True), constraints=SAME_NUMA),
            rf"request r0: cannot add device {DRIVER}/{NODE_NAME}/c because a claim constraint",
        ),
    ],
)
def test_what_no_node_can_help_ends_the_attempt(claim: Any, message: str) -> None:
    with pytest.raises(AllocationError, match=message):
        World(a_slice(*SIZES)).solve(claim)


def test_a_broken_class_is_named() -> None:
    world = World(a_slice("a"), classes=(a_class("gpu", "true", "nope"),))
    with pytest.raises(AllocationError, match="class gpu: selector #1: CEL compile error"):
        world.solve(a_claim(asks()))


def test_incomplete_pools_are_passed_over_unless_all_is_asked_for() -> None:
    world = World(a_slice("a", of=2), a_slice("b", pool="q"))
    assert world.devices(a_claim(asks())) == [["b"]]
    with pytest.raises(AllocationError, match=f"resource pool {DRIVER}/n1 is currently being"):
        world.devices(a_claim(asks(all=True)))


def test_an_invalid_pool_is_told_of_when_nothing_else_is_left() -> None:
    world = World(a_slice("a", "a"), a_slice("b", pool="q"))
    assert world.devices(a_claim(asks())) == [["b"]]
    with pytest.raises(NodeRejected, match=INVALID_POOLS):
        world.devices(a_claim(asks(count=2)))
    with pytest.raises(AllocationError, match="is currently invalid"):
        world.devices(a_claim(asks(all=True)))


def test_a_device_may_choose_its_node() -> None:
    local = [a_device("a", nodeName="n2"), a_device("b", allNodes=True)]
    world = World(a_slice(*local, perDeviceNodeSelection=True))
    assert world.devices(a_claim(asks())) == [["b"]]
    assert world.devices(a_claim(asks()), node="n2") == [["a"]]


def test_a_hopeless_search_is_given_up() -> None:
    """24 devices, 11 of them wanted, and something that none of them is: too many combinations."""
    devices = [a_device(f"d{i:02}") for i in range(24)]
    world = World(a_slice(*devices))
    plans = world.plans(a_claim(asks(count=11), asks("false")))
    pools = world.inventory.pools_for(NODE_NAME, {})
    search = DeviceSearch(pools, plans, world.taken, (NODE_NAME, {}), 1000, DEFAULT_GATES)
    with pytest.raises(OutOfSteps):
        search.run()


def test_selectors_of_a_device_in_use_are_not_asked() -> None:
    """They may fail, and then the attempt ends: only a device that could be had is asked."""
    world = World(a_slice(a_device("a"), a_device("b", attributes={"x": 1})))
    picky = asks(f'device.attributes["{DRIVER}"].x == 1')
    assert world.devices(a_claim(asks(), picky)) == [["a", "b"]]
    with pytest.raises(AllocationError, match="no such key: x"):
        world.devices(a_claim(picky))


def test_admin_access_looks_past_another_claim_of_the_same_pod() -> None:
    world = World(a_slice("a"))
    mine, admin = a_claim(asks(), name="x"), a_claim(asks(adminAccess=True), name="y")
    assert world.devices(mine, admin) == [["a"], ["a"]]
    assert world.devices(admin, mine) is None


def test_a_device_that_two_requests_of_a_claim_look_past_stays_held_by_the_other() -> None:
    world = World(a_slice("a", "b"))
    admin = a_claim(asks(adminAccess=True), name="x")
    late = a_claim(asks(adminAccess=True), asks(adminAccess=True), asks("false"), name="y")
    assert world.devices(admin, late) is None
    assert world.devices(admin, a_claim(asks(adminAccess=True), asks(), name="y")) == [
        ["a"],
        ["a", "b"],
    ]


def test_a_later_claim_that_needs_too_many_lets_an_earlier_one_choose_otherwise() -> None:
    """And a list of which one alternative needs too many goes on to the next."""
    world = World(a_slice(*(f"d{n:02}" for n in range(40))))
    for size, expected in ((33, 1), (32, 0)):
        claim = a_claim(first_of(asks(count=size), asks(count=2)), name="x")
        found = world.solve(claim)
        assert found is not None
        assert found.selected == ((expected,),)
        assert len(found.devices[0]) == (32, 2)[expected]
