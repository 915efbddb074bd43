"""Functions and methods: conversions, sizes, lists, sets, quantities, versions, optional values.

A function is found by its name and by whether it has a target, which is its first argument. Its
operands are checked by type, and a wrong type is a CelRuntimeError, because an expression over
attributes of unknown type can only be checked when it runs.
"""

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from asched.core.config.scalars import short_float
from asched.core.dra.cel.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    UINT_MAX,
    CelRuntimeError,
    DefaultMap,
    Optional,
    Quantity,
    Semver,
    Type,
    Uint,
    checked_int,
    checked_uint,
    compile_pattern,
    equals,
    is_number,
    no_overload,
    parse_quantity,
    parse_semver,
    type_name,
)

Function = Callable[..., Any]

# Operators on values: arithmetic, order, membership, lookup. They fail with CelRuntimeError.


def _same_number_kind(left: Any, right: Any) -> bool:
    return is_number(left) and type(left) is type(right)


def add(left: Any, right: Any) -> Any:
    if _same_number_kind(left, right):
        return _checked(left, left + right)
    if type(left) is type(right) and isinstance(left, (str, bytes, list)):
        return left + right
    raise no_overload("_+_", left, right)


def subtract(left: Any, right: Any) -> Any:
    if _same_number_kind(left, right):
        return _checked(left, left - right)
    raise no_overload("_-_", left, right)


def multiply(left: Any, right: Any) -> Any:
    if _same_number_kind(left, right):
        return _checked(left, left * right)
    raise no_overload("_*_", left, right)


def divide(left: Any, right: Any) -> Any:
    """Toward zero on integers; IEEE 754 on doubles."""
    if not _same_number_kind(left, right):
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
    if not _same_number_kind(left, right) or isinstance(left, float):
        raise no_overload("_%_", left, right)
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if left == INT_MIN and right == -1:
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
        return int(key) if key.is_integer() and INT_MIN <= key <= INT_MAX else key
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


BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "_==_": is_equal,
    "_!=_": lambda left, right: not is_equal(left, right),
    "_in_": contains,
    **{f"_{symbol}_": ordering(symbol) for symbol in ("<", "<=", ">", ">=")},
}
UNARY: Final[dict[str, Callable[[Any], Any]]] = {"!_": invert, "-_": negate}


# Functions on strings, as defined by CEL's string extension.

#: The longest text of a 64-bit integer, with its sign.
DIGITS_MAX: Final = 20
#: Space as defined by Go: without the separators of files, groups, records and units, which Python
#: includes.
SPACE: Final = "".join(
    c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f"
)
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)


def integer(text: str) -> int | None:
    """The integer that a text represents; None if it is none, or exceeds 64 bits."""
    return int(text) if len(text) <= DIGITS_MAX and _INTEGER.fullmatch(text) else None


def _text(function: str, *values: Any) -> tuple[str, ...]:
    if all(isinstance(value, str) for value in values):
        return values
    raise no_overload(function, *values)


def _number(function: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, (bool, Uint)):
        return int(value)
    raise no_overload(function, value)


def matches(subject: Any, expression: Any) -> bool:
    """Matches anywhere in the subject, unless the pattern is anchored."""
    text, wanted = _text("matches", subject, expression)
    return compile_pattern(wanted).matches(text)


def text_index_of(subject: Any, wanted: Any, start: Any = 0) -> int:
    """-1 if it does not occur, and for a start beyond the end."""
    text, part = _text("indexOf", subject, wanted)
    at = _number("indexOf", start)
    if part == "":
        return at
    if at < 0:
        raise CelRuntimeError(f"index out of range: {at}")
    return text.find(part, at)


def text_last_index_of(subject: Any, wanted: Any, start: Any = None) -> int:
    """Position of the last occurrence at or before the start; -1 for a start beyond the end."""
    text, part = _text("lastIndexOf", subject, wanted)
    if start is None:
        return text.rfind(part)
    at = _number("lastIndexOf", start)
    if part == "":
        return at
    if at < 0:
        raise CelRuntimeError(f"index out of range: {at}")
    return text.rfind(part, 0, at + len(part)) if at < len(text) else -1


def char_at(subject: Any, index: Any) -> str:
    (text,) = _text("charAt", subject)
    at = _number("charAt", index)
    if not 0 <= at <= len(text):
        raise CelRuntimeError(f"index out of range: {at}")
    return text[at : at + 1]


def substring(subject: Any, start: Any, end: Any = None) -> str:
    (text,) = _text("substring", subject)
    first = _number("substring", start)
    last = len(text) if end is None else _number("substring", end)
    if end is not None and first > last:
        raise CelRuntimeError(f"invalid substring range. start: {first}, end: {last}")
    for at in (first, last):
        if not 0 <= at <= len(text):
            raise CelRuntimeError(f"index out of range: {at}")
    return text[first:last]


