"""Other devices than the first: all that leave others something else, and none twice."""

from asched.core.dra.alternatives import alternatives
from asched.core.dra.effort import Effort
from asched.core.model.claim import ResourceClaim
from tests.core.dra.sizes import BIG, SAME_NUMA, SIZES, SMALL
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
