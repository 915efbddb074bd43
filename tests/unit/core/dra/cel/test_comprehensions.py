"""Macros that bind a name: what they walk, when they end, and what their names hide."""

from typing import Any

import pytest

from asched.core.dra.cel.evaluate import Compiler
from asched.core.dra.cel.frame import Frame
from asched.core.dra.cel.parser import parse
from asched.core.dra.cel.values import CelRuntimeError, CelSyntaxError
from tests.unit.core.dra.cel.valued import value


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[1, 2].all(x, x > 0)", True),
        ("[1, 2].all(x, x > 1)", False),
        ("[].all(x, false)", True),
        ("[1, 2].exists(x, x == 2)", True),
        ("[1, 2].exists(x, x == 3)", False),
        ("[].exists(x, true)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 1].all(x, 1 / x == 5)", False),
        ("[1, 2, 2].exists_one(x, x == 1)", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("[1].existsOne(x, x == 2)", False),
        ("[1, 2, 3].filter(x, x % 2 == 1)", [1, 3]),
        ("{'a': 1, 'b': 2}.filter(k, k != 'a')", ["b"]),
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("{1: 'a'}.map(k, k)", [1]),
        ("{true: 'a'}.map(k, k)", [True]),
        ("[5, 6].all(i, v, v - i == 5)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[7].exists_one(i, v, i == 0 && v == 7)", True),
        ("[1].map(x, [2].map(x, x * 10)[0] + x)", [21]),
        ("optional.of(2).optMap(x, x + 1).value()", 3),
        ("optional.none().optMap(x, x + 1).hasValue()", False),
        ("optional.of(2).optFlatMap(x, optional.of(x + 1)).value()", 3),
        ("optional.of(2).optFlatMap(x, optional.none()).hasValue()", False),
        ("cel.bind(x, [1, 2], x.size())", 2),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x) + x)", 3),
    ],
)
def test_what_they_come_to(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("[1, 0].all(x, 1 / x == 1)", "division by zero"),
        ("[0].exists(x, 1 / x == 1)", "division by zero"),
        ("[0, 'a'].all(x, 1 / x == 1)", "division by zero"),
        ("[1].all(x, x)", "all(int)"),
        ("[1].exists_one(x, x)", "exists_one(int)"),
        ("[1].filter(x, x)", "filter(int)"),
        ("[1].map(x, x, x)", "map(int)"),
        ("(1).all(x, true)", "neither list nor map"),
        ('"ab".map(x, x)', "neither list nor map"),
        ("(1).optMap(x, x)", "optMap(int)"),
        ("optional.of(1).optFlatMap(x, x)", "optFlatMap(int)"),
    ],
)
def test_what_has_no_value_says_why(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        value(expression)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "expression", ["[1].all(1, true)", "[1].map('x', 1)", "cel.bind(x, 1)", "cel.bind(1, 2, 3)"]
)
def test_what_binds_no_name_is_refused(expression: str) -> None:
    with pytest.raises(CelSyntaxError):
        value(expression)


def cost(expression: str) -> int:
    frame = Frame({})
    Compiler(expression).compile(parse(expression))(frame)
    return frame.spent


def test_the_cost_limit_ends_a_walk() -> None:
    numbers = "[" + ", ".join(map(str, range(50))) + "]"
    with pytest.raises(CelRuntimeError, match="cost limit"):
        value(f"{numbers}.exists(x, x == 49)", cost_max=60)
