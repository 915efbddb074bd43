"""The tree of an expression. Macros are still calls here; the evaluator knows their shapes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    position: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    text: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, or `operand.?field` where `optional`."""

    operand: Node
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`operand[key]`, or `operand[?key]` where `optional`."""

    operand: Node
    key: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function, method or operator; `target` is what stands before the dot."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    """`optional[i]` marks elements written `?element`."""

    items: tuple[Node, ...]
    optional: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    keys: tuple[Node, ...]
    values: tuple[Node, ...]
    optional: tuple[bool, ...]
