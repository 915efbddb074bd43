"""Constraints: what is compared, and that a refusal leaves no trace."""

import random

import pytest

from asched.core.dra.constraints import AllocationConstraint, build
from asched.core.dra.devices import ReadyDevice
from asched.core.dra.pools import ReadySlice
from asched.core.dra.selector_answers import SelectorAnswers
from asched.core.model.claim import Device, DeviceAttribute, DeviceConstraint
from tests.core.dra.worlds import DRIVER, a_device, a_slice


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


def test_a_refused_device_is_not_counted() -> None:
    constraint = a_constraint(distinct=True)
    assert constraint.add("r", "", ready(x=1))
    assert not constraint.add("r", "", ready(x=1))
    constraint.remove("r", "")
    assert constraint.add("r", "", ready(x=1))


def test_of_each_request_the_device_added_last_is_remembered() -> None:
    constraint = a_constraint(distinct=True)
    assert constraint.add("r", "", ready(x=1))
    assert constraint.add("r", "", ready(x=2))
    assert not constraint.add("other", "", ready(x=2))
    assert constraint.add("r", "", ready(x=1))
    constraint.remove("r", "")
    assert constraint.add("other", "", ready(x=2))


def test_alternatives_of_a_request_count_as_one() -> None:
    constraint = a_constraint(distinct=True)
    assert constraint.add("s0", "r", ready(x=1))
    assert constraint.add("s1", "r", ready(x=2))
    assert constraint.add("other", "", ready(x=1))


def test_requests_are_meant_by_name_parent_or_alternative() -> None:
    for names in ("r",), ("r/s",):
        constraint = a_constraint(*names)
        assert not constraint.add("s", "r", ready())  # concerned, and without the attribute
        assert constraint.add("t", "q", ready())  # not concerned
    assert a_constraint("r/s").add("t", "r", ready())  # another alternative


def test_a_published_full_name_comes_before_the_short_one() -> None:
    device = ready(**{f"{DRIVER}/x": 2, "x": 1})
    found = device.attribute(f"{DRIVER}/x")
    assert found is not None
    assert found.int_value == 2
    assert ready(x=1).attribute("other.com/x") is None


def test_an_empty_constraint_is_of_a_later_version() -> None:
    assert build(DeviceConstraint()) is None


def test_an_alternative_that_is_taken_back_makes_room_for_the_next() -> None:
    for distinct in (False, True):
        constraint = a_constraint(distinct=distinct)
        assert constraint.add("s0", "r", ready(x=1))
        constraint.remove("s0", "r")
        assert constraint.add("s1", "r", ready(x=2))
        assert constraint.add("other", "", ready(x=1 if distinct else 2))


def test_of_several_that_are_equal_those_before_the_last_still_count() -> None:
    constraint = a_constraint()
    for _ in range(2):
        assert constraint.add("r", "", ready(x=1))
    constraint.remove("r", "")
    assert not constraint.add("r", "", ready(x=2))


def test_each_type_is_its_own() -> None:
    for first in (1, "1", 2):
        for second in (1, "1", 2):
            constraint = a_constraint()
            values = [ready(x=first), ready(x=second)]
            assert constraint.add("r", "", values[0])
            alike = type(first) is type(second) and first == second
            assert constraint.add("r", "", values[1]) is alike


#: One value of each type; 1 and true are equal in Python alone.
VALUES = (
    DeviceAttribute(string_value="1"),
    DeviceAttribute(int_value=1),
    DeviceAttribute(bool_value=True),
    DeviceAttribute(bool_value=False),
    DeviceAttribute(version_value="1"),
    DeviceAttribute(version_value="1.0.0"),
    DeviceAttribute(int_value=0),
    DeviceAttribute(string_value=""),
)


def of_value(value: DeviceAttribute) -> ReadyDevice:
    record = Device(name="d", attributes={"x": value})
    return ReadyDevice(a_slice(), record, SelectorAnswers())


def test_values_are_equal_if_they_are_of_one_type() -> None:
    for first in VALUES:
        for second in VALUES:
            for distinct in (False, True):
                constraint = a_constraint(distinct=distinct)
                assert constraint.add("r", "", of_value(first))
                expected = (first is second) is not distinct
                assert constraint.add("q", "", of_value(second)) is expected


def test_a_value_of_a_later_type_meets_no_constraint() -> None:
    for distinct in (False, True):
        constraint = a_constraint(distinct=distinct)
        assert not constraint.add("r", "", of_value(DeviceAttribute()))


@pytest.mark.parametrize("seed", range(20))
def test_trials_that_are_taken_back_leave_what_was_before(seed: int) -> None:
    """Against a list of who was added, as upstream reads it: all of them for what has to be equal,
    the last of each request for what has to be distinct.
    """
    rng = random.Random(seed)
    names = rng.choice([(), ("r",), ("r", "q/s"), ("q",)])
    for distinct in (False, True):
        constraint = a_constraint(*names, distinct=distinct)
        added: list[tuple[str, str, bool]] = []
        values: list[int] = []
        last: dict[str, int] = {}
        for _ in range(30):
            if added and rng.random() < 0.4:
                request, parent, is_meant = added.pop()
                constraint.remove(request, parent)
                if is_meant:
                    values.pop()
                    last.pop(parent or request, None)
                continue
            request, parent = rng.choice([("r", ""), ("s", "q"), ("t", "q"), ("r", "p")])
            value = rng.randrange(3)
            full = f"{parent}/{request}" if parent else request
            is_meant = not names or full in names or (parent or request) in names
            expected = not is_meant or (
                value not in last.values() if distinct else set(values) <= {value}
            )
            assert constraint.add(request, parent, ready(x=value)) is expected
            if expected:
                added.append((request, parent, is_meant))
                if is_meant:
                    values.append(value)
                    last[parent or request] = value