def replace(subject: Any, old: Any, new: Any, limit: Any = -1) -> str:
    text, before, after = _text("replace", subject, old, new)
    return text.replace(before, after, _number("replace", limit))


def split(subject: Any, separator: Any, limit: Any = -1) -> list[str]:
    text, mark = _text("split", subject, separator)
    count = _number("split", limit)
    if count == 0:
        return []
    if mark == "":
        parts = list(text)
        return (
            parts if count < 0 or len(parts) <= count else [*parts[: count - 1], text[count - 1 :]]
        )
    return text.split(mark, count - 1 if count > 0 else -1)


def join(values: Any, separator: Any = "") -> str:
    if not isinstance(values, list):
        raise no_overload("join", values)
    (mark,) = _text("join", separator)
    return mark.join(_text("join", *values))


def _ascii(subject: Any, *, upper: bool) -> str:
    (text,) = _text("upperAscii" if upper else "lowerAscii", subject)
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


def _of_texts(name: str, relation: Callable[[str, str], bool]) -> Function:
    def function(subject: Any, part: Any) -> bool:
        return relation(*_text(name, subject, part))

    return function


def trim(subject: Any) -> str:
    (text,) = _text("trim", subject)
    return text.strip(SPACE)


TEXT_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "matches": matches,
    "contains": _of_texts("contains", str.__contains__),
    "startsWith": _of_texts("startsWith", str.startswith),
    "endsWith": _of_texts("endsWith", str.endswith),
    "charAt": char_at,
    "substring": substring,
    "replace": replace,
    "split": split,
    "join": join,
    "trim": trim,
    "lowerAscii": lambda subject: _ascii(subject, upper=False),
    "upperAscii": lambda subject: _ascii(subject, upper=True),
}


_DOUBLE: Final = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
#: Values that the API lets an attribute of a device have.
ATTRIBUTE_VALUES_MAX: Final = 48
_ORDER: Final = {"<": BINARY["_<_"], ">": BINARY["_>_"]}


# --- conversions --------------------------------------------------------------------------------


def to_int(value: Any) -> int:
    if isinstance(value, float):
        if not INT_MIN < value < INT_MAX:
            raise CelRuntimeError("integer overflow")
        return int(value)
    if is_number(value):
        return checked_int(int(value))
    if isinstance(value, str) and (number := integer(value)) is not None:
        return checked_int(number)
    raise no_overload("int", value)


def to_uint(value: Any) -> Uint:
    if isinstance(value, float):
        if not 0 <= value <= UINT_MAX:
            raise CelRuntimeError("unsigned integer overflow")
        return checked_uint(int(value))
    if is_number(value):
        return checked_uint(int(value))
    if isinstance(value, str) and (number := integer(value)) is not None:
        return checked_uint(number)
    raise no_overload("uint", value)


def to_double(value: Any) -> float:
    if is_number(value):
        return float(value)
    if isinstance(value, str) and _DOUBLE.fullmatch(value):
        return float(value)
    raise no_overload("double", value)


def to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return short_float(value)
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if is_number(value):
        return str(int(value))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None
    raise no_overload("string", value)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "false", "FALSE", "False"):
        return False
    raise no_overload("bool", value)


def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise no_overload("bytes", value)


def type_of(value: Any) -> Type:
    return Type(type_name(value))


def size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise no_overload("size", value)


# --- lists and sets -----------------------------------------------------------------------------


def _list(function: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise no_overload(function, value)


def is_sorted(values: Any) -> bool:
    items = _list("isSorted", values)
    return not any(_ORDER[">"](a, b) for a, b in pairwise(items))


def sum_of(values: Any) -> Any:
    items = _list("sum", values)
    total = items[0] if items else 0
    for item in items[1:]:
        total = add(total, item)
    return total


def _extreme(symbol: str, name: str) -> Function:
    def function(values: Any) -> Any:
        items = _list(name, values)
        if not items:
            raise CelRuntimeError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _ORDER[symbol](item, best):
                best = item
        return best

    return function


def index_of(values: Any, wanted: Any, start: Any = 0) -> int:
    if isinstance(values, str):
        return text_index_of(values, wanted, start)
    items = _list("indexOf", values)
    return next((i for i, item in enumerate(items) if equals(item, wanted)), -1)


def last_index_of(values: Any, wanted: Any, start: Any = None) -> int:
    if isinstance(values, str):
        return text_last_index_of(values, wanted, start)
    items = _list("lastIndexOf", values)
    return next((i for i in reversed(range(len(items))) if equals(items[i], wanted)), -1)


def sets_contains(left: Any, right: Any) -> bool:
    return all(
        contains(item, _list("sets.contains", left)) for item in _list("sets.contains", right)
    )


def sets_equivalent(left: Any, right: Any) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def sets_intersects(left: Any, right: Any) -> bool:
    items = _list("sets.intersects", right)
    return any(contains(item, items) for item in _list("sets.intersects", left))


# --- quantities and versions --------------------------------------------------------------------


def to_quantity(text: Any) -> Quantity:
    if not isinstance(text, str):
        raise no_overload("quantity", text)
    found = parse_quantity(text)
    if found is None:
        raise CelRuntimeError(f"quantity {text!r} cannot be parsed")
    return found


def is_quantity(text: Any) -> bool:
    if not isinstance(text, str):
        raise no_overload("isQuantity", text)
    return parse_quantity(text) is not None


def to_semver(text: Any, normalize: Any = False) -> Semver:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("semver", text, normalize)
    found = parse_semver(text, normalize)
    if found is None:
        raise CelRuntimeError(f"semantic version {text!r} cannot be parsed")
    return found


def is_semver(text: Any, normalize: Any = False) -> bool:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("isSemver", text, normalize)
    return parse_semver(text, normalize) is not None


def compare_to(left: Any, right: Any) -> int:
    """-1, 0 or 1, between two quantities or two versions."""
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left.value > right.value) - (left.value < right.value)
    if isinstance(left, Semver) and isinstance(right, Semver):
        return (left.order > right.order) - (left.order < right.order)
    raise no_overload("compareTo", left, right)


