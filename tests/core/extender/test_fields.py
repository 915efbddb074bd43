"""Fields read as Go's decoder would: keys in any case, null as the zero value, its words."""

from collections.abc import Callable
from typing import Any

import pytest

from asched.core.extender.fields import (
    OUTSIDE,
    FieldPlace,
    WireError,
    entries,
    fields,
    integer,
    items,
    mismatch,
    text,
)

PLACE = OUTSIDE.field("Result", "nodes").field("Inner", "score")


def test_a_key_is_matched_in_any_case_and_unknown_ones_are_ignored() -> None:
    known = ("NodeNames", "Error")
    assert fields({"nodenames": 1, "ERROR": 2, "x": 3}, "T", OUTSIDE, known) == {
        "NodeNames": 1,
        "Error": 2,
    }
    assert fields(None, "T", OUTSIDE, known) == {}


def test_a_null_does_not_take_the_place_of_a_value() -> None:
    assert fields({"Error": "x", "error": None}, "T", OUTSIDE, ("Error",)) == {"Error": "x"}
    assert fields({"Error": None}, "T", OUTSIDE, ("Error",)) == {"Error": None}
    assert fields({"Error": None, "error": "x"}, "T", OUTSIDE, ("Error",)) == {"Error": "x"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        ("x", "string"),
        ({}, "object"),
        ([], "array"),
        (1, "number"),
        (1.5, "number"),
    ],
)
def test_what_stands_there_instead_is_named(value: Any, name: str) -> None:
    assert str(mismatch(value, "T", OUTSIDE)) == (
        f"json: cannot unmarshal {name} into Go value of type T"
    )


def test_the_place_is_a_struct_and_a_path() -> None:
    assert FieldPlace("Inner", ("nodes", "score")) == PLACE
    assert str(mismatch("x", "int64", PLACE)) == (
        "json: cannot unmarshal string into Go struct field Inner.nodes.score of type int64"
    )


@pytest.mark.parametrize(
    ("read", "value", "result"),
    [
        (text, None, ""),
        (text, "a", "a"),
        (integer, None, 0),
        (integer, 7, 7),
        (integer, -(2**63), -(2**63)),
        (integer, 2**63 - 1, 2**63 - 1),
    ],
)
def test_scalars(read: Callable[..., Any], value: Any, result: Any) -> None:
    assert read(value, PLACE) == result


@pytest.mark.parametrize(
    ("read", "value", "words"),
    [
        (text, 1, "cannot unmarshal number"),
        (integer, "1", "cannot unmarshal string"),
        (integer, True, "cannot unmarshal bool"),
        (integer, 1.0, "cannot unmarshal number 1.0 into Go struct field Inner.nodes.score"),
        (integer, 2**63, f"cannot unmarshal number {2**63} into Go struct field"),
        (integer, -(2**63) - 1, "cannot unmarshal number"),
    ],
)
def test_a_scalar_of_another_type_is_an_error(
    read: Callable[..., Any], value: Any, words: str
) -> None:
    with pytest.raises(WireError, match=words):
        read(value, PLACE)


def test_outside_of_a_struct_it_is_a_value() -> None:
    with pytest.raises(WireError, match=r"cannot unmarshal number 1\.5 into Go value of type int"):
        integer(1.5, OUTSIDE, "int")


def test_lists_and_maps() -> None:
    assert items(None, "[]T", PLACE) is None
    assert items([1], "[]T", PLACE) == [1]
    assert entries(None, "map", PLACE) == {}
    assert entries({"a": 1}, "map", PLACE) == {"a": 1}
    for read in (items, entries):
        with pytest.raises(WireError, match=r"cannot unmarshal string .* of type T"):
            read("x", "T", PLACE)
    with pytest.raises(WireError, match="cannot unmarshal array"):
        fields([], "T", PLACE, ())
