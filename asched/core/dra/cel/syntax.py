"""The syntax tree of an expression. Macros are calls in it; `macros.py` evaluates them."""

from typing import Any

import msgspec


class Expression(msgspec.Struct, frozen=True):
    position: int


class Literal(Expression, frozen=True):
    value: Any


class Name(Expression, frozen=True):
    text: str


class Select(Expression, frozen=True):
    """`operand.field`, or `operand.?field` where `optional`."""

    operand: Expression
    field: str
    optional: bool = False


class Index(Expression, frozen=True):
    """`operand[key]`, or `operand[?key]` where `optional`."""

    operand: Expression
    key: Expression
    optional: bool = False


class Call(Expression, frozen=True):
    """A function, method or operator; `target` is the expression before the dot."""

    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


class ListLiteral(Expression, frozen=True):
    """`optional[i]` marks elements written `?element`."""

    items: tuple[Expression, ...]
    optional: tuple[bool, ...]


class MapLiteral(Expression, frozen=True):
    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]
    optional: tuple[bool, ...]
