"""What a search leaves behind when it turns round, and how far it looks: as upstream's does."""

from fractions import Fraction
from typing import Any

import pytest

from asched.core.dra.allocator import CEL_PER_STEP, OutOfSteps, Solution, allocate, allocating
from asched.core.dra.effort import CHUNK_STEPS, Effort
from asched.core.dra.plan import AllocationError
from asched.core.model.claim import ResourceClaim
from tests.core.dra.test_allocator import OTHER_NUMA, SAME_NUMA
from tests.core.dra.test_alternatives import found as all_found
from tests.core.dra.worlds import (
    DRIVER,
    NODE,
    World,
    a_claim,
    a_device,
    a_slice,
    asks,
    first_of,
    held,
)

A = f'device.attributes["{DRIVER}"]'
MEMORY = {"capacity": {"requests": {"memory": "1"}}}


def named(name: str) -> str:
    return f'{A}.name == "{name}"'


def known(name: str, **fields: Any) -> dict[str, Any]:
    """A device that a selector can name."""
    attributes = {"name": name, **fields.pop("attributes", {})}
    return a_device(name, attributes=attributes, **fields)


ONE = {"consumesCounters": [{"counterSet": "set", "counters": {"c": {"value": "1"}}}]}


def counted(*devices: dict[str, Any], amount: int = 1) -> World:
    """Devices of which those with ONE share an amount of a counter."""
    sets = [{"name": "set", "counters": {"c": {"value": str(amount)}}}]
    return World(
        a_slice(*devices, of=2, name="devices"),
        a_slice(of=2, name="counters", sharedCounters=sets),
    )


# --- what is given back ------------------------------------------------------------------------


def shared(name: str, **capacity: Any) -> dict[str, Any]:
    return known(name, allowMultipleAllocations=True, capacity=capacity, **ONE)


SIX = {"value": "20", "requestPolicy": {"default": "6", "validRange": {"min": "1"}}}
NONE = {"value": "4", "requestPolicy": {"default": "0", "validValues": ["0", "1"]}}


def wants(amount: int) -> dict[str, Any]:
    return {"capacity": {"requests": {"memory": str(amount)}}}


def test_the_last_share_that_is_given_back_has_counters_to_be_paid_anew() -> None:
    world = counted(shared("s", memory=SIX, cores=NONE), known("t"))
    assert world.devices(a_claim(asks(), asks(named("s"), **wants(14)))) == [["s", "s"]]
    assert world.devices(a_claim(asks(), asks(named("s"), **wants(15)))) == [["t", "s"]]


def test_counters_are_paid_as_long_as_one_share_of_several_is_left() -> None:
    """The second share of s is given back; the first has paid, and t needs the same counter."""
    world = counted(shared("s", cores=NONE), known("t", **ONE), known("u"))
    claim = a_claim(asks(named("s")), asks(), asks(named("t")))
    assert world.devices(claim) is None
    world = counted(shared("s", cores=NONE), known("t", **ONE), known("u"), amount=2)
    assert world.devices(claim) == [["s", "s", "t"]]


def test_as_long_as_there_is_another_share_counters_are_paid() -> None:
    world = counted(shared("s", memory=SIX, cores=NONE), known("t"))
    claim = a_claim(asks(named("s")), asks(), asks(named("s"), **wants(14)))
    assert world.devices(claim) == [["s", "t", "s"]]


def test_shares_of_nothing_pay_counters_once() -> None:
    world = counted(shared("s", cores=NONE))
    assert world.devices(a_claim(asks(), asks())) == [["s", "s"]]


def test_of_a_device_without_capacities_the_first_share_stays() -> None:
    world = counted(shared("s"), known("t"))
    apart = [{"requests": ["r0", "r1"], "distinctAttribute": f"{DRIVER}/name"}]
    claim = a_claim(asks(), asks(named("s")), constraints=apart)
    assert world.devices(claim) == [["t", "s"]]


def test_who_shares_with_another_claim_pays_no_counters() -> None:
    world = counted(shared("s", memory=SIX))
    world.taken.put("other", held("s", shareID="1", consumedCapacity={"memory": "6"}))
    assert world.devices(a_claim(asks())) == [["s"]]


def test_a_device_that_is_not_shared_any_more_is_held_by_its_shares() -> None:
    """All of its capacity is wanted, and some is taken; its counters are used, too."""
    for amount, cores in ((9, {}), (1, {"cores": {"value": "4"}})):
        plain = known("s", capacity={"memory": {"value": "20"}} | cores, **ONE)
        world = counted(plain, amount=amount)
        share = {"shareID": "1", "consumedCapacity": {"memory": "6"}}
        assert world.devices(a_claim(asks())) == [["s"]]
        world.taken.put("other", held("s", **share))
        assert world.devices(a_claim(asks())) is None
    world = counted(plain, amount=1)
    world.taken.put("other", held("s", shareID="1", consumedCapacity={"memory": "6"}))
    assert world.devices(a_claim(asks(**wants(1)))) is None, "its counter is used"


