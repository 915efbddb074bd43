"""Constraints: what is compared, and that a refusal leaves no trace."""

from asched.core.dra.allocator import AllocationConstraint, build
from asched.core.dra.devices import ReadyDevice
from asched.core.dra.pools import ReadySlice
from asched.core.model.claim import DeviceConstraint
from tests.device_builders import DRIVER, a_device, a_slice


def ready(**attributes: str | int) -> ReadyDevice:
    return ReadySlice(a_slice(a_device("d", attributes=attributes))).devices[0]


def a_constraint(*requests: str, distinct: bool = False) -> AllocationConstraint:
    attribute = f"{DRIVER}/x"
    built = build(
        DeviceConstraint(requests=requests, distinct_attribute=attribute)
        if distinct
        else DeviceConstraint(requests=requests, match_attribute=attribute)
    )
    assert built is not None
    return built


def test_values_of_different_types_are_not_equal() -> None:
    constraint = a_constraint()
    assert constraint.add("r", "", ready(x=1))
    assert not constraint.add("r", "", ready(x="1"))
    assert constraint.add("r", "", ready(x=1))


def test_of_each_request_the_device_added_last_is_remembered() -> None:
    constraint = a_constraint(distinct=True)
    assert constraint.add("r", "", ready(x=1))
    assert constraint.add("r", "", ready(x=2))
    assert not constraint.add("other", "", ready(x=2))
    assert constraint.add("r", "", ready(x=1))
    constraint.remove("r", "")
    assert constraint.add("other", "", ready(x=2))


def test_a_published_full_name_comes_before_the_short_one() -> None:
    device = ready(**{f"{DRIVER}/x": 2, "x": 1})
    found = device.attribute(f"{DRIVER}/x")
    assert found is not None
    assert found.int_value == 2
    assert ready(x=1).attribute("other.com/x") is None


def test_each_type_is_its_own() -> None:
    for first in (1, "1", 2):
        for second in (1, "1", 2):
            constraint = a_constraint()
            values = [ready(x=first), ready(x=second)]
            assert constraint.add("r", "", values[0])
            alike = type(first) is type(second) and first == second
            assert constraint.add("r", "", values[1]) is alike
