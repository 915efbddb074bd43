import math

import pytest

from asched.core.config.scalars import key_of, value_of


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


def test_an_integer_has_64_bits() -> None:
    assert value_of("18446744073709551615") == 2**64 - 1
    assert isinstance(value_of("1" + "0" * 30), float)
    for beyond in ("0x1" + "0" * 16, "9" * 400, "9" * 5000, "0b1" + "0" * 64):
        assert value_of(beyond) == beyond


@pytest.mark.parametrize(
    ("word", "key"),
    [("a", "a"), ("yes", "true"), ("010", "8"), ("1.50", "1.5"), ("1e6", "1e+06"), ("-1", "-1")],
)
def test_a_key_is_the_text_of_its_value(word: str, key: str) -> None:
    assert key_of(word) == key


@pytest.mark.parametrize("word", ["~", "", "null", "9223372036854775808"])
def test_a_key_without_a_name_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="put it in quotes"):
        key_of(word)
