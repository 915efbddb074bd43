"""Partitionable devices: shared counters bound which devices can be taken together."""

from typing import Any

from tests.core.dra.worlds import DRIVER, World, a_claim, a_device, a_slice, asks, held


def uses(**counters: int) -> dict[str, Any]:
    amounts = {name: {"value": str(value)} for name, value in counters.items()}
    return {"consumesCounters": [{"counterSet": "set", "counters": amounts}]}


def counters(**values: int) -> dict[str, Any]:
    amounts = {name: {"value": str(value)} for name, value in values.items()}
    return {"sharedCounters": [{"name": "set", "counters": amounts}]}


def partitioned(*devices: dict[str, Any], **values: int) -> World:
    """One pool of two slices: one with devices, one with what they share."""
    return World(
        a_slice(*devices, of=2, name="devices"),
        a_slice(of=2, name="counters", **counters(**values)),
    )


WHOLE = a_device("whole", **uses(mem=40))
HALVES = [a_device("half-0", **uses(mem=20)), a_device("half-1", **uses(mem=20))]


def test_devices_are_taken_while_the_counter_lasts() -> None:
    world = partitioned(WHOLE, *HALVES, mem=40)
    assert world.devices(a_claim(asks())) == [["whole"]]
    assert world.devices(a_claim(asks(count=2))) == [["half-0", "half-1"]]
    assert world.devices(a_claim(asks(count=3))) is None


def test_allocated_devices_have_used_their_counters() -> None:
    world = partitioned(WHOLE, *HALVES, mem=40)
    world.taken.put("other", held("half-1"))
    assert world.devices(a_claim(asks())) == [["half-0"]]


def test_devices_that_only_other_nodes_see_count_too() -> None:
    far = a_slice(a_device("far", **uses(mem=30)), of=3, name="far", nodeName="n2")
    near = a_slice(*HALVES, of=3, name="near")
    world = World(near, far, a_slice(of=3, name="counters", **counters(mem=40)))
    assert world.devices(a_claim(asks(count=2))) == [["half-0", "half-1"]]
    world.taken.put("other", held("far"))
    assert world.devices(a_claim(asks())) is None


def test_a_device_without_counters_needs_none() -> None:
    world = partitioned(a_device("plain"), HALVES[0], mem=0)
    assert world.devices(a_claim(asks())) == [["plain"]]
    assert world.devices(a_claim(asks(count=2))) is None


def test_an_overdrawn_counter_keeps_all_devices_of_the_pool_away() -> None:
    world = partitioned(
        a_device("a", **uses(x=2)), a_device("b", **uses(x=2)), a_device("c", **uses(y=1)), x=2, y=1
    )
    world.taken.put("one", held("a"))
    assert world.devices(a_claim(asks())) == [["c"]]
    world.taken.put("two", held("b"))
    assert world.devices(a_claim(asks())) is None


def test_counters_come_back_when_the_search_turns_round() -> None:
    """The whole device is tried first, leaves nothing for the second claim, and is given back."""
    world = partitioned(WHOLE, *HALVES, mem=40)
    one, two = a_claim(asks(), name="x"), a_claim(asks(), name="y")
    assert world.devices(one, two) == [["half-0"], ["half-1"]]


def test_a_device_that_a_taint_turns_down_uses_no_counter() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    world = partitioned(a_device("a", taints=taints, **uses(mem=20)), *HALVES, mem=40)
    assert world.devices(a_claim(asks(count=2))) == [["half-0", "half-1"]]


def test_a_device_that_a_constraint_turns_down_uses_no_counter() -> None:
    one, *more = (
        a_device(f"d{at}", attributes={"numa": numa}, **uses(mem=20))
        for at, numa in enumerate((0, 1, 0))
    )
    same = [{"requests": [], "matchAttribute": f"{DRIVER}/numa"}]
    found = partitioned(one, *more, mem=40).devices(a_claim(asks(count=2), constraints=same))
    assert found == [["d0", "d2"]]
