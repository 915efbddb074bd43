"""Consumable capacity: what a request takes of a device, and whether so much is left."""

import random
from typing import Any

import pytest

from asched.core.dra import capacity
from asched.core.dra.result import allocation_results
from asched.core.model.claim import AllocationResult, Device
from asched.core.model.decode import decode
from tests.device_builders import World, a_claim, a_device, a_slice, asks, held


def memory(value: str, **policy: Any) -> dict[str, Any]:
    return {"memory": {"value": value, **({"requestPolicy": policy} if policy else {})}}


@pytest.mark.parametrize(
    ("published", "requested", "expected"),
    [
        (memory("80Gi"), "10Gi", "10Gi"),
        (memory("80Gi"), None, "80Gi"),
        (memory("80Gi", default="4Gi"), None, "4Gi"),
        (memory("80Gi"), "81Gi", None),
        (memory("80Gi", validRange={"min": "1Gi"}), "1Mi", "1Gi"),
        (memory("80Gi", validRange={"min": "1Gi", "step": "2Gi"}), "2Gi", "3Gi"),
        (memory("80Gi", validRange={"min": "1Gi", "step": "2Gi"}), "3Gi", "3Gi"),
        (memory("80Gi", validRange={"min": "1Gi", "max": "8Gi"}), "9Gi", None),
        (memory("100", validRange={"min": "10", "step": "15"}), "11", "25"),
        (memory("80Gi", validValues=["1Gi", "4Gi"]), "2Gi", "4Gi"),
        (memory("80Gi", validValues=["1Gi", "4Gi"]), "5Gi", None),
        (memory("80Gi", default="3Gi", validValues=["1Gi", "4Gi"]), None, "3Gi"),
        (memory("80Gi", validValues=["1Gi", "4Gi"]), "1Gi", "1Gi"),
        (memory("80Gi", validValues=["1Gi", "4Gi"]), "4096Mi", "4Gi"),
        (memory("80Gi"), "80Gi", "80Gi"),
        (memory("80Gi", validRange={"min": "1Gi", "max": "8Gi"}), "8Gi", "8Gi"),
        (memory("80Gi", validRange={"max": "8Gi"}), "1Mi", "1Mi"),
        (memory("80Gi", validRange={"min": "1Gi"}), "1024Mi", "1024Mi"),
        (memory("80Gi", validRange={"min": "1Gi", "step": "512Mi"}), "1025Mi", "1536Mi"),
        (memory("80Gi", validRange={"min": "1Gi", "step": "1Mi"}), "1073741825", "1025Mi"),
        # Upstream writes what it rounded to a step in BinarySI.
        (memory("80Gi", validRange={"min": "1024", "step": "1024"}), "1500", "2Ki"),
        (memory("80Gi", validRange={"min": "1Mi", "step": "1048576"}), "1048577", "2Mi"),
        (memory("8", validRange={"min": "0", "step": "2"}), "0", "0"),
        (memory("8", validRange={"min": "0", "step": "2"}), "0.5", "2"),
        (memory("80Gi", validRange={"min": "1", "step": "1Ki"}), "2", "1025"),
        (memory("80Gi", validRange={"max": "8Gi"}), None, None),
        (memory("8Gi", validRange={"max": "8Gi"}), None, "8Gi"),
        (memory("80Gi", validValues=["1Gi", "80Gi"]), None, "80Gi"),
    ],
)
def test_what_a_request_takes(
    published: dict[str, Any], requested: str | None, expected: str | None
) -> None:
    device = decode(Device, {"name": "d", "capacity": published})
    asked = {"memory": requested} if requested else None
    found = capacity.consumption(asked, device)
    assert found == (None if expected is None else {"memory": expected})


@pytest.mark.parametrize("seed", range(8))
def test_amounts_are_those_of_a_plain_count(seed: int) -> None:
    """In whole units, step by step: the least allowed amount that is not below what is asked for;
    and of all that is allowed the device's own capacity is the most.
    """
    rng = random.Random(seed)
    for _ in range(50):
        value, least, step = rng.randrange(1, 40), rng.randrange(1, 9), rng.randrange(1, 7)
        most = rng.randrange(least, 45)
        asked = rng.randrange(45)
        listed = sorted(rng.sample(range(1, 45), 3))
        stepped = rng.random() < 0.5
        if stepped:
            policy: dict[str, Any] = {"validRange": {"min": str(least), "step": str(step)}}
            policy["validRange"]["max"] = str(most)
            allowed = [amount for amount in range(least, most + 1, step) if amount <= value]
        else:
            policy = {"validValues": [str(one) for one in listed]}
            allowed = [amount for amount in listed if amount <= value]
        device = decode(Device, {"name": "d", "capacity": memory(str(value), **policy)})
        expected = next(({"memory": str(one)} for one in allowed if one >= asked), None)
        assert capacity.consumption({"memory": str(asked)}, device) == expected


def test_a_capacity_the_device_lacks_cannot_be_had() -> None:
    device = decode(Device, {"name": "d", "capacity": memory("1Gi")})
    assert capacity.consumption({"cores": "1"}, device) is None


SHARED = a_device("s", allowMultipleAllocations=True, capacity=memory("80Gi", default="1Gi"))
FORTY = {"capacity": {"requests": {"memory": "40Gi"}}}


def test_a_device_is_shared_until_it_is_used_up() -> None:
    world = World(a_slice(SHARED))
    assert world.devices(a_claim(asks(**FORTY), asks(**FORTY))) == [["s", "s"]]
    assert world.devices(a_claim(asks(**FORTY), asks(**FORTY), asks())) is None


def test_shares_of_other_claims_count() -> None:
    world = World(a_slice(SHARED))
    world.taken.put("x", held("s", shareID="1", consumedCapacity={"memory": "50Gi"}))
    assert world.devices(a_claim(asks(**FORTY))) is None
    assert world.devices(a_claim(asks())) == [["s"]]
    world.taken.put("x", None)
    assert world.devices(a_claim(asks(**FORTY))) == [["s"]]


def test_a_device_of_its_own_must_have_the_capacity_asked_for() -> None:
    small = a_device("a", capacity=memory("10Gi"))
    large = a_device("b", capacity=memory("80Gi"))
    world = World(a_slice(small, large))
    assert world.devices(a_claim(asks(**FORTY))) == [["b"]]


def test_results_tell_the_share_and_what_it_takes() -> None:
    world = World(a_slice(SHARED))
    claim = a_claim(asks(**FORTY), asks())
    solution = world.solve(claim)
    assert solution is not None
    (result,) = allocation_results(world.plans(claim), solution, "n1")
    assert isinstance(result, AllocationResult)
    first, second = result.devices.results or ()
    assert first.consumed_capacity == {"memory": "40Gi"}
    assert second.consumed_capacity == {"memory": "1Gi"}
    assert first.share_id
    assert second.share_id not in (None, first.share_id)
