"""Trees evaluated: logic that forgives, look-ups through what may be absent, and what it costs."""

from typing import Any

import pytest

from asched.core.dra.cel.evaluate import Compiler
from asched.core.dra.cel.frame import Frame
from asched.core.dra.cel.parser import parse
from asched.core.dra.cel.values import CelRuntimeError, CelSyntaxError
from tests.unit.core.dra.cel.valued import DEVICE, value

A = 'device.attributes["gpu.example.com"]'
BAD = "(1 / 0 == 1)"


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (f"false && {BAD}", False),
        (f"{BAD} && false", False),
        (f"true || {BAD}", True),
        (f"{BAD} || true", True),
        (f"{BAD} || {BAD} || true", True),
        ("true && true && false", False),
        ("false || false", False),
        (f"true ? 1 : {BAD}", 1),
        (f"false ? {BAD} : 2", 2),
        ("1 && false", False),
        ("device.driver", "gpu.example.com"),
        ("device.allowMultipleAllocations", False),
        (f"{A}.model", "A100"),
        (f"{A}.?model.hasValue()", True),
        (f"{A}.?absent.hasValue()", False),
        (f'{A}[?"index"].value()', 3),
        ('device.attributes[?"x.com"].?y.hasValue()', False),
        ("[5][?1].hasValue()", False),
        ("optional.of({'a': 1}).a.value()", 1),
        ("optional.of([7])[0].value()", 7),
        ("optional.none().a.hasValue()", False),
        (f"has({A}.model)", True),
        (f"has({A}.absent)", False),
        ("has(device.driver)", True),
        ("has(optional.of({'a': 1}).a)", True),
        ("has(optional.of({'a': 1}).b)", False),
        ("optional.none().orValue(5)", 5),
        ("optional.of(1).orValue(5)", 1),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("optional.of(1).or(optional.of(2)).value()", 1),
        ("[1, ?optional.none(), ?optional.of(2)]", [1, 2]),
        ("{'a': 1, ?'b': optional.none(), ?'c': optional.of(3)}", {"a": 1, "c": 3}),
        ("type(type(1)) == type", True),
        ("cel.bind(x, 2, x * x)", 4),
    ],
)
def test_what_it_comes_to(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f"true && {BAD}", "division by zero"),
        (f"{BAD} || false", "division by zero"),
        ("true && 1", "_&&_(int)"),
        ("1 ? 2 : 3", "_?_:_(int)"),
        ("(1).a", "cannot select field 'a'"),
        ("has([1].a)", "has() on field 'a'"),
        ("has(optional.of(1).a)", "has() on field 'a'"),
        ("has(optional.of('xyz').x)", "has() on field 'x'"),
        ("(1).orValue(2)", "orValue(int)"),
        ("[?1]", "?(int)"),
        ("{?'a': 1}", "?(int)"),
        ("{'a': 1, 'a': 2}", "duplicate key in map: a"),
        ("{1: 1, 1u: 2}", "duplicate key in map: 1"),
        (f"{A}.absent", "no such key: absent"),
        ("size(1, 2)", "size(int, int)"),
    ],
)
def test_what_has_no_value_says_why(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        value(expression)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("nope", "undeclared reference to 'nope'"),
        ("device.nope", "undefined field 'nope' of device"),
        ("has(device.nope)", "undefined field 'nope' of device"),
        ('device["driver"]', "device has fields, not keys"),
        ("nope()", "function 'nope' is not supported"),
        ('"a".nope()', "method 'nope' is not supported"),
        ("math.abs(1)", "function 'math.abs' is not supported"),
        ("has(1)", "has() needs a field selection"),
        ("has(a.b, c.d)", "has() needs a field selection"),
        ("optional.of(1).orValue()", "orValue needs one argument"),
        ("cel.bind(1, 2, 3)", "expected a name to bind"),
        ("[1].all(x, true) && x", "undeclared reference to 'x'"),
    ],
)
def test_what_selectors_may_not_use_is_refused_before_it_runs(expression: str, words: str) -> None:
    with pytest.raises(CelSyntaxError) as error:
        Compiler(expression).compile(parse(expression))
    assert words in str(error.value)


def cost(expression: str) -> int:
    frame = Frame({"device": DEVICE})
    Compiler(expression).compile(parse(expression))(frame)
    return frame.spent


def test_once_the_limit_is_passed_nothing_forgives() -> None:
    with pytest.raises(CelRuntimeError, match="cost limit"):
        value("device.driver == 'x' || true", cost_max=1)
