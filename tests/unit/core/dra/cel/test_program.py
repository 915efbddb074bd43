"""Device selectors: what each expression says of one device."""

import contextlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from asched.core.dra.cel.evaluate import compile_expression, device_variable
from asched.core.dra.cel.values import CelError, CelRuntimeError, CelSyntaxError
from asched.core.model.claim import Device
from asched.core.model.decode import decode

DEVICE = decode(
    Device,
    {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "attributes": {
            "model": {"string": "A100-x"},
            "index": {"int": 3},
            "healthy": {"bool": True},
            "version": {"version": "1.10.0"},
            "other.com/rack": {"string": "r1"},
        },
        "capacity": {"memory": {"value": "40Gi"}},
    },
)
A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'


def evaluate(expression: str, **limits: int) -> bool:
    device = device_variable("gpu.example.com", DEVICE)
    return compile_expression(expression).matches(device, **limits)


class Case(NamedTuple):
    name: str
    expression: str
    expected: bool = True


CASES = [
    Case("the driver is a field", 'device.driver == "gpu.example.com"'),
    Case("another driver does not match", 'device.driver == "x"', False),
    Case("attributes of the driver need no domain of their own", f'{A}.model == "A100-x"'),
    Case("attributes of another domain", 'device.attributes["other.com"].rack == "r1"'),
    Case("an unknown domain is an empty map", 'has(device.attributes["x.com"].y)', False),
    Case("an unknown domain is not in the map", '"x.com" in device.attributes', False),
    Case("a known key is in its map", f'"model" in {A}'),
    Case("a field may be written as a key", f'{A}["model"].startsWith("A")'),
    Case("multiple allocations are told", "device.allowMultipleAllocations"),
    Case("quantities compare exactly", f'{C}.memory.compareTo(quantity("40Gi")) == 0'),
    Case("quantities have an order", f'{C}.memory.isLessThan(quantity("0.05Ti"))'),
    Case("quantities add up", 'quantity("1Gi").add(1).sub(quantity("1")) == quantity("1024Mi")'),
    Case("a whole quantity is an integer", 'quantity("2k").asInteger() == 2000'),
    Case("a fraction is none", 'quantity("200m").isInteger()', False),
    Case("the sign of a quantity", 'quantity("-3").sign() == -1'),
    Case("versions compare by number", f'{A}.version.isGreaterThan(semver("1.9.0"))'),
    Case("a prerelease comes before", 'semver("1.0.0-rc.1").compareTo(semver("1.0.0")) == -1'),
    Case("numbers before words", 'semver("1.0.0-2").isLessThan(semver("1.0.0-a"))'),
    Case("build marks do not count", 'semver("1.0.0+a") == semver("1.0.0+b")'),
    Case("a loose version can be normalised", 'semver("v1.2", true) == semver("1.2.0")'),
    Case("a loose version is none by itself", 'isSemver("1.2")', False),
    Case("parts of a version", 'semver("4.5.6").minor() == 5'),
    Case("false hides an error on the right", f"{A}.healthy || {A}.missing"),
    Case("true hides an error on the left", f"{A}.missing || {A}.healthy"),
    Case("false decides and", f"{A}.missing && !{A}.healthy", False),
    Case("the branch not taken is not evaluated", f"{A}.healthy ? true : {A}.missing"),
    Case("numbers of different kinds are equal", f"{A}.index == 3u && {A}.index == 3.0"),
    Case("values of different kinds are not", f'{A}.index == "3"', False),
    Case("true is not one", "dyn(true) == dyn(1)", False),
    Case("division goes towards zero", "-7 / 2 == -3 && -7 % 3 == -1"),
    Case("a list by equality", f'{A}.model in ["B", "A100-x"]'),
    Case("all of a list", "[1, 2, 3].all(x, x > 0)"),
    Case("exists forgives errors once decided", "[0, 1].exists(x, 1 / x == 1)"),
    Case("exactly one", "[1, 2, 3].exists_one(x, x > 2)"),
    Case("map with a condition", "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]"),
    Case("filter", "[1, 2, 3].filter(x, x != 2).size() == 2"),
    Case("two names bind index and element", "[5, 6].all(i, v, v == i + 5)"),
    Case("maps are walked by key", f'{A}.exists(k, k.startsWith("mo"))'),
    Case("an inner name hides the outer", "[1].all(x, [2].all(x, x == 2) && x == 1)"),
    Case("bind names a value", f"cel.bind(a, {A}, a.healthy && a.index > 2)"),
    Case("an optional field that is there", f'{A}.?model.orValue("") == "A100-x"'),
    Case("an optional field that is not", f'{A}.?absent.orValue("none") == "none"'),
    Case("optional values map", f"{A}.?index.optMap(i, i + 1).orValue(0) == 4"),
    Case("an optional key", f'{A}[?"absent"].hasValue()', False),
    Case("strings have letters", f'{A}.model.lowerAscii().contains("a100")'),
    Case("strings match patterns", r'device.driver.matches("^gpu\\.[a-z]+")'),
    Case("strings split and join", '"a,b".split(",").join("-") == "a-b"'),
    Case("raw strings keep backslashes", r'r"\d" == "\\d"'),
    Case("triple quotes span lines", '"""a\nb""" == "a\\nb"'),
    Case("hexadecimal and unsigned", "0x1F == 31 && 7u == 7"),
    Case("the smallest integer", "-9223372036854775808 < 0"),
    Case("comments are skipped", "true // not false\n"),
    Case("types can be asked for", f"type({A}.index) == int"),
    Case("sets", "sets.contains([1, 2], [2])"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_selector(case: Case) -> None:
    assert evaluate(case.expression) is case.expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{A}.missing", "no such key: missing"),
        ("1 + 1", "type int could not be converted to bool"),
        (f"{A}.index", "type int could not be converted to bool"),
        (f"{A}.model > 3", "no such overload: _>_(string, int)"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("1 / 0 == 1", "division by zero"),
        ("[1][3] == 1", "index out of bounds: 3"),
        ('quantity("x") == quantity("1")', "cannot be parsed"),
        ('"a".matches("(?=a)")', "invalid perl operator"),
        (f'quantity("{"9" * 5000}") == quantity("1")', "cannot be parsed"),
        (f'{A}.version == "1.10.3"', "no such overload"),
        (f'{A}.version != "1.10.3"', "no such overload"),
        ('quantity("1") == 1', "no such overload"),
        (f'semver("{"9" * 5000}.0.0").major() == 1', "cannot be parsed"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("true && 1", "no such overload"),
        ('"a".substring(1, 2, 3) == ""', "no such overload"),
    ],
)
def test_an_expression_without_a_value_says_why(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError) as raised:
        evaluate(expression)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("device.foo == 1", 8, "undefined field 'foo'"),
        ("driver == 1", 1, "undeclared reference to 'driver'"),
        ('timestamp("2020") == 1', 1, "'timestamp' is not supported in device selectors"),
        ('"a".reverse() == "a"', 5, "'reverse' is not supported"),
        ("device.driver ==", 17, "unexpected 'end of expression'"),
        ('"abc', 1, "string is not closed"),
        ("1 $ 2", 3, "unexpected character '$'"),
        ("has(device)", 1, "has() needs a field selection"),
        ("true\n  && nope", 6, "undeclared reference to 'nope'"),
        ("Foo{a: 1}", 4, "messages are not supported"),
        ("9223372036854775808 == 1", 1, "out of range"),
        ("package == 1", 1, "reserved word"),
        ("[1].all(1, true)", 9, "expected a name to bind"),
    ],
)
def test_an_expression_beyond_the_language_names_the_place(
    expression: str, column: int, message: str
) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        compile_expression(expression)
    assert f"column {column}: " in str(raised.value)
    assert message in str(raised.value)


