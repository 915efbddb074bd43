"""Where the device allocation of 1.37 decides otherwise than that of 1.36."""

from typing import Any

import pytest

from asched.core.config.gates import default_gates
from asched.core.dra import capacity
from asched.core.dra.allocator import NodeRejected
from asched.core.dra.plan import KEY_ADVICE, AllocationError
from asched.core.dra.result import allocation_results
from asched.core.model.claim import AllocationResult, Device
from asched.core.model.decode import decode
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

COLORS = ({"distinctAttribute": f"{DRIVER}/color"},)


def painted(*colors: str) -> Any:
    devices = [a_device(f"d{i}", attributes={"color": c}) for i, c in enumerate(colors)]
    return a_slice(*devices)


def shared(name: str, **fields: Any) -> dict[str, Any]:
    return a_device(name, allowMultipleAllocations=True, **fields)


@pytest.mark.parametrize(
    ("colors", "before", "after"),
    [
        (("red", "blue", "red", "blue"), [["d0", "d1", "d2"]], None),
        (("red", "blue", "red", "green"), [["d0", "d1", "d2"]], [["d0", "d1", "d3"]]),
    ],
)
def test_distinct_attribute_of_several_devices(
    colors: tuple[str, ...], before: list[list[str]] | None, after: list[list[str]] | None
) -> None:
    claim = a_claim(asks(count=3), constraints=COLORS)
    assert World(painted(*colors), minor="1.36").devices(claim) == before
    assert World(painted(*colors), minor="1.37").devices(claim) == after


def test_a_step_back_forgets_one_value_of_a_request() -> None:
    blue = asks(f'device.attributes["{DRIVER}"].color == "blue"')
    claim = a_claim(asks(count=2), blue, constraints=COLORS)
    world = World(painted("red", "blue", "green"), minor="1.37")
    assert world.devices(claim) == [["d0", "d2", "d1"]]


@pytest.mark.parametrize(("minor", "expected"), [("1.36", None), ("1.37", [["a"]])])
def test_a_second_share_without_capacity(minor: str, expected: list[list[str]] | None) -> None:
    used = [{"counterSet": "s", "counters": {"c": {"value": "2"}}}]
    counters = [{"name": "s", "counters": {"c": {"value": "2"}}}]
    world = World(
        a_slice(shared("a", consumesCounters=used), name="devices", of=2),
        a_slice(name="counters", of=2, sharedCounters=counters),
        minor=minor,
    )
    world.taken.put("earlier", held("a", shareID="x"))
    assert world.devices(a_claim(asks())) == expected


@pytest.mark.parametrize(("minor", "expected"), [("1.37", [["a"]]), ("1.38", [["b"]])])
def test_a_device_that_is_no_longer_shared(minor: str, expected: list[list[str]]) -> None:
    world = World(a_slice("a", "b"), minor=minor)
    world.taken.put("earlier", held("a", shareID="x"))
    assert world.devices(a_claim(asks())) == expected


@pytest.mark.parametrize(("minor", "expected"), [("1.36", [["b"]]), ("1.37", None)])
def test_mode_all_with_a_device_that_is_used_up(
    minor: str, expected: list[list[str]] | None
) -> None:
    bandwidth = {"bandwidth": {"value": "1"}}
    devices = [shared(name, capacity=bandwidth) for name in ("a", "b")]
    world = World(a_slice(*devices, shared("c", capacity={})), minor=minor)
    world.taken.put("earlier", held("a", shareID="x", consumedCapacity={"bandwidth": "1"}))
    claim = a_claim(asks(all=True, capacity={"requests": {"bandwidth": "1"}}))
    assert world.devices(claim) == expected

    either = a_claim(first_of(asks(all=True, capacity=claim_capacity()), asks()), name="either")
    assert world.devices(either) is not None  # the next alternative


def test_pools_of_one_name_of_two_drivers() -> None:
    def slices(driver: str, left: str, takes: str) -> tuple[Any, Any]:
        used = [{"counterSet": "s", "counters": {"c": {"value": takes}}}]
        counters = [{"name": "s", "counters": {"c": {"value": left}}}]
        where = {"driver": driver, "pool": NODE_NAME, "of": 2}
        return (
            a_slice(a_device("d", consumesCounters=used), name=f"{driver}-devices", **where),
            a_slice(name=f"{driver}-counters", sharedCounters=counters, **where),
        )

    def of(driver: str) -> dict[str, Any]:
        return asks(f'device.driver == "{driver}"')

    for minor in ("1.36", "1.37"):
        world = World(*slices("a.io", "1", "1"), *slices("b.io", "3", "2"), minor=minor)
        assert world.devices(a_claim(of("a.io"), of("b.io"))) == [["d", "d"]]
        world = World(*slices("a.io", "5", "1"), *slices("b.io", "2", "3"), minor=minor)
        assert world.devices(a_claim(of("a.io"), of("b.io"))) is None


