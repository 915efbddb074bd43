"""What claims hold: counted in, replaced, given back."""

from asched.core.dra.devices import DeviceId
from asched.core.dra.taken import Taken
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
