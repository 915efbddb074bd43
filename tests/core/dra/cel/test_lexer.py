"""Characters to tokens: numbers, names, operators, and strings in all their quotings."""

from typing import Any

import pytest

from asched.core.dra.cel.errors import CelSyntaxError
from asched.core.dra.cel.lexer import tokenize
from asched.core.dra.cel.values import Uint


def kinds(expression: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(expression)][:-1]


def literal(expression: str) -> Any:
    token, end = tokenize(expression)
    assert (token.kind, end.kind) == ("literal", "end")
    return token.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12", 12),
        ("0x1F", 31),
        ("7u", Uint(7)),
        ("0xFFu", Uint(255)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("2.5E-1", 0.25),
        ("true", True),
        ("false", False),
        ("null", None),
        ('"a"', "a"),
        ("'a\"b'", 'a"b'),
        (r'"a\"b"', 'a"b'),
        (r'"\n\t\\\x41\u00e9\U0001F600\101"', "\n\t\\Aé\U0001f600A"),
        (r'r"\n"', "\\n"),
        ('b"é"', "é".encode()),
        (r'br"\n"', b"\\n"),
        (r'b"\xff\377\x41é"', b"\xff\xffA" + "é".encode()),
        (r'"\xff"', "ÿ"),
        ('"""a"\nb"""', 'a"\nb'),
        ("'''a'b'''", "a'b"),
        ('""', ""),
    ],
)
def test_literals(text: str, value: Any) -> None:
    found = literal(text)
    assert found == value
    assert type(found) is type(value)


def test_names_and_operators() -> None:
    assert kinds("a_1 in `x-y/z` ?: && || == != <= >= [? {? .? - in_") == [
        ("name", "a_1"),
        ("op", "in"),
        ("quoted", "x-y/z"),
        *(
            ("op", text)
            for text in ["?", ":", "&&", "||", "==", "!=", "<=", ">=", "[?", "{?", ".?", "-"]
        ),
        ("name", "in_"),
    ]


def test_blanks_and_comments_are_skipped_and_places_kept() -> None:
    tokens = tokenize("a // b\n  + c")
    assert [(token.text, token.position) for token in tokens] == [
        ("a", 0),
        ("+", 9),
        ("c", 11),
        ("end of expression", 12),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"abc', "string is not closed"),
        ('"a\nb"', "string is not closed"),
        ('"a\rb"', "string is not closed"),
        ("٣", "unexpected character"),
        (r'"\q"', "unknown escape"),
        (r'"\ud800"', "escape is no character"),
        (r'b"\u0041"', "escape is no octet"),
        (r'b"\U00000041"', "escape is no octet"),
        (r'"\U00110000"', "escape is no character"),
        ("9223372036854775809", "out of range"),
        ("18446744073709551616u", "out of range"),
        ("1" * 41, "integer is out of range"),
        ("$", "unexpected character '$'"),
        ("``", "unexpected character '`'"),
    ],
)
def test_what_is_no_token_is_refused(text: str, words: str) -> None:
    with pytest.raises(CelSyntaxError, match=words.replace("$", r"\$")):
        tokenize(text)


def test_the_largest_numbers_are_let_through() -> None:
    assert literal("9223372036854775808") == 2**63, "a minus sign may stand before it"
    assert literal("18446744073709551615u") == 2**64 - 1
