"""Functions of strings, as the language's string extension has them."""

from typing import Any

import pytest

from asched.core.dra.cel.values import CelRuntimeError
from tests.unit.core.dra.cel.valued import value


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ('"hello".indexOf("l")', 2),
        ('"hello".indexOf("l", 3)', 3),
        ('"hello".indexOf("x")', -1),
        ('"hello".indexOf("", 2)', 2),
        ('"hello".indexOf("", 9)', 9),
        ('"hello".indexOf("", -3)', -3),
        ('"hello".lastIndexOf("", -3)', -3),
        ('"hello".lastIndexOf("", 9)', 9),
        ('"hello".indexOf("o", 5)', -1),
        ('"hello".indexOf("o", 9223372036854775807)', -1),
        ('"hello".indexOf("hello", 0)', 0),
        ('"hello".lastIndexOf("o", 4)', 4),
        ('"hello".lastIndexOf("o", 5)', -1),
        ('"hello".lastIndexOf("o", 9)', -1),
        ('"hello".lastIndexOf("", 2)', 2),
        ('"hello".lastIndexOf("")', 5),
        ('"".lastIndexOf("a")', -1),
        ('"hello".lastIndexOf("l")', 3),
        ('"hello".lastIndexOf("l", 2)', 2),
        ('"hello".lastIndexOf("h", 0)', 0),
        ('"hello".lastIndexOf("x")', -1),
        ('"hello".charAt(0)', "h"),
        ('"hello".charAt(5)', ""),
        ('"hello".substring(1)', "ello"),
        ('"hello".substring(1, 3)', "el"),
        ('"hello".substring(5)', ""),
        ('"hello".substring(0)', "hello"),
        ('"hello".substring(0, 5)', "hello"),
        ('"hello".substring(2, 2)', ""),
        ('"hello".substring(0, 0)', ""),
        ('"a-a-a".replace("a", "b")', "b-b-b"),
        ('"a-a-a".replace("a", "b", 2)', "b-b-a"),
        ('"a-a".replace("a", "b", 0)', "a-a"),
        ('"a,b,c".split(",")', ["a", "b", "c"]),
        ('"a,b,c".split(",", 2)', ["a", "b,c"]),
        ('"a,b,c".split(",", 1)', ["a,b,c"]),
        ('"a,b,c".split(",", -1)', ["a", "b", "c"]),
        ('"a,b,c".split(",", -7)', ["a", "b", "c"]),
        ('"abc".split("", 0)', []),
        ('"abc".split("", 1)', ["abc"]),
        ('"abc".split("", -2)', ["a", "b", "c"]),
        ('"a-a".replace("a", "b", -1)', "b-b"),
        ('"a-a".replace("a", "b", -5)', "b-b"),
        ('"a,b,c".split(",", 0)', []),
        ('"abc".split("")', ["a", "b", "c"]),
        ('"abc".split("", 2)', ["a", "bc"]),
        ('"abc".split("", 3)', ["a", "b", "c"]),
        ('"abc".split("", 5)', ["a", "b", "c"]),
        ('["a", "b"].join()', "ab"),
        ('["a", "b"].join("-")', "a-b"),
        ('[].join("-")', ""),
        ('"Ä aB".lowerAscii()', "Ä ab"),
        ('"ä aB".upperAscii()', "ä AB"),
        ('" a ".trim()', "a"),
        (r'"\t\n\v\f\r\u0085\u00a0\u1680\u2000\u200a\u2028\u202f\u205f\u3000a b ".trim()', "a b"),
        (r'"\u001ca\u001f".trim()', "\x1ca\x1f"),  # no space to Go's unicode.IsSpace
        (r'"\u200ba".trim()', "\u200ba"),
        ('"abc".contains("b")', True),
        ('"abc".contains("x")', False),
        ('"abc".startsWith("ab")', True),
        ('"abc".startsWith("b")', False),
        ('"abc".endsWith("bc")', True),
        ('"abc".endsWith("b")', False),
        ('"abc".matches("^a.c$")', True),
        ('matches("abc", "x")', False),
    ],
)
def test_what_strings_say(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ('"abc".indexOf("a", -1)', "index out of range: -1"),
        ('"abc".lastIndexOf("a", -1)', "index out of range: -1"),
        ('"abc".charAt(4)', "index out of range: 4"),
        ('"abc".charAt(-1)', "index out of range: -1"),
        # cel-go's ext/strings.go: substr and substrRange
        ('"abc".substring(2, 1)', "invalid substring range. start: 2, end: 1"),
        ('"abc".substring(0, 4)', "index out of range: 4"),
        ('"abc".substring(-1, 2)', "index out of range: -1"),
        ('"abc".substring(4, 5)', "index out of range: 4"),
        ('"abc".substring(4)', "index out of range: 4"),
        ('"abc".substring(-1)', "index out of range: -1"),
        ('"abc".charAt(true)', "charAt(string, bool)"),
        ('"abc".charAt("1")', "charAt(string, string)"),
        ('"a".replace("a", "b", 18446744073709551615u)', "replace(string, string, string, uint)"),
        ('"a".split("a", 18446744073709551615u)', "split(string, string, uint)"),
        ("(1).upperAscii()", "upperAscii(int)"),
        ("(1).lowerAscii()", "lowerAscii(int)"),
        ('"abc".contains(1)', "contains(string, int)"),
        ('[1].join("")', "join(list, string)"),
        ('["a"].join(1)', "join(list, int)"),
        ('"a".join("")', "join(string, string)"),
        ('(1).startsWith("a")', "startsWith(int, string)"),
        ('"a".split(1)', "split(string, int)"),
    ],
)
def test_what_has_no_value_says_why(expression: str, words: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        value(expression)
    assert words in str(error.value)
