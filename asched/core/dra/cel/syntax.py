"""The tree of an expression. Macros are still calls here; the evaluator knows their shapes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Expression:
    position: int


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Expression):
    text: str


@dataclass(frozen=True, slots=True)
class Select(Expression):
    """`operand.field`, or `operand.?field` where `optional`."""

    operand: Expression
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """`operand[key]`, or `operand[?key]` where `optional`."""

    operand: Expression
    key: Expression
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function, method or operator; `target` is what stands before the dot."""

    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(Expression):
    """`optional[i]` marks elements written `?element`."""

    items: tuple[Expression, ...]
    optional: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(Expression):
    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]
    optional: tuple[bool, ...]
