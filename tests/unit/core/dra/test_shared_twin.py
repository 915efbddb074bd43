"""Histories of claims of shared and of partitioned devices, against a twin that tries everything.

Nothing is above its capacity, no counter below zero, and the devices are the ones that the twin
chooses. `python -m tests.unit.core.dra.test_shared_twin 20000` plays longer.
"""

import random
import sys
from typing import Any

import pytest

from asched.core.dra.result import allocation_results
from asched.core.model.claim import AllocationResult
from tests.conformance.twins import shared_allocation as twin
from tests.device_builders import DRIVER, World, a_claim, a_class, a_device, a_slice, asks

KINDS = ("whole", "shared", "part")
CLAIMS, SEEDS = 6, range(30)
KIND = f'device.attributes["{DRIVER}"].kind'


def random_capacity(rng: random.Random) -> dict[str, Any]:
    value = rng.randrange(4, 41)
    policy: dict[str, Any] = {}
    shape = rng.randrange(4)
    if shape == 1:
        allowed = sorted({rng.randrange(1, value + 1) for _ in range(3)})
        policy = {"default": str(allowed[0]), "validValues": [str(one) for one in allowed]}
    elif shape > 1:
        least = rng.randrange(1, 5)
        limits = {"min": str(least)}
        if rng.random() < 0.7:
            limits["step"] = str(rng.randrange(1, 5))
        if rng.random() < 0.5:
            limits["max"] = str(rng.randrange(least, value + 1))
        policy = {"default": str(least), "validRange": limits}
    return {"value": str(value), **({"requestPolicy": policy} if policy else {})}


def random_device(rng: random.Random, name: str, counters: list[str]) -> dict[str, Any]:
    kind = rng.choice(KINDS)
    device = a_device(name, attributes={"kind": kind})
    if kind == "shared":
        device["allowMultipleAllocations"] = True
        names = rng.sample(("memory", "cores"), rng.randrange(1, 3))
        device["capacity"] = {one: random_capacity(rng) for one in names}
    elif rng.random() < 0.3:
        device["capacity"] = {"memory": {"value": str(rng.randrange(4, 41))}}
    if kind == "part" or (kind == "shared" and rng.random() < 0.5):
        used = {one: {"value": str(rng.randrange(1, 5))} for one in rng.sample(counters, 1)}
        device["consumesCounters"] = [{"counterSet": "s", "counters": used}]
    return device


def random_request(rng: random.Random) -> twin.Asked:
    kind = rng.choice(("", "shared", *KINDS))
    most = 2 if kind in {"", "shared"} else rng.choice((0, 0, 0, 1))
    names = rng.sample(("memory", "cores"), rng.randrange(most + 1))
    amounts = {one: rng.choice((rng.randrange(1, 8), rng.randrange(1, 30))) for one in names}
    return twin.Asked(rng.choice((1, 1, 1, 2)), kind, amounts)


def as_request(asked: twin.Asked) -> dict[str, Any]:
    selectors = [f'{KIND} == "{asked.kind}"'] if asked.kind else []
    request = asks(*selectors, count=asked.count)
    if asked.amounts:
        amounts = {name: str(amount) for name, amount in asked.amounts.items()}
        request["capacity"] = {"requests": amounts}
    return request


def parts_of(result: AllocationResult) -> list[twin.Part]:
    return [
        twin.Part(
            one.device,
            None
            if one.share_id is None
            else {name: int(str(amount)) for name, amount in (one.consumed_capacity or {}).items()},
        )
        for one in result.devices.results or ()
    ]


def play(seed: int) -> tuple[int, int]:
    """How many claims there were, and how many got devices."""
    rng = random.Random(seed)
    amounts = {name: rng.randrange(2, 9) for name in ("m", "n")}
    devices = [random_device(rng, f"d{at}", list(amounts)) for at in range(rng.randrange(3, 9))]
    shared = {name: {"value": str(amount)} for name, amount in amounts.items()}
    world = World(
        a_slice(*devices, of=2, name="a"),
        a_slice(of=2, name="b", sharedCounters=[{"name": "s", "counters": shared}]),
        classes=(a_class(),),
    )
    pool = twin.Pool(devices, amounts)
    held: dict[str, list[twin.Part]] = {}
    placed = 0
    for number in range(CLAIMS):
        if held and rng.random() < 0.3:
            gone = rng.choice(sorted(held))
            world.taken.put(gone, None)
            del held[gone]
        requests = [random_request(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        claim = a_claim(*map(as_request, requests), name=f"c{number}")
        others = [part for parts in held.values() for part in parts]
        expected = twin.allocate(pool, requests, others)
        solution = world.solve(claim)
        if solution is None:
            assert expected is None, (seed, number)
            continue
        (result,) = allocation_results(world.plans(claim), solution, "n1")
        found = parts_of(result)
        assert found == expected, (seed, number)
        placed += 1
        held[claim.uid] = found
        world.taken.put(claim.uid, result)
        shares = [one.share_id for one in result.devices.results or () if one.share_id]
        assert len(set(shares)) == len(shares)
        assert twin.keeps_rules(pool, [part for parts in held.values() for part in parts])
    return CLAIMS, placed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_claims_gets_the_devices_that_its_twin_gets(seed: int) -> None:
    claims, _ = play(seed)
    assert claims == CLAIMS


def test_some_claims_are_served_and_some_are_not() -> None:
    played = [play(seed) for seed in SEEDS]
    claims, placed = (sum(column) for column in zip(*played, strict=True))
    assert claims // 4 < placed < claims * 3 // 4


if __name__ == "__main__":
    first, last = 1_000_000, 1_000_000 + int(sys.argv[1])
    total = [play(seed) for seed in range(first, last)]
    print(*(sum(column) for column in zip(*total, strict=True)))  # noqa: T201
