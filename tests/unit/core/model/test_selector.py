"""Selectors over labels: what each operator accepts, and what never matches."""

from typing import Any

import pytest

from asched.core.model.meta import LabelSelector, LabelSelectorRequirement
from asched.core.model.selector import (
    NodeSelectorTerm,
    Requirement,
    Selector,
    compile_selector,
    compile_term,
    equality_selector,
    integer,
    matches,
)


def need(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, frozenset(values))


def written(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, values or None)


@pytest.mark.parametrize(
    ("requirement", "accepted"),
    [
        (need("k", "In", "a", "b"), ["a"]),
        (need("k", "NotIn", "a", "b"), [None, "5", "7", "x"]),
        (need("k", "Exists"), ["a", "5", "7", "x"]),
        (need("k", "DoesNotExist"), [None]),
        (need("k", "Gt", "5"), ["7"]),
        (need("k", "Lt", "7"), ["5"]),
        (need("k", "Gt", "x"), []),
        (need("k", "Gt"), []),
        (need("k", "Near", "5"), []),
    ],
)
def test_what_each_operator_accepts(requirement: Requirement, accepted: list[Any]) -> None:
    values = [None, "a", "5", "7", "x"]
    assert [value for value in values if requirement.accepts(value)] == accepted
    assert requirement.matches({"k": "a"}) == ("a" in accepted)
    assert requirement.matches({}) == (None in accepted)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("5.0", None),
        ("", None),
        (" 5", None),
        ("٣", None),  # an Arabic three
        ("0" * 62 + "5", 5),
        ("9" * 5_000, None),
    ],
)
def test_a_label_is_a_number_of_64_bits_or_none(text: str, number: int | None) -> None:
    assert integer(text) == number


def test_none_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) is None
    assert not matches(None, {"a": "b"})
    empty = compile_selector(LabelSelector())
    assert empty == Selector(())
    assert empty.is_everything
    assert matches(empty, None)
    assert not equality_selector({"a": "b"}).is_everything
    assert equality_selector(None).is_everything


@pytest.mark.parametrize(
    "requirement", [written("k", "Gt", "5"), written("k", "In"), written("k", "NotIn")]
)
def test_a_label_selector_that_makes_no_sense_is_an_error(
    requirement: LabelSelectorRequirement,
) -> None:
    with pytest.raises(ValueError):
        compile_selector(LabelSelector(None, (requirement,)))


# --- node selectors ------------------------------------------------------------------------------


def term(*expressions: Any, fields: Any = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(tuple(expressions) or None, tuple(fields) or None)


NAME = written("metadata.name", "In", "n1")


def test_a_term_without_any_requirement_matches_nothing() -> None:
    empty = compile_term(term())
    assert empty.is_empty
    assert not empty.matches("n1", {})


def test_expressions_and_fields_of_a_term_hold() -> None:
    both = compile_term(term(written("zone", "In", "a"), fields=[NAME]))
    assert both.matches("n1", {"zone": "a"})
    assert not both.matches("n2", {"zone": "a"})
    assert not both.matches("n1", {"zone": "b"})
    assert not both.is_empty
    two = compile_term(term(written("zone", "In", "a"), written("disk", "Exists")))
    assert not two.is_empty
    assert two.matches("n1", {"zone": "a", "disk": ""})
    assert not two.matches("n1", {"zone": "a"})
    assert not compile_term(term(fields=[NAME])).is_empty


@pytest.mark.parametrize(
    "broken",
    [
        term(written("k", "In")),
        term(written("k", "NotIn")),
        term(written("k", "Exists", "a")),
        term(written("k", "DoesNotExist", "a")),
        term(written("k", "Gt", "a")),
        term(written("k", "Gt", "1", "2")),
        term(written("k", "Lt")),
        term(written("k", "Near", "1")),
        term(written("k", "Gt", "9" * 5_000)),  # of a wish the API server checks no values
        term(fields=[written("metadata.uid", "In", "n1")]),
        term(fields=[written("metadata.name", "Exists")]),
        term(fields=[written("metadata.name", "Gt", "1")]),
        term(fields=[written("metadata.name", "In", "n1", "n2")]),
        term(fields=[NAME, written("metadata.name", "In")]),
    ],
)
def test_a_broken_term_matches_nothing_at_all(broken: NodeSelectorTerm) -> None:
    compiled = compile_term(broken)
    assert compiled.broken
    assert not compiled.is_empty
    assert not compiled.matches("n1", {"k": "a"})
