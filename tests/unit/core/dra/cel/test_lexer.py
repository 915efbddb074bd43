"""Characters to tokens: numbers, names, operators, and strings in all their quotings."""

from typing import Any

import pytest

from asched.core.dra.cel.parser import tokenize
from asched.core.dra.cel.values import CelSyntaxError, Uint


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
