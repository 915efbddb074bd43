"""Tokens to a tree: which operator binds more, and what may follow what."""

from typing import Any

import pytest

from asched.core.dra.cel.parser import DEPTH_MAX, EXPRESSION_LENGTH_MAX, parse
from asched.core.dra.cel.syntax import Call, Index, ListLiteral, Literal, MapLiteral, Name, Select
from asched.core.dra.cel.values import CelSyntaxError


def shown(node: Any) -> str:
    """A tree as text, each call in parentheses."""
    match node:
        case Literal():
            return repr(node.value)
        case Name():
            return node.text
        case Select():
            return f"{shown(node.operand)}.{'?' * node.optional}{node.field}"
        case Index():
            return f"{shown(node.operand)}[{'?' * node.optional}{shown(node.key)}]"
        case Call():
            target = "" if node.target is None else f"{shown(node.target)}."
            return f"{target}{node.function}({', '.join(map(shown, node.arguments))})"
        case ListLiteral():
            items = zip(node.items, node.optional, strict=True)
            return f"[{', '.join('?' * o + shown(i) for i, o in items)}]"
        case MapLiteral():
            entries = zip(node.keys, node.values, node.optional, strict=True)
            listed = ["?" * o + f"{shown(k)}: {shown(v)}" for k, v, o in entries]
            return "{" + ", ".join(listed) + "}"
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("expression", "tree"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("8 / 2 % 3", "_%_(_/_(8, 2), 3)"),
        ("(1 + 2) * 3", "_*_(_+_(1, 2), 3)"),
        ("1 + 2 < 3", "_<_(_+_(1, 2), 3)"),
        ("a == b && c || d", "_||_(_&&_(_==_(a, b), c), d)"),
        ("a && b && c", "_&&_(a, b, c)"),
        ("a || b || c", "_||_(a, b, c)"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a || b ? c : d", "_?_:_(_||_(a, b), c, d)"),
        ("x in [1, 2]", "_in_(x, [1, 2])"),
        ("!!a", "!_(!_(a))"),
        ("--5", "-_(-5)"),
        ("-5", "-5"),
        ("-a", "-_(a)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-5 + 1", "_+_(-5, 1)"),
        ("!a.b", "!_(a.b)"),
        ("a.b.c", "a.b.c"),
        ("a.?b", "a.?b"),
        ("a[1][?2]", "a[1][?2]"),
        ("a.f(1, b)", "a.f(1, b)"),
        ("f()", "f()"),
        (".a", "a"),
        ("a.`x-y`", "a.x-y"),
        ("a.in", "a.in"),
        ("[]", "[]"),
        ("[1, 2,]", "[1, 2]"),
        ("[?a, b, ?c]", "[?a, b, ?c]"),
        ("{}", "{}"),
        ("{1: 2, 'a': b,}", "{1: 2, 'a': b}"),
        ("{?1: a, 2: b}", "{?1: a, 2: b}"),
    ],
)
def test_what_binds_more_is_done_first(expression: str, tree: str) -> None:
    assert shown(parse(expression)) == tree


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "unexpected 'end of expression'"),
        ("1 2", "unexpected '2'"),
        ("(1", "expected ')', found 'end of expression'"),
        ("[1 2]", "expected ','"),
        ("{1 2}", "expected ':'"),
        ("f(1 2)", "expected ','"),
        ("f(1,)", "unexpected ')'"),
        ("a ? b", "expected ':'"),
        ("a.1", "unexpected"),
        ("a.", "expected a field or method after '.'"),
        ("a[1", "expected ']'"),
        ("9223372036854775808", "out of range"),
        ("if", "reserved word"),
        ("a{b: 1}", "messages are not supported"),
        ("!-a", "unexpected '-'"),
        ("* 2", "unexpected '*'"),
        ("..a", "unexpected '.'"),
        (".(a)", "unexpected '.'"),
        ("rr'a'", "unexpected"),
        ("rb'a'", "unexpected"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, words: str) -> None:
    with pytest.raises(CelSyntaxError) as error:
        parse(expression)
    assert words in str(error.value)


def test_length_and_depth_are_bounded() -> None:
    assert parse(" " * (EXPRESSION_LENGTH_MAX - 1) + "1")
    with pytest.raises(CelSyntaxError, match="longer than 10240 characters"):
        parse(" " * EXPRESSION_LENGTH_MAX + "1")
    depth = DEPTH_MAX - 1
    assert parse("(" * depth + "1" + ")" * depth)
    with pytest.raises(CelSyntaxError, match="nested deeper"):
        parse("(" * DEPTH_MAX + "1" + ")" * DEPTH_MAX)
    assert parse("+".join(["(1)"] * 200)), "what was closed nests nothing"
