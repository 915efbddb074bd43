"""Operators: arithmetic within 64 bits, order, membership and look-ups of values of all kinds."""

import math
from fractions import Fraction
from typing import Any

import pytest

from asched.core.dra.cel.errors import CelRuntimeError
from tests.core.dra.cel.valued import value

INT_MAX, UINT_MAX = 2**63 - 1, 2**64 - 1


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 + 2", 3),
        ("1u + 2u", 3),
        ("1.5 + 2.0", 3.5),
        ('"a" + "b"', "ab"),
        ('b"a" + b"b"', b"ab"),
        ("[1] + [2]", [1, 2]),
        ("5 - 7", -2),
        ("3 * -4", -12),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 / -2", 3),
        ("7u / 2u", 3),
        ("7.0 / 2.0", 3.5),
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("1.0 / -0.0", -math.inf),
        ("-1.0 / -0.0", math.inf),
        ("7 % 3", 1),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-(5)", -5),
        ("-(1.5)", -1.5),
        ("!true", False),
        (f"{INT_MAX}", INT_MAX),
        (f"{UINT_MAX}u", UINT_MAX),
    ],
)
def test_arithmetic(expression: str, result: Any) -> None:
    found = value(expression)
    assert found == result
    assert isinstance(found, type(result))


def test_nothing_by_nothing_is_no_number() -> None:
    assert math.isnan(value("0.0 / 0.0"))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f"{INT_MAX} + 1", "integer overflow"),
        (f"-{INT_MAX} - 2", "integer overflow"),
        (f"{INT_MAX} * 2", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        (f"{UINT_MAX}u + 1u", "unsigned integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("-9223372036854775808 % -1", "integer overflow"),
        ("1u / 0u", "division by zero"),
        ("1 + 1u", "_+_(int, uint)"),
        ("1 + 1.0", "_+_(int, double)"),
        ('"a" + 1', "_+_(string, int)"),
        ("true + true", "_+_(bool, bool)"),
        ('"a" - "b"', "_-_(string, string)"),
        ("[1] * [2]", "_*_(list, list)"),
        ("1 / 1u", "_/_(int, uint)"),
        ("1.0 % 1.0", "_%_(double, double)"),
        ("-(1u)", "-_(uint)"),
        ("-true", "-_(bool)"),
        ("!1", "!_(int)"),
        ('1 < "a"', "_<_(int, string)"),
        ("[1] < [2]", "_<_(list, list)"),
        ('"a" < b"b"', "_<_(string, bytes)"),
        ("1 in 2", "@in(int, int)"),
        ("{[1]: 2}", "unsupported key type list"),
        ("1[0]", "_[_](int, int)"),
        ('[1]["a"]', "unsupported index type in list: str"),
        ("[1][0.5]", "unsupported index type in list: float"),
        ("[1][1]", "index out of bounds: 1"),
        ("[1][-1]", "index out of bounds: -1"),
        ('{"a": 1}["b"]', "no such key: b"),
    ],
)
def test_what_has_no_value_says_why(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        value(expression)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("expression", "is_true"),
    [
        ("1 < 2", True),
        ("2 < 2", False),
        ("2 <= 2", True),
        ("3 <= 2", False),
        ("3 > 2", True),
        ("2 > 2", False),
        ("2 >= 2", True),
        ("1 >= 2", False),
        ("1 < 2u", True),
        ("1.5 > 1", True),
        ('"a" < "b"', True),
        ("false < true", True),
        ("1 == 1.0", True),
        ("1 != 1u", False),
        ('1 == "1"', False),
        ('1 != "1"', True),
        ("[1, [2]] == [1, [2.0]]", True),
        ("[1] == [1, 2]", False),
        ('{"a": 1} == {"a": 1.0}', True),
        ('{"a": 1} == {"b": 1}', False),
        ('{"a": 1} == {"a": 2}', False),
        ("null == null", True),
        ("null == 0", False),
        ('quantity("1Ki") == quantity("1024")', True),
        ('quantity("1") != quantity("2")', True),
        ("1 in [1.0, 2]", True),
        ("3 in [1, 2]", False),
        ('"a" in {"a": 1}', True),
        ('1 in {"a": 1}', False),
        ("1 in {1u: 2}", True),
        ("true in {1: 2}", False),
        ("1.5 in {1.5: 2}", True),
        ('"x" in device.attributes', False),
    ],
)
def test_order_equality_and_membership(expression: str, is_true: bool) -> None:
    assert value(expression) is is_true


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[5, 6][1]", 6),
        ("[5, 6][1u]", 6),
        ("[5, 6][1.0]", 6),
        ('{"a": 7}["a"]', 7),
        ('{"a": 7}.a', 7),
        ("{1: 7}[1.0]", 7),
        ("{true: 7}[true]", 7),
        ('device.attributes["unknown.com"]', {}),
        ('device.attributes["gpu.example.com"].index', 3),
    ],
)
def test_look_ups(expression: str, result: Any) -> None:
    assert value(expression) == result