def test_cost_is_limited() -> None:
    hundred = "[" + ",".join(["1"] * 100) + "]"
    with pytest.raises(CelRuntimeError, match="cost limit"):
        evaluate(f"{hundred}.all(x, {hundred}.all(y, {hundred}.all(z, true)))")


@pytest.mark.parametrize(
    "hostile",
    ["!" * 3000 + "true", "(" * 3000, "true" + " && true" * 1000, "1" + "+1" * 3000 + " > 0"],
    ids=["signs", "parentheses", "many terms", "long sum"],
)
def test_size_exhausts_no_stack(hostile: str) -> None:
    """Either it has a value or it is refused; it never ends the process with a RecursionError."""
    outcome: Any
    try:
        outcome = evaluate(hostile)
    except (CelSyntaxError, CelRuntimeError) as error:
        outcome = str(error)
    assert outcome is True or "deep" in outcome


def test_an_attribute_without_a_value_is_an_error() -> None:
    broken = decode(Device, {"name": "d", "attributes": {"a": {}}})
    with pytest.raises(CelRuntimeError, match="attribute a: unsupported attribute value"):
        device_variable("d.com", broken)


def test_a_wrong_version_is_an_error() -> None:
    broken = decode(Device, {"name": "d", "attributes": {"a": {"version": "1.2"}}})
    make: Callable[[], object] = lambda: device_variable("d.com", broken)  # noqa: E731
    with pytest.raises(CelRuntimeError, match="no semantic version"):
        make()


@pytest.mark.parametrize("seed", range(60))
def test_noise_is_refused_in_order(seed: int) -> None:
    """Whatever somebody writes, the answer is a truth value or a CelError."""
    rng = random.Random(seed)
    words = ["device", ".driver", ".attributes", "[", "]", "(", ")", '"a"', "1", "9" * 5000]
    words += ["&&", "||", "!", "-", "?", ":", "{", "}", ",", ".all(x,", "x", "has(", "==", "<"]
    words += ["true", ".size()", ".matches(", '"(a"', "quantity(", "semver(", "[?", ".?y", "in"]
    words += ["cel.bind(", "+", '"' + "9" * 5000 + '")', '"' + "1." * 3000 + '0")']
    expression = " ".join(rng.choice(words) for _ in range(rng.randint(1, 12)))
    with contextlib.suppress(CelError):
        assert evaluate(expression) in (True, False)


ONES = "[" + ",".join("1" * 100) + "]"
TEXTS = "[" + ",".join(['"' + "a" * 60 + '"'] * 80) + "]"
NINE = "cel.bind(c, [b,b,b,b,b,b,b,b,b], c == c)"
SHARED = f"cel.bind(a, {TEXTS}, cel.bind(b, [a,a,a,a,a,a,a,a], {NINE}))"


@pytest.mark.parametrize(
    "text",
    [
        f"{ONES}.all(a, {ONES}.all(b, {ONES}.all(c, true)))",
        f'"{"a" * 4000}".matches("(a*)*(a|aa)*{"a?" * 1000}b")',
        f'"{"a" * 2000}".replace("a", "{"b" * 2000}").size() > 0',
        f"{ONES}.all(x, sets.contains({ONES}, {ONES}))",
        SHARED,
        f'{ONES}.all(x, {TEXTS}.join("{"b" * 4000}") != "")',
        f'({TEXTS} + {TEXTS}).sum() == ""',
    ],
    ids=["nested", "pattern", "replace", "sets", "shared", "join", "sum"],
)
def test_what_is_short_to_write_and_long_to_find_out_is_cut_off(text: str) -> None:
    with pytest.raises(CelRuntimeError, match="cost limit"):
        evaluate(text)
