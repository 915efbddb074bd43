"""Operators: arithmetic within 64 bits, order, membership and look-ups of values of all kinds."""

import math
from typing import Any

import pytest

from asched.core.dra.cel.values import CelRuntimeError
from tests.unit.core.dra.cel.valued import value

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
