"""Values: versions in their order, equality that never fails, and numbers within their bounds."""

from itertools import pairwise
from typing import Any

import pytest

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    SEMVER_LENGTH_MAX,
    UINT_MAX,
    Optional,
    Quantity,
    Semver,
    Type,
    Uint,
    checked_int,
    checked_uint,
    equals,
    is_number,
    parse_quantity,
    parse_semver,
    type_name,
)


def test_versions_are_ordered_as_the_standard_has_it() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"]
    texts += ["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "2.0.0", "10.0.0"]
    versions = [parse_semver(text) for text in texts]
    assert None not in versions
    for before, after in pairwise([version for version in versions if version is not None]):
        assert before.order < after.order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "01.2.3",
        "1.2.3-01",
        "1.2.3-",
        "1.2.3+",
        "1.2.3.4",
        "a.b.c",
        "1.1٣.0",
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert parse_semver(text) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1", Semver(1, 0, 0, ())),
        ("1.2", Semver(1, 2, 0, ())),
        ("v01.02.03-rc.1+x", Semver(1, 2, 3, ("rc", "1"))),
        ("1.2-rc", None),
        ("x1", None),
    ],
)
def test_a_loose_version_may_be_normalised(text: str, version: Semver | None) -> None:
    assert parse_semver(text, normalize=True) == version


def test_a_version_has_a_bounded_length() -> None:
    longest = "1.0.0-" + "a" * (SEMVER_LENGTH_MAX - 6)
    assert parse_semver(longest) is not None
    assert parse_semver(longest + "a") is None


def test_what_is_no_quantity_is_none() -> None:
    assert parse_quantity("1Ki") == parse_quantity("1024")
    assert parse_quantity("x") is None
    assert parse_quantity("9" * 5000) is None


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (True, "bool"),
        (Uint(1), "uint"),
        (1, "int"),
        (1.0, "double"),
        ("", "string"),
        (b"", "bytes"),
        ([], "list"),
        ({}, "map"),
        (None, "null_type"),
        (NOTHING, "optional_type"),
        (Type("int"), "type"),
        (parse_quantity("1"), "kubernetes.Quantity"),
        (parse_semver("1.0.0"), "kubernetes.Semver"),
    ],
)
def test_every_value_has_a_type(thing: Any, name: str) -> None:
    assert type_name(thing) == name


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (Uint(1), 1, True),
        (True, 1, False),
        ("1", 1, False),
        ([1, "a"], [1.0, "a"], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (NOTHING, NOTHING, True),
        (NOTHING, Optional(is_present=True, value=None), False),
        (Optional(is_present=True, value=1), Optional(is_present=True, value=1.0), True),
        (Optional(is_present=True, value=1), Optional(is_present=True, value=2), False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_equality_never_fails(left: Any, right: Any, equal: bool) -> None:
    assert equals(left, right) is equal
    assert equals(right, left) is equal


def test_numbers_stay_within_their_bounds() -> None:
    assert (checked_int(INT_MIN), checked_int(INT_MAX)) == (INT_MIN, INT_MAX)
    assert (checked_uint(0), checked_uint(UINT_MAX)) == (0, UINT_MAX)
    assert isinstance(checked_uint(1), Uint)
    for out in (INT_MIN - 1, INT_MAX + 1):
        with pytest.raises(CelRuntimeError, match="integer overflow"):
            checked_int(out)
    for out in (-1, UINT_MAX + 1):
        with pytest.raises(CelRuntimeError, match="unsigned integer overflow"):
            checked_uint(out)
    assert is_number(1.5)
    assert not is_number(True)
    assert isinstance(parse_quantity(1), Quantity)
