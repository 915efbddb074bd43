import math

import pytest

from asched.core.config.scalars import (
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