def sign(value: Any) -> int:
    number = _quantity("sign", value).value
    return (number > 0) - (number < 0)


def _quantity(function: str, value: Any) -> Quantity:
    if isinstance(value, Quantity):
        return value
    raise no_overload(function, value)


def _quantity_sum(function: str, factor: int) -> Function:
    def combine(left: Any, right: Any) -> Quantity:
        base = _quantity(function, left).value
        if isinstance(right, Quantity):
            return Quantity(base + factor * right.value)
        if is_number(right) and not isinstance(right, float):
            return Quantity(base + factor * int(right))
        raise no_overload(function, left, right)

    return combine


def is_integer(value: Any) -> bool:
    number = _quantity("isInteger", value).value
    return number.denominator == 1 and INT_MIN <= number <= INT_MAX


def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise CelRuntimeError("cannot convert value to integer")
    return int(_quantity("asInteger", value).value)


def as_float(value: Any) -> float:
    """Infinite beyond the range of a double."""
    number: Fraction = _quantity("asApproximateFloat", value).value
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _part(name: str) -> Function:
    def part(value: Any) -> int:
        if isinstance(value, Semver):
            return int(getattr(value, name))
        raise no_overload(name, value)

    return part


# --- optional values ----------------------------------------------------------------------------


def _optional(function: str, value: Any) -> Optional:
    if isinstance(value, Optional):
        return value
    raise no_overload(function, value)


def optional_of(value: Any) -> Optional:
    return Optional(is_present=True, value=value)


def optional_none() -> Optional:
    return NOTHING


def optional_of_non_zero(value: Any) -> Optional:
    empty = value is None or (not isinstance(value, (Quantity, Semver, Optional)) and not value)
    return NOTHING if empty else optional_of(value)


def includes(target: Any, item: Any) -> bool:
    """Whether an attribute has a value: one of its list, or the only one."""
    if not isinstance(target, list):
        return equals(target, item)
    for position, element in enumerate(target):
        if position == ATTRIBUTE_VALUES_MAX:
            raise CelRuntimeError(
                "'includes' function cannot be applied to lists longer than"
                f" {ATTRIBUTE_VALUES_MAX} values"
            )
        if equals(element, item):
            return True
    return False


def optional_value(value: Any) -> Any:
    found = _optional("value", value)
    if not found.is_present:
        raise CelRuntimeError("optional.none() dereference")
    return found.value


FUNCTIONS: Final[dict[str, Function]] = {
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bool": to_bool,
    "bytes": to_bytes,
    "dyn": lambda value: value,
    "type": type_of,
    "size": size,
    "matches": matches,
    "quantity": to_quantity,
    "isQuantity": is_quantity,
    "semver": to_semver,
    "isSemver": is_semver,
    "sets.contains": sets_contains,
    "sets.equivalent": sets_equivalent,
    "sets.intersects": sets_intersects,
    "optional.of": optional_of,
    "optional.none": optional_none,
    "optional.ofNonZeroValue": optional_of_non_zero,
}
METHODS: Final[dict[str, Function]] = {
    "includes": includes,
    **TEXT_METHODS,
    "size": size,
    "isSorted": is_sorted,
    "sum": sum_of,
    "min": _extreme("<", "min"),
    "max": _extreme(">", "max"),
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "compareTo": compare_to,
    "isGreaterThan": lambda left, right: compare_to(left, right) > 0,
    "isLessThan": lambda left, right: compare_to(left, right) < 0,
    "sign": sign,
    "add": _quantity_sum("add", 1),
    "sub": _quantity_sum("sub", -1),
    "isInteger": is_integer,
    "asInteger": as_integer,
    "asApproximateFloat": as_float,
    "major": _part("major"),
    "minor": _part("minor"),
    "patch": _part("patch"),
    "hasValue": lambda value: _optional("hasValue", value).is_present,
    "value": optional_value,
}