EDGES = (INT_MAX, -INT_MAX - 1, -INT_MAX, 0, 1, -1, 2, -2, 7, -7, 2**32, -(2**31))


def literal(number: int) -> str:
    return f"({number})" if number > -INT_MAX - 1 else f"(-{INT_MAX} - 1)"


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%"])
def test_whole_numbers_are_those_of_64_bits_or_none(symbol: str) -> None:
    """Exact, cut towards zero; what does not fit is an error, and -2^63 % -1 is one, too."""
    for left in EDGES:
        for right in EDGES:
            expected: int | str
            if symbol in "/%" and right == 0:
                expected = "division by zero" if symbol == "/" else "modulus by zero"
            else:
                cut = int(Fraction(left, right)) if right else 0
                exact = {
                    "+": left + right,
                    "-": left - right,
                    "*": left * right,
                    "/": cut,
                    "%": left - right * cut,
                }[symbol]
                is_odd = symbol == "%" and (left, right) == (-INT_MAX - 1, -1)
                fits = -INT_MAX - 1 <= exact <= INT_MAX and not is_odd
                expected = exact if fits else "overflow"
            text = f"{literal(left)} {symbol} {literal(right)}"
            if isinstance(expected, int):
                assert value(text) == expected, text
            else:
                with pytest.raises(CelRuntimeError, match=expected):
                    value(text)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("0.0 / 0.0 == 0.0 / 0.0", False),
        ("(0.0 / 0.0) / 0.0 == (0.0 / 0.0) / 0.0", False),
        ("-0.0 / 5.0", -0.0),
        ("-(1.5)", -1.5),
        ("1u - 1u", 0),
        ("0u * 5u", 0),
        ("7u % 4u", 3),
        ("[1, 2] == [1, 2.0]", True),
        ("2 in [1, 2u]", True),
        ("1.0 in {1: true}", True),
        ("1.5 in {1: true}", False),
        ("1e30 in {1: true}", False),
        ("(1.0 / 0.0) in {1: true}", False),
        ("true in {1: true}", False),
        ("-9223372036854775808.0 in {-9223372036854775807 - 1: true}", True),
        ("quantity('1') == quantity('1000m')", True),
    ],
)
def test_what_is_at_the_edges(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        '1 + "a"',
        '"a" + 1',
        '"a" + b"a"',
        "[1] + 1",
        "1 + 1u",
        "1 + 1.0",
        "1u - 1",
        "1.0 * 2",
        "1 / 1u",
        "7.0 % 2.0",
        "7 % 2u",
        "true + true",
        '1 < "a"',
        '"a" < 1',
        "true < 1",
        "1 < true",
        "[1] < [2]",
        "{} + {}",
        "-(1u)",
        '-("a")',
        "!1",
        "2u - 3u",
        "quantity('1') == semver('1.0.0')",
        "quantity('1') == 1",
    ],
)
def test_operands_that_do_not_belong_together_have_no_value(expression: str) -> None:
    with pytest.raises(CelRuntimeError):
        value(expression)
