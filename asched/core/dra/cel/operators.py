"""Operators on values: arithmetic, order, membership, lookup. They fail with CelRuntimeError."""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.values import (
    NOTHING,
    CelRuntimeError,
    DefaultMap,
    Optional,
    Quantity,
    Semver,
    Uint,
    checked_int,
    checked_uint,
    equals,
    is_number,
    no_overload,
)
from asched.core.model.quantity import INT64_MAX, INT64_MIN


def _arithmetic(
    symbol: str, operate: Callable[[Any, Any], Any], *others: type
) -> Callable[[Any, Any], Any]:
    """An operation on two numbers of one kind, or on two values of one of the other types."""

    def operation(left: Any, right: Any) -> Any:
        if type(left) is type(right):
            if is_number(left):
                return _checked(left, operate(left, right))
            if isinstance(left, others):
                return operate(left, right)
        raise no_overload(f"_{symbol}_", left, right)

    return operation


add: Final = _arithmetic("+", operator.add, str, bytes, list)


def divide(left: Any, right: Any) -> Any:
    """Toward zero on integers; IEEE 754 on doubles."""
    if not is_number(left) or type(left) is not type(right):
        raise no_overload("_/_", left, right)
    if isinstance(left, float):
        if right == 0:
            is_nan = left == 0 or math.isnan(left)
            return math.nan if is_nan else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    if right == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return _checked(left, quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """The sign is that of the left operand."""
    if not is_number(left) or type(left) is not type(right) or isinstance(left, float):
        raise no_overload("_%_", left, right)
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if left == INT64_MIN and right == -1:
        raise CelRuntimeError("integer overflow")
    rest = abs(int(left)) % abs(int(right))
    return _checked(left, -rest if left < 0 else rest)


def negate(value: Any) -> Any:
    if isinstance(value, float):
        return -value
    if is_number(value) and not isinstance(value, Uint):
        return checked_int(-value)
    raise no_overload("-_", value)


def invert(value: Any) -> bool:
    if isinstance(value, bool):
        return not value
    raise no_overload("!_", value)


def _checked(like: Any, value: Any) -> Any:
    if isinstance(like, float):
        return value
    return checked_uint(int(value)) if isinstance(like, Uint) else checked_int(value)


def ordering(symbol: str) -> Callable[[Any, Any], bool]:
    """One of `<`, `<=`, `>`, `>=`: between numbers of any kind, or two values of one kind."""
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[symbol]

    def relation(left: Any, right: Any) -> bool:
        ordered = type(left) is type(right) and isinstance(left, (str, bytes, bool))
        if ordered or (is_number(left) and is_number(right)):
            return bool(compare(left, right))
        raise no_overload(f"_{symbol}_", left, right)

    return relation


def is_equal(left: Any, right: Any) -> bool:
    """`left == right`. A quantity or a version cannot be compared with anything else."""
    if isinstance(left, (Quantity, Semver)) and right is not None and type(right) is not type(left):
        raise CelRuntimeError("no such overload")
    return equals(left, right)


def contains(item: Any, container: Any) -> bool:
    """`item in container`."""
    if isinstance(container, list):
        return any(equals(item, element) for element in container)
    if isinstance(container, dict):
        return map_key(item) in container
    raise no_overload("@in", item, container)


def map_key(key: Any) -> Any:
    """A key as stored in maps: integers of every type are one key, and true is not 1."""
    if isinstance(key, bool):
        return ("bool", key)
    if isinstance(key, float):
        return int(key) if key.is_integer() and INT64_MIN <= key <= INT64_MAX else key
    if isinstance(key, int):
        return int(key)
    if isinstance(key, str):
        return key
    raise CelRuntimeError(f"unsupported key type {type(key).__name__}")


def lookup(container: Any, key: Any) -> Any:
    """`container[key]`, also `container.key` of a map."""
    found = find(container, key)
    if found.is_present:
        return found.value
    if isinstance(container, list):
        raise CelRuntimeError(f"index out of bounds: {key}")
    raise CelRuntimeError(f"no such key: {key}")


def find(container: Any, key: Any) -> Optional:
    """`container[?key]`: none where the key is absent."""
    if isinstance(container, dict):
        known = map_key(key)
        if known in container:
            return Optional(is_present=True, value=container[known])
        if isinstance(container, DefaultMap):
            return Optional(is_present=True, value={})
        return NOTHING
    if isinstance(container, list):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not is_number(key) or isinstance(key, float):
            raise CelRuntimeError(f"unsupported index type in list: {type(key).__name__}")
        if 0 <= key < len(container):
            return Optional(is_present=True, value=container[key])
        return NOTHING
    raise no_overload("_[_]", container, key)


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "!_": invert,
    "-_": negate,
    "_+_": add,
    "_-_": _arithmetic("-", operator.sub),
    "_*_": _arithmetic("*", operator.mul),
    "_/_": divide,
    "_%_": modulo,
    "_==_": is_equal,
    "_!=_": lambda left, right: not is_equal(left, right),
    "_in_": contains,
    **{f"_{symbol}_": ordering(symbol) for symbol in ("<", "<=", ">", ">=")},
}
