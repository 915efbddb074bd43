import pytest

from asched.core.config.scalars import UnsupportedKeyError, key_of, short_float, value_of, written


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
    ],
)
def test_a_key_is_named_as_go_names_it(word: str, key: str) -> None:
    assert key_of(word) == key


@pytest.mark.parametrize("word", ["~", "null", "", "18446744073709551615"])
def test_some_words_name_no_key(word: str) -> None:
    with pytest.raises(UnsupportedKeyError):
        key_of(word)


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
