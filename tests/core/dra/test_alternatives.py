"""Other devices than the first: all that leave others something else, and none twice."""

import contextlib
import gc
import weakref
from typing import Any

import pytest

from asched.core.dra import allocator
from asched.core.dra import alternatives as room
from asched.core.dra.allocator import DeviceSearch
from asched.core.dra.alternatives import alternatives
from asched.core.dra.effort import CHUNK_STEPS, Effort
from asched.core.dra.plan import AllocationError
from asched.core.model.claim import ResourceClaim
from tests.core.dra.test_allocator import BIG, SAME_NUMA, SIZES, SMALL, A
from tests.core.dra.worlds import (
    NODE,
    World,
    a_claim,
    a_device,
    a_slice,
    asks,
    first_of,
    held,
)


def found(
    world: World, *claims: ResourceClaim, most: int = 10
) -> tuple[list[list[list[str]]], bool]:
    """Names of devices by claim, of every solution; and whether these are all."""
    pools = world.inventory.pools_for(NODE, {})
    solutions, are_all = alternatives(
        pools, world.plans(*claims), world.taken, (NODE, {}), Effort(), most
    )
    named = [[[one.device.id.device for one in c] for c in s.devices] for s in solutions]
    return named, are_all


def test_the_first_is_the_one_that_is_taken_else() -> None:
    world = World(a_slice(*SIZES))
    claims = a_claim(asks(), name="x"), a_claim(asks(BIG), name="y")

    named, are_all = found(world, *claims)

    assert named[0] == world.devices(*claims)
    assert named == [
        [["a"], ["b"]],
        [["a"], ["c"]],
        [["b"], ["c"]],
        [["c"], ["b"]],
    ]
    assert are_all


def test_devices_that_are_alike_leave_others_the_same() -> None:
    world = World(a_slice(*"abcdefgh"))
    assert found(world, a_claim(asks(count=4))) == ([[list("abcd")]], True)
    world.taken.put("other", held("b"))
    assert found(world, a_claim(asks(count=4))) == ([[list("acde")]], True)


def test_of_two_kinds_every_mixture_is_found_once() -> None:
    kinds = [a_device(f"s{n}", attributes={"size": "small"}) for n in range(3)]
    kinds += [a_device(f"b{n}", attributes={"size": "big"}) for n in range(3)]
    named, are_all = found(World(a_slice(*kinds)), a_claim(asks(count=3)))
    assert [sum(name[0] == "b" for name in solution[0]) for solution in named] == [0, 1, 2, 3]
    assert are_all


def test_constraints_hold_and_alternatives_are_told() -> None:
    world = World(a_slice(*SIZES))
    both = a_claim(asks(count=2), constraints=SAME_NUMA)
    assert found(world, both) == ([[["a", "b"]]], True)
    listed = a_claim(first_of(asks(BIG), asks(SMALL)))
    assert found(world, listed) == ([[["b"]], [["c"]], [["a"]]], True)
    plans, pools = world.plans(listed), world.inventory.pools_for(NODE, {})
    solutions, _ = alternatives(pools, plans, world.taken, (NODE, {}), Effort(), 10)
    assert [one.selected for one in solutions] == [((0,),), ((0,),), ((1,),)]


def test_whoever_looks_past_holders_tells_all_devices_apart() -> None:
    """Of two that are alike one is held: what the next request finds free differs."""
    world = World(a_slice("a", "b"))
    world.taken.put("other", held("a"))
    named, _ = found(world, a_claim(asks(adminAccess=True), asks()))
    assert named == [[["a", "b"]]]
    assert found(world, a_claim(asks(adminAccess=True)))[0] == [[["a"]], [["b"]]]


def test_it_ends_after_as_many_as_are_wanted_and_after_so_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(a_slice(*SIZES))
    assert found(world, a_claim(asks()), most=2) == ([[["a"]], [["b"]]], False)
    monkeypatch.setattr(room, "ALTERNATIVES_STEPS", 3)
    named, are_all = found(world, a_claim(asks(), name="x"), a_claim(asks(), name="y"))
    assert named
    assert not are_all


def test_selectors_that_have_to_be_run_are_work_too_and_are_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "ALTERNATIVES_STEPS", CHUNK_STEPS)
    world = World(a_slice(*(a_device(f"d{i:03}", attributes={"n": i}) for i in range(100))))
    pools = world.inventory.pools_for(NODE, {})
    plans = world.plans(a_claim(asks(" && ".join([f"{A}.n >= 0"] * 60))))

    counts = []
    while not counts or counts[-1] < 100:
        effort = Effort()
        found, are_all = alternatives(pools, plans, world.taken, (NODE, {}), effort, 101)
        assert effort.steps < 3 * CHUNK_STEPS
        assert are_all == (len(found) == 100)
        counts.append(len(found))

    assert len(counts) > 2
    assert counts == sorted(set(counts)), "each time further"


@pytest.mark.parametrize("ends", ["all", "enough", "error"])
def test_a_search_goes_when_it_is_over_without_the_collector_of_garbage(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Search(DeviceSearch):
        def __init__(self, *told: Any) -> None:
            super().__init__(*told)
            made.append(weakref.ref(self))

    monkeypatch.setattr(room, "DeviceSearch", Search)
    monkeypatch.setattr(allocator, "DeviceSearch", Search)
    gc.disable()
    try:
        world, claim = (
            World(a_slice("a", "b")),
            a_claim(asks("nope" if ends == "error" else "true")),
        )
        found(world, claim, most=2 if ends == "all" else 1)
        with contextlib.suppress(AllocationError):
            world.solve(claim)
        assert [ref() for ref in made] == [None, None]
    finally:
        gc.enable()
