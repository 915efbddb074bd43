"""Selectors over labels: what each operator accepts, and what never matches."""

import itertools
import random
from typing import Any

import pytest

from asched.core.model.meta import LabelSelector, LabelSelectorRequirement
from asched.core.model.selector import (
    EVERYTHING,
    Matcher,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    Selector,
    compile_node_selector,
    compile_selector,
    compile_term,
    equality_selector,
    integer,
    matches,
    together,
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


def test_all_requirements_of_a_label_selector_hold() -> None:
    selector = compile_selector(
        LabelSelector({"app": "web"}, (written("tier", "NotIn", "db"), written("x", "Exists")))
    )
    assert matches(selector, {"app": "web", "x": ""})
    assert not matches(selector, {"app": "web"})
    assert not matches(selector, {"app": "db", "x": ""})
    assert not matches(selector, {"x": ""})
    assert not matches(selector, {"app": "web", "x": "", "tier": "db"})
    assert not matches(selector, None)


def test_none_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_selector(None) is None
    assert not matches(None, {"a": "b"})
    empty = compile_selector(LabelSelector())
    assert empty == EVERYTHING
    assert EVERYTHING.is_everything
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


def test_who_writes_the_same_in_another_order_has_the_same() -> None:
    one = equality_selector({"a": "1", "b": "2"})
    assert one == equality_selector({"b": "2", "a": "1"})
    assert one.merged(equality_selector({"a": "1"})) == one
    both = equality_selector({"a": "1"}).merged(equality_selector({"b": "2"}))
    assert both == one
    two = [written("a", "NotIn", "2"), written("a", "In", "1", "3")]
    orders = [compile_selector(LabelSelector(None, tuple(some))) for some in (two, two[::-1])]
    assert orders[0] == orders[1]
    assert Selector((need("a", "In", "1"),)) == equality_selector({"a": "1"})


def test_requirements_that_go_together_say_the_same() -> None:
    """Against one by one, over all label sets of three values."""
    rng = random.Random(1)
    operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values = [None, "1", "2", "3"]
    for _ in range(300):
        listed = [
            need(rng.choice("ab"), rng.choice(operators), *rng.sample("123", rng.randint(1, 2)))
            for _ in range(rng.randint(0, 5))
        ]
        merged, matcher = together(listed), Matcher(listed)
        for a, b, c in itertools.product(values, values, [None, "1"]):
            labels = {k: v for k, v in zip("abc", (a, b, c), strict=True) if v is not None}
            wanted = all(requirement.matches(labels) for requirement in listed)
            if any(r.operator in ("Gt", "Lt") and len(r.values) > 1 for r in listed):
                continue
            assert all(requirement.matches(labels) for requirement in merged) == wanted
            assert matcher.matches(labels) == wanted


def test_what_goes_together_is_one() -> None:
    listed = [need("k", "In", "a", "b"), need("k", "In", "b", "c"), need("k", "NotIn", "x")]
    assert together([*listed, need("k", "NotIn", "y")]) == (
        need("k", "In", "b"),
        need("k", "NotIn", "x", "y"),
    )
    assert together(listed[:1]) == tuple(listed[:1])
    same = [need("k", "Gt", "1"), need("k", "Gt", "1"), need("k", "Gt", "5")]
    assert together(same) == (need("k", "Gt", "1"), need("k", "Gt", "5"))


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


def test_any_term_of_a_node_selector_may_match() -> None:
    assert compile_node_selector(None) is None
    assert compile_node_selector(NodeSelector()) == ()
    terms = compile_node_selector(NodeSelector((term(written("a", "Exists")), term(fields=[NAME]))))
    assert terms is not None
    assert [t.matches("n1", {}) for t in terms] == [False, True]


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist", "Gt", "Lt", "In", "NotIn"])
def test_a_valid_requirement_is_not_broken(operator: str) -> None:
    values = () if "xist" in operator else ("5",)
    assert not compile_term(term(written("k", operator, *values))).broken