def test_an_alternative_that_is_given_back_is_forgotten_by_its_constraint() -> None:
    devices = [
        a_device("a", attributes={"numa": 0}),
        a_device("b", attributes={"numa": 1}),
        a_device("c", attributes={"numa": 1}),
    ]
    world = World(a_slice(*devices))
    for names in (["r0"], ["r0/s0"], []):
        same = [{"requests": names, "matchAttribute": f"{DRIVER}/numa"}]
        claim = a_claim(first_of(asks(count=2)), constraints=same)
        assert world.devices(claim) == [["b", "c"]]


def test_an_alternative_that_a_second_constraint_refuses_is_forgotten_by_the_first() -> None:
    devices = [
        a_device("a", attributes={"numa": 5}),
        a_device("b", attributes={"numa": 1, "rack": 1}),
        a_device("c", attributes={"numa": 1, "rack": 2}),
    ]
    world = World(a_slice(*devices))
    both = [
        {"requests": ["r0"], "matchAttribute": f"{DRIVER}/numa"},
        {"requests": ["r0"], "distinctAttribute": f"{DRIVER}/rack"},
    ]
    assert world.devices(a_claim(first_of(asks(count=2)), constraints=both)) == [["b", "c"]]


def test_who_lacks_capacity_is_turned_down_before_he_takes_anything() -> None:
    """Neither a counter nor a place in a constraint."""
    small = known("a", capacity={"memory": {"value": "1"}}, attributes={"numa": 0}, **ONE)
    large = known("b", capacity={"memory": {"value": "9"}}, attributes={"numa": 1}, **ONE)
    asked = a_claim(asks(**wants(5)), constraints=SAME_NUMA)
    assert counted(small, large).devices(asked) == [["b"]]


def test_all_means_all_that_have_the_capacity() -> None:
    devices = [known("a"), known("b", capacity={"memory": {"value": "1"}}), known("c")]
    world = World(a_slice(*devices))
    assert world.devices(a_claim(asks(all=True, **MEMORY))) == [["b"]]
    assert world.devices(a_claim(asks(all=True))) == [["a", "b", "c"]]


def test_all_fails_where_an_earlier_request_took_the_capacity() -> None:
    world = World(a_slice(known("s", allowMultipleAllocations=True, capacity={"memory": SIX})))
    for first, expected in ((14, [["s", "s"]]), (15, None)):
        claim = a_claim(asks(**wants(first)), asks(all=True, **wants(6)))
        assert world.devices(claim) == expected


def test_shared_devices_are_told_apart_however_alike_they_are() -> None:
    two = [a_device(name, allowMultipleAllocations=True, capacity={"memory": SIX}) for name in "ab"]
    assert all_found(World(a_slice(*two)), a_claim(asks()))[0] == [[["a"]], [["b"]]]


# --- too many for a claim ----------------------------------------------------------------------


def test_who_needs_too_many_does_not_try_other_devices() -> None:
    """31 of 40 and two more are too many whichever they are."""
    world = World(a_slice(*(f"d{n:02}" for n in range(40))))
    for second in (asks(count=2), first_of(asks(count=2), asks(count=3))):
        claim = a_claim(first_of(asks(count=31), asks()), second)
        solution = in_steps(world, claim, 40)
        assert solution is not None
        assert solution.selected[0][0] == 1
        assert len(solution.devices[0]) == 3


def in_steps(world: World, claim: ResourceClaim, most: int) -> Solution | None:
    pools = world.inventory.pools_for(NODE, {})
    return allocate(pools, world.plans(claim), world.taken, (NODE, {}), most)


def test_whoever_has_one_alternative_that_is_not_too_large_may_hope_for_other_devices() -> None:
    """31 of 32 leave the second request one, which has to be the first of them."""
    world = World(a_slice(*(known(f"d{n:02}") for n in range(32))))
    for second in ([asks(named("d00")), asks(count=2)], [asks(count=2), asks(named("d00"))]):
        found = world.devices(a_claim(asks(count=31), first_of(*second)))
        assert found == [[*(f"d{n:02}" for n in range(1, 32)), "d00"]]


# --- steps -------------------------------------------------------------------------------------


def looks(count: int, wanted: int, at: int = 0) -> int:
    """How many devices are looked at for every choice of so many, none in vain."""
    if not wanted:
        return 0
    firsts = range(at, count - wanted + 1)
    return sum(1 + looks(count, wanted - 1, first + 1) for first in firsts)


