"""Functions and methods: what each says of values it knows, and that it refuses all others."""

import math
from typing import Any

import pytest

from asched.core.dra.cel.values import CelRuntimeError
from tests.unit.core.dra.cel.valued import value


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("int(3.9)", 3),
        ("int(-3.9)", -3),
        ("int(7u)", 7),
        ('int("-12")', -12),
        ("uint(3.9)", 3),
        ('uint("12")', 12),
        ("double(3)", 3.0),
        ('double("1.5e1")', 15.0),
        ('double("-.5")', -0.5),
        ('double("-Inf")', -math.inf),
        ("string(true)", "true"),
        ("string(false)", "false"),
        ("string(1.5)", "1.5"),
        ("string(2.0)", "2"),
        ("string(100000.0)", "100000"),
        ("string(1000000.0)", "1e+06"),
        ("string(1.5e-7)", "1.5e-07"),
        ("string(1.0 / 0.0)", "+Inf"),
        ("string(-1.0 / 0.0)", "-Inf"),
        ("string(0.0 / 0.0)", "NaN"),
        ("string(-7)", "-7"),
        ("string(7u)", "7"),
        ('string(b"a")', "a"),
        ('string("a")', "a"),
        ("bool(true)", True),
        ('bool("t") && bool("TRUE") && bool("1")', True),
        ('bool("f") || bool("False") || bool("0")', False),
        ('bytes("é")', "é".encode()),
        ('bytes(b"a")', b"a"),
        ("type(1) == type(2) && type(1) != type(1u)", True),
        ('size("é")', 1),
        ('size(b"ab")', 2),
        ("size([1, 2])", 2),
        ('{"a": 1}.size()', 1),
        ("dyn(1)", 1),
    ],
)
def test_conversions(expression: str, result: Any) -> None:
    found = value(expression)
    assert found == result
    assert isinstance(found, type(result))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[].isSorted()", True),
        ("[1, 2, 3].sum()", 6),
        ("[].sum()", 0),
        ('["a", "b"].sum()', "ab"),
        ("[3, 1, 2].min()", 1),
        ("[3, 1, 5].max()", 5),
        ("[1, 2, 1].indexOf(1)", 0),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(5)", -1),
        ("[1].lastIndexOf(5)", -1),
        ("sets.contains([1, 2], [2, 1.0])", True),
        ("sets.contains([1], [1, 2])", False),
        ("sets.contains([1], [])", True),
        ("sets.equivalent([1, 2], [2, 1, 1])", True),
        ("sets.equivalent([1, 2], [1])", False),
        ("sets.equivalent([1], [1, 2])", False),
        ("sets.intersects([1, 2], [2, 3])", True),
        ("sets.intersects([1], [2])", False),
    ],
)
def test_lists_and_sets(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ('quantity("1Ki").compareTo(quantity("1k"))', 1),
        ('quantity("1k").compareTo(quantity("1Ki"))', -1),
        ('quantity("1").compareTo(quantity("1000m"))', 0),
        ('quantity("2").isGreaterThan(quantity("1"))', True),
        ('quantity("1").isGreaterThan(quantity("1"))', False),
        ('quantity("1").isLessThan(quantity("2"))', True),
        ('quantity("1").isLessThan(quantity("1"))', False),
        ('quantity("-1").sign()', -1),
        ('quantity("0").sign()', 0),
        ('quantity("1").sign()', 1),
        ('quantity("1").add(quantity("2")) == quantity("3")', True),
        ('quantity("1").sub(3) == quantity("-2")', True),
        ('quantity("1500m").isInteger()', False),
        ('quantity("9223372036854775807").isInteger()', True),
        ('quantity("9223372036854775808").isInteger()', False),
        ('quantity("2k").asInteger()', 2000),
        ('quantity("1500m").asApproximateFloat()', 1.5),
        ('isQuantity("1Gi")', True),
        ('isQuantity("1GB")', False),
        ('semver("1.2.3").major()', 1),
        ('semver("1.2.3").minor()', 2),
        ('semver("1.2.3").patch()', 3),
        ('semver("1.2.3").compareTo(semver("1.10.0"))', -1),
        ('isSemver("v1", true)', True),
        ('isSemver("v1")', False),
    ],
)
def test_quantities_and_versions(expression: str, result: Any) -> None:
    assert value(expression) == result


def test_a_quantity_beyond_doubles_is_infinite() -> None:
    digits = "9" * 400
    assert value(f'quantity("{digits}").asApproximateFloat()') == math.inf
    assert value(f'quantity("-{digits}").asApproximateFloat()') == -math.inf


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("optional.of(1).hasValue()", True),
        ("optional.none().hasValue()", False),
        ("optional.of(1).value()", 1),
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ('optional.ofNonZeroValue("").hasValue()', False),
        ("optional.ofNonZeroValue(null).hasValue()", False),
        ('optional.ofNonZeroValue(quantity("0")).hasValue()', True),
        ("optional.ofNonZeroValue(5).value()", 5),
    ],
)
def test_optional_values(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("int(1e19)", "integer overflow"),
        ("int(1.0 / 0.0)", "integer overflow"),
        ("int(0.0 / 0.0)", "integer overflow"),
        ("uint(0.0 / 0.0)", "unsigned integer overflow"),
        ("uint(1.0 / 0.0)", "unsigned integer overflow"),
        ("uint(-1)", "unsigned integer overflow"),
        ("uint(-0.5)", "unsigned integer overflow"),
        ("uint(18446744073709551616.0)", "unsigned integer overflow"),
        ('int("x")', "int(string)"),
        ("int(true)", "int(bool)"),
        ('uint("x")', "uint(string)"),
        ('double("x")', "double(string)"),
        ('double(" 1")', "double(string)"),
        ('double("1_0")', "double(string)"),
        ("string([1])", "string(list)"),
        ('string(b"\\xff")', "string"),
        ('bool("yes")', "bool(string)"),
        ("bytes(1)", "bytes(int)"),
        ("size(1)", "size(int)"),
        ("[].min()", "min called on empty list"),
        ('[1, "a"].max()', "_>_(string, int)"),
        ('"a".isSorted()', "isSorted(string)"),
        ("sets.contains(1, [1])", "sets.contains(int, list)"),
        ("quantity(1)", "quantity(int)"),
        ('quantity("x")', "cannot be parsed"),
        ("isQuantity(1)", "isQuantity(int)"),
        ('semver("1.0.0", 1)', "semver(string, int)"),
        ('semver("x")', "cannot be parsed"),
        ('quantity("1").compareTo(semver("1.0.0"))', "compareTo"),
        ('quantity("1").add(1.5)', "add(kubernetes.Quantity, double)"),
        ('quantity("1500m").asInteger()', "cannot convert value to integer"),
        ('"a".sign()', "sign(string)"),
        ('"1.0.0".major()', "major(string)"),
        ("optional.none().value()", "optional.none() dereference"),
        ("(1).hasValue()", "hasValue(int)"),
    ],
)
def test_what_a_function_does_not_know_says_so(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        value(expression)
    assert words in str(error.value)