def test_errors_of_selectors() -> None:
    claim = a_claim(asks(f'device.attributes["{DRIVER}"].missing == "x"'))
    start = "claim d/c: selector #0"
    end = "CEL runtime error: no such key: missing"
    for minor, where, advice in (
        ("1.36", "", ""),
        ("1.37", f" on device {DRIVER}/{NODE_NAME}/a", KEY_ADVICE),
    ):
        with pytest.raises(AllocationError) as caught:
            World(a_slice("a"), minor=minor).devices(claim)
        assert str(caught.value) == f"{start}{where}: {end}{advice}"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ('models.includes("y")', [["b"]]),
        ("versions.exists(v, v.isLessThan(semver('2.0.0')))", [["a"]]),
        ("sizes.includes(3)", [["a"]]),
        ('kind.includes("fast")', [["b"]]),
        ("flags.includes(true)", [["a"]]),
        ('models.includes("z")', None),
    ],
)
def test_attributes_with_lists(selector: str, expected: list[list[str]] | None) -> None:
    devices = []
    for name, models, version, flag, kind in (
        ("a", ["x"], "1.0.0", True, "slow"),
        ("b", ["x", "y"], "2.0.0", False, "fast"),
    ):
        device = a_device(name)
        device["attributes"] = {
            "models": {"strings": models},
            "versions": {"versions": [version]},
            "sizes": {"ints": [1, 3] if flag else [1]},
            "flags": {"bools": [flag]},
            "kind": {"string": kind},
        }
        devices.append(device)
    claim = a_claim(asks(f'device.attributes["{DRIVER}"].{selector}'))
    assert World(a_slice(*devices)).devices(claim) == expected


def claim_capacity() -> dict[str, Any]:
    return {"requests": {"bandwidth": "1"}}


def test_an_incomplete_pool_of_another_node() -> None:
    counters = [{"name": "s", "counters": {"c": {"value": "2"}}}]
    slices = (
        a_slice("a", pool="p1"),
        a_slice(name="far", pool="p2", of=2, nodeName="n2", sharedCounters=counters),
    )
    claim = a_claim(asks(all=True))
    with pytest.raises(AllocationError, match="is currently being updated"):
        World(*slices, minor="1.36").devices(claim)
    assert World(*slices, minor="1.37").devices(claim) == [["a"]]


def test_mode_all_over_an_incomplete_pool() -> None:
    claim = a_claim(asks(all=True))
    with pytest.raises(AllocationError, match="is currently being updated"):
        World(a_slice("a", of=2), minor="1.37").devices(claim)
    with pytest.raises(NodeRejected):
        World(a_slice("a", of=2), minor="1.38").devices(claim)


def test_counters_of_another_node_limit_devices_of_their_pool() -> None:
    """A slice that the node does not see belongs to a pool with devices that it sees."""
    used = [{"counterSet": "s", "counters": {"c": {"value": "2"}}}]
    counters = [{"name": "s", "counters": {"c": {"value": "3"}}}]
    for minor in ("1.36", "1.37"):
        world = World(
            a_slice(*(a_device(name, consumesCounters=used) for name in "ab"), name="near", of=2),
            a_slice(name="far", of=2, nodeName="n2", sharedCounters=counters),
            minor=minor,
        )
        assert world.devices(a_claim(asks())) == [["a"]]
        assert world.devices(a_claim(asks(count=2))) is None


def consumed(minor: str, asked: str, value: str, **valid_range: str) -> str | None:
    """What a request takes of a capacity with this policy."""
    policy = {"requestPolicy": {"validRange": valid_range}} if valid_range else {}
    device = decode(Device, {"name": "d", "capacity": {"c": {"value": value, **policy}}})
    found = capacity.consumption({"c": asked}, device, default_gates(minor))
    return None if found is None else found["c"]


def test_capacity_out_of_range() -> None:
    assert consumed("1.36", "-5", "100") == "-5"
    assert consumed("1.37", "-5", "100") is None
    for minor in ("1.36", "1.37"):
        assert consumed(minor, "10E", "100", min="0", step="100") is None
        assert consumed(minor, "-5", "100", min="0", step="100") == "0"


@pytest.mark.parametrize(
    ("asked", "value", "limits", "before", "after"),
    [
        ("1200m", "1600m", {"min": "500m", "step": "500m"}, None, "1500m"),
        ("700m", "4", {"min": "300m", "step": "300m"}, "1", "900m"),
        ("1300m", "4", {"min": "500m", "step": "500m", "max": "1500m"}, None, "1500m"),
        ("1700m", "4", {"min": "500m", "step": "500m"}, "2", "2"),
        ("1300m", "4", {"min": "1", "step": "1"}, "2", "2"),
    ],
)
def test_capacity_in_milli_units(
    asked: str, value: str, limits: dict[str, str], before: str | None, after: str | None
) -> None:
    assert consumed("1.36", asked, value, **limits) == before
    assert consumed("1.37", asked, value, **limits) == after


def configured(minor: str, *config: dict[str, Any]) -> list[tuple[str, ...] | None]:
    """The requests that each entry of an allocation's configuration names, in order; its class has
    one as well.
    """
    opaque = {"driver": "d", "parameters": {}}
    world = World(a_slice("a", "b"), classes=(a_class(config=[{"opaque": opaque}]),), minor=minor)
    claim = a_claim(
        asks(), first_of(asks("false"), asks()), config=[{**c, "opaque": opaque} for c in config]
    )
    solution = world.solve(claim)
    assert solution is not None
    (result,) = allocation_results(world.plans(claim), solution, NODE_NAME, world.rules)
    assert isinstance(result, AllocationResult)
    return [entry.requests for entry in result.devices.config or ()]


def test_configuration_of_an_allocation() -> None:
    entries = ({}, {"requests": ["r0", "r1"]}, {"requests": ["r1/s0", "r1/s1"]})
    own = ("r1/s0", "r1/s1")
    assert configured("1.36", *entries) == [
        ("r0", "r1/s1"),
        None,
        ("r0", "r1"),
        ("r0", "r1"),
        own,
    ]
    assert configured("1.37", *entries) == [None, None, None, own]
