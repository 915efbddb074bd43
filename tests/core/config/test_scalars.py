import math

import pytest

from asched.core.config.scalars import (
    UnsupportedKeyError,
    go_syntax,
    key_of,
    short_float,
    single,
    value_of,
    written,
)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("yes", True),
        ("n", False),
        ("~", None),
        ("", None),
        ("0x10", 16),
        ("010", 8),
        ("0b11", 3),
        ("1_000", 1000),
        ("1e2", 100),
        ("8.0", 8),
        ("1.5", 1.5),
        (".5e1", 5),
        ("-3", -3),
        ("08", 8),
        ("1e20", 10**20),
        ("1e21", 1e21),
        ("-1e21", -1e21),
        ("1.2.3", "1.2.3"),
        ("15s", "15s"),
        ("nan", "nan"),
        ("2001-01-01", "2001-01-01"),
        ("0", 0),
        ("-0", 0),
        ("07", 7),
        ("-010", -8),
        ("+12", 12),
        ("0o17", 15),
        ("_1", "_1"),
        ("x_1", "x_1"),
        ("\u0663", "\u0663"),
        ("1\u0663", "1\u0663"),
        ("1e400", "1e400"),
        ("-1e400", "-1e400"),
        ("-.inf", -math.inf),
        ("+.INF", math.inf),
        ("+", "+"),
        (".", "."),
    ],
)
def test_a_plain_word_means_what_it_means_to_go(word: str, value: object) -> None:
    assert value_of(word) == value
    assert type(value_of(word)) is type(value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("15s", "15s"),
        ("http://a/", "http://a/"),
        ("yes", '"yes"'),
        ("12", '"12"'),
        ("", '""'),
        ("12:30", '"12:30"'),
        ("*", "'*'"),
        ("a: b", "'a: b'"),
        ("x #y", "'x #y'"),
        ("it's", "it's"),
        ("'x", "'''x'"),
        ("-", "'-'"),
        ("- x", "'- x'"),
        ("-x", "-x"),
        ("?", "'?'"),
        ("a:", "'a:'"),
        ("a:b", "a:b"),
        ("---", "'---'"),
        (" x", "' x'"),
        ("x ", "'x '"),
        ("a\tb", '"a\\tb"'),
        ("a\nb", "|-\n  a\n  b"),
        ("a\n", "|\n  a"),
        ("a\n\n", "|+\n  a\n"),
        ("a\n\n\n", "|+\n  a\n\n"),
        ("a\n\nb\n", "|\n  a\n\n  b"),
        (" a\nb", "|2-\n   a\n  b"),
        ("a\nb\x00", '"a\\nb\\u0000"'),
        ("é\t", '"é\\t"'),
        ("2001-01-01", '"2001-01-01"'),
        ("2001-1-1T1", '"2001-1-1T1"'),
        ("1.5", '"1.5"'),
    ],
)
def test_a_text_is_quoted_only_where_it_must_be(text: str, line: str) -> None:
    assert written(text, 2) == line


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("name", "name"),
        ("yes", "true"),
        ("no", "false"),
        ("0.1", "0.1"),
        ("16777216.5", "1.6777216e+07"),
        ("0x10", "16"),
        ("1_000", "1000"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("1e20", "1e+20"),
        (".inf", ".inf"),
        ("-.INF", "-.inf"),
        (".nan", ".nan"),
        ("9223372036854775807", "9223372036854775807"),
        # what no integer holds is a float, and keys are floats of 32 bits
        ("-9223372036854775809", "-9.223372e+18"),
        ("123456789012345678901234567890", "1.2345679e+29"),
        ("1e300", ".inf"),
        ("-1e300", "-.inf"),
        ("1e19", "1e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-1", "-1"),
        ("0", "0"),
        ("18446744073709551616", "1.8446744e+19"),
    ],
)
def test_a_key_is_named_as_go_names_it(word: str, key: str) -> None:
    assert key_of(word) == key


@pytest.mark.parametrize(
    ("word", "kind", "shown"),
    [
        ("~", "%!s(<nil>)", "<nil>"),
        ("null", "%!s(<nil>)", "<nil>"),
        ("", "%!s(<nil>)", "<nil>"),
        ("18446744073709551615", "uint64", "0xffffffffffffffff"),
        ("9223372036854775808", "uint64", "0x8000000000000000"),
    ],
)
def test_some_words_name_no_key(word: str, kind: str, shown: str) -> None:
    with pytest.raises(UnsupportedKeyError) as error:
        key_of(word)
    assert (error.value.kind, error.value.shown) == (kind, shown)


@pytest.mark.parametrize(
    ("value", "nearest"),
    [
        (0.5, 0.5),
        (16777217, 16777216.0),
        (1e39, math.inf),
        (-1e39, -math.inf),
        (10**400, math.inf),
        (-(10**400), -math.inf),
    ],
)
def test_the_nearest_float_of_32_bits(value: float, nearest: float) -> None:
    assert single(value) == nearest


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        (False, "false"),
        ('a"b', '"a\\"b"'),
        (3, "3"),
        (1.5, "1.5"),
        ([], "[]interface {}{}"),
        ([1, ["a"]], '[]interface {}{1, []interface {}{"a"}}'),
        ({"a": 1, "b": None}, 'map[interface {}]interface {}{"a":1, "b":<nil>}'),
    ],
)
def test_values_in_go_s_own_syntax(value: object, text: str) -> None:
    assert go_syntax(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123456.5, "123456.5"),
        (1234567.5, "1.2345675e+06"),
        (3.4e38, "3.4e+38"),
        (-1e20, "-1e+20"),
    ],
)
def test_a_float_is_printed_in_its_shortest_form(value: float, text: str) -> None:
    assert short_float(value) == text
