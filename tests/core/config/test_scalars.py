import pytest

from asched.core.config.scalars import value_of, written


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
        ("a\tb", '"a\\tb"'),
        ("a\nb", "|-\n  a\n  b"),
    ],
)
def test_a_text_is_quoted_only_where_it_must_be(text: str, line: str) -> None:
    assert written(text, 2) == line
