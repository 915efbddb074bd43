"""What claims hold: counted in, replaced, given back."""

import random
from collections import Counter

import pytest

from asched.core.dra.devices import DeviceId
from asched.core.dra.taken import Taken
from asched.core.model.claim import AllocationResult
from asched.core.model.decode import decode
from asched.core.model.quantity import parse
from tests.core.dra.worlds import DRIVER, NODE, held

A = DeviceId(DRIVER, NODE, "a")
B = DeviceId(DRIVER, NODE, "b")


def test_a_device_is_taken_until_its_claim_lets_go() -> None:
    taken = Taken()
    taken.put("x", held("a"))
    assert taken.is_used(A)
    taken.put("x", None)
    assert not taken.is_used(A)
    assert taken.allocation_of("x") is None


def test_a_new_allocation_replaces_the_old_one() -> None:
    taken = Taken()
    taken.put("x", held("a"))
    taken.put("x", held("b"))
    assert not taken.is_used(A)
    assert taken.is_used(B)


def test_two_claims_on_one_device_must_both_let_go() -> None:
    taken = Taken()
    taken.put("x", held("a"))
    taken.put("y", held("a"))
    taken.put("x", None)
    assert taken.is_used(A)
    taken.put("y", None)
    assert not taken.is_used(A)


def test_admin_access_takes_nothing() -> None:
    taken = Taken()
    taken.put("x", held("a", adminAccess=True))
    assert not taken.is_used(A)


def test_shares_add_up_and_leave_no_trace() -> None:
    taken = Taken()
    taken.put("x", held("a", shareID="1", consumedCapacity={"memory": "1Gi"}))
    taken.put("y", held("a", shareID="2", consumedCapacity={"memory": "2Gi"}))
    assert A not in taken.devices
    assert taken.capacity[A] == {"memory": parse("3Gi")}
    taken.put("x", None)
    taken.put("y", None)
    assert not taken.capacity
    assert not taken.is_used(A)


def test_the_log_names_touched_devices_and_is_silent_for_equal_allocations() -> None:
    taken = Taken()
    taken.put("x", held("a"))
    end = taken.log.end
    taken.put("x", held("a"))
    assert taken.log.since(end) == []
    taken.put("x", held("a", pool="q"))
    assert taken.log.since(end) == [DeviceId(DRIVER, NODE, "a"), DeviceId(DRIVER, "q", "a")]


def test_a_device_is_used_as_long_as_there_is_a_share_of_it() -> None:
    """Of no capacity at all; and an admin's access to others in between counts nowhere."""
    taken = Taken()
    admin = {"driver": DRIVER, "pool": NODE, "device": "b", "adminAccess": True}
    share = {"driver": DRIVER, "pool": NODE, "device": "a", "shareID": "1"}
    both = decode(AllocationResult, {"devices": {"results": [admin, share]}})
    taken.put("x", both)
    assert (taken.is_used(A), taken.is_used(B)) == (True, False)
    assert A not in taken.devices
    taken.put("x", None)
    assert not taken.is_used(A)
    assert not taken.capacity


def test_a_claim_without_devices_holds_nothing_and_is_remembered() -> None:
    taken, nothing = Taken(), AllocationResult()
    taken.put("x", nothing)
    assert taken.allocation_of("x") is nothing
    taken.put("y", None)
    assert taken.allocation_of("y") is None
    assert taken.log.end == 0


@pytest.mark.parametrize("seed", range(20))
def test_what_is_taken_is_the_sum_of_what_claims_hold(seed: int) -> None:
    rng = random.Random(seed)
    taken = Taken()
    holds: dict[str, AllocationResult] = {}
    for _ in range(40):
        uid, results = rng.choice("xyz"), []
        for name in rng.sample("abc", rng.randrange(3)):
            result = {"driver": DRIVER, "pool": NODE, "device": name}
            kind = rng.randrange(4)
            if kind == 0:
                result["adminAccess"] = True
            elif kind > 1:
                amounts = {one: str(rng.randrange(3)) for one in rng.sample("mn", kind - 1)}
                result |= {"shareID": "1", "consumedCapacity": amounts}
            results.append(result)
        holds.pop(uid, None)
        made = None
        if rng.random() < 0.7:
            made = holds[uid] = decode(AllocationResult, {"devices": {"results": results}})
        taken.put(uid, made)
        counted = [r for one in holds.values() for r in one.devices.results or ()]
        counted = [r for r in counted if not r.admin_access]
        alone = Counter(r.device for r in counted if r.share_id is None)
        shares = Counter(r.device for r in counted if r.share_id is not None)
        assert {device.device: n for device, n in taken.devices.items()} == alone
        assert {device.device: n for device, n in taken.shared.items()} == shares
        sums = Counter[tuple[str, str]]()
        for r in counted:
            for name, amount in (r.consumed_capacity or {}).items():
                sums[r.device, name] += int(str(amount))
        assert {(d.device, n): a for d, of in taken.capacity.items() for n, a in of.items()} == {
            key: amount for key, amount in sums.items() if amount
        }