@pytest.mark.parametrize("wanted", [1, 3, 7, 11, 12])
def test_choices_that_cannot_be_completed_are_not_begun(wanted: int) -> None:
    """Twelve devices, and a second request that nothing can meet."""
    world = World(a_slice(*(f"d{n:02}" for n in range(12))))
    claim = a_claim(asks(count=wanted), asks(all=True, **MEMORY))
    effort, stops, solution = driven(world, claim)
    assert (solution, stops) == (None, looks(12, wanted) // CHUNK_STEPS)
    assert effort.steps == 12 + looks(12, wanted)


def driven(world: World, claim: ResourceClaim) -> tuple[Effort, int, Solution | None]:
    """A search to its end: its effort, and how often it stopped until then."""
    effort, stops = Effort(), 0
    pools = world.inventory.pools_for(NODE, {})
    steps = allocating(pools, world.plans(claim), world.taken, (NODE, {}), 0, effort)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return effort, stops, end.value
        assert effort.tell() >= CHUNK_STEPS
        stops += 1


MANY = 2 * CHUNK_STEPS + 100


@pytest.mark.parametrize(
    "request_",
    [asks("false"), asks(**MEMORY), asks(all=True, **MEMORY), asks("false", all=True)],
    ids=["not selected", "without capacity", "all with capacity", "all selected"],
)
def test_a_device_is_a_step_and_a_search_stops_after_so_many(request_: Any) -> None:
    """Whyever it is turned down. What selectors said was heard before, so that it costs nothing."""
    world = World(a_slice(*(f"d{n:04}" for n in range(MANY))))
    driven(world, a_claim(request_))
    effort, stops, solution = driven(world, a_claim(request_))
    assert (solution, effort.steps, stops) == (None, MANY, 2)


def test_selectors_are_steps_by_what_they_cost() -> None:
    text = " && ".join([f"{A}.x < 9"] * 5)
    devices = [a_device(f"d{n}", attributes={"x": n}) for n in range(12)]
    costs = [one.ask(text)[1] // CEL_PER_STEP for one in first_pool(World(a_slice(*devices)))]
    assert min(costs) > 0
    effort, _, solution = driven(World(a_slice(*devices)), a_claim(asks(text, count=10)))
    assert solution is None
    # Ten are wanted of nine: the ninth device and all before it are chosen once and again.
    assert effort.steps > sum(costs) + 12
    plain, _, _ = driven(World(a_slice(*devices)), a_claim(asks("false", count=10)))
    spent = sum(one.ask("false")[1] // CEL_PER_STEP for one in first_pool(World(a_slice(*devices))))
    assert plain.steps == 12 + spent


def first_pool(world: World) -> tuple[Any, ...]:
    (pool,) = world.inventory.pools_for(NODE, {})
    return pool.devices


def test_a_selector_that_fails_costs_what_it_took() -> None:
    world, other = (World(a_slice(a_device("a", attributes={"x": 1}), "b")) for _ in range(2))
    text = " && ".join([f"{A}.x == 1"] * 8)
    costs = [one.ask(text)[1] // CEL_PER_STEP for one in first_pool(other)]
    assert min(costs) > 0
    effort = Effort()
    pools, plans = world.inventory.pools_for(NODE, {}), world.plans(a_claim(asks(text, count=2)))
    with pytest.raises(AllocationError, match="no such key: x"):
        for _ in allocating(pools, plans, world.taken, (NODE, {}), 0, effort):
            pass
    assert effort.steps == sum(costs) + 1, "of the second nothing but the selector was looked at"


@pytest.mark.parametrize(
    ("claim", "enough"),
    [
        (a_claim(asks(all=True)), 3),
        (a_claim(asks(count=3)), 3),
        (a_claim(asks(), asks()), 2),
        (a_claim(asks(count=2), constraints=OTHER_NUMA), 3),
    ],
    ids=["all", "three", "two requests", "one in vain"],
)
def test_a_search_that_looks_at_as_many_as_it_may_is_given_up(
    claim: ResourceClaim, enough: int
) -> None:
    devices = [a_device(name, attributes={"numa": n // 2}) for n, name in enumerate("abc")]
    world = World(a_slice(*devices))
    assert in_steps(world, claim, enough + 1) is not None
    assert in_steps(world, claim, 0) is not None
    with pytest.raises(OutOfSteps):
        in_steps(world, claim, enough)


def test_amounts_are_exact() -> None:
    """Ten tenths are one."""
    world = World(
        a_slice(
            known("s", allowMultipleAllocations=True, capacity={"memory": {"value": "1"}}),
        )
    )
    for tenth in range(10):
        assert world.devices(a_claim(asks(capacity={"requests": {"memory": "0.1"}})))
        share = {"shareID": str(tenth), "consumedCapacity": {"memory": "100m"}}
        world.taken.put(f"c{tenth}", held("s", **share))
    assert world.taken.capacity.popitem()[1] == {"memory": Fraction(1)}
    assert world.devices(a_claim(asks(capacity={"requests": {"memory": "0"}})))
