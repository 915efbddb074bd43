"""Functions and methods: conversions, sizes, lists, sets, quantities, versions, optional values.

A function is found by its name and by whether it has a target, which is its first argument. Its
operands are checked by type, and a wrong type is a CelRuntimeError, because an expression over
attributes of unknown type can only be checked when it runs.
"""

import math
import operator
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Final, TypeVar

from asched.core.config.scalars import short_float
from asched.core.dra.cel.operators import OPERATORS, add, contains
from asched.core.dra.cel.regex import compile_pattern
from asched.core.dra.cel.values import (
    NOTHING,
    CelRuntimeError,
    Optional,
    Quantity,
    Semver,
    Type,
    Uint,
    checked_int,
    checked_uint,
    equals,
    is_number,
    no_overload,
    parse_quantity,
    parse_semver,
    type_name,
)
from asched.core.model.quantity import INT64_MAX, INT64_MIN, UINT64_MAX

F = TypeVar("F", bound=Callable[..., Any])


class Overloaded:
    """A function of CEL. The first overload counts whose types are those of the operands."""

    __slots__ = ("_name", "_overloads")

    def __init__(self, name: str) -> None:
        self._name = name
        self._overloads: list[tuple[tuple[type, ...], Callable[..., Any]]] = []

    def add(self, kinds: tuple[type, ...], body: Callable[..., Any]) -> None:
        self._overloads.append((kinds, body))

    def __call__(self, *values: Any) -> Any:
        for kinds, body in self._overloads:
            if all(k is object or type(v) is k for v, k in zip(values, kinds, strict=False)):
                return body(*values)
        raise no_overload(self._name, *values)


FUNCTIONS: Final[dict[str, Overloaded]] = {}
METHODS: Final[dict[str, Overloaded]] = {}


def _overload(table: dict[str, Overloaded], name: str, *kinds: type) -> Callable[[F], F]:
    """Add an overload with operands of these types; `object` and types that are left out mean any
    type.
    """

    def register(body: F) -> F:
        table.setdefault(name, Overloaded(name)).add(kinds, body)
        return body

    return register


function: Final = partial(_overload, FUNCTIONS)
method: Final = partial(_overload, METHODS)


# --- strings, as defined by CEL's string extension ----------------------------------------------

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


@function("matches", str, str)
@method("matches", str, str)
def matches(text: str, pattern: str) -> bool:
    """Matches anywhere in the text, unless the pattern is anchored."""
    return compile_pattern(pattern).search(text) is not None


method("contains", str, str)(str.__contains__)
method("startsWith", str, str)(str.startswith)
method("endsWith", str, str)(str.endswith)
method("trim", str)(lambda text: text.strip(SPACE))
method("lowerAscii", str)(lambda text: _each_ascii(text, str.lower))
method("upperAscii", str)(lambda text: _each_ascii(text, str.upper))


def _each_ascii(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(c) if c.isascii() else c for c in text)


@method("indexOf", str, str, int)
def text_index_of(text: str, part: str, start: int = 0) -> int:
    """-1 if it does not occur, and for a start beyond the end."""
    if part == "":
        return start
    if start < 0:
        raise CelRuntimeError(f"index out of range: {start}")
    return text.find(part, start)


@method("lastIndexOf", str, str, int)
def text_last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Position of the last occurrence at or before the start; -1 for a start beyond the end."""
    if start is None:
        return text.rfind(part)
    if part == "":
        return start
    if start < 0:
        raise CelRuntimeError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


@method("charAt", str, int)
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelRuntimeError(f"index out of range: {index}")
    return text[index : index + 1]


@method("substring", str, int, int)
def substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and start > last:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {last}")
    for at in (start, last):
        if not 0 <= at <= len(text):
            raise CelRuntimeError(f"index out of range: {at}")
    return text[start:last]


@method("replace", str, str, str, int)
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


@method("split", str, str, int)
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        if limit < 0 or len(parts) <= limit:
            return parts
        return [*parts[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


@method("join", list, str)
def join(values: list[Any], separator: str = "") -> str:
    """Raises TypeError for values other than texts, which `apply` reports."""
    return separator.join(values)


# --- conversions --------------------------------------------------------------------------------

_DOUBLE: Final = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)


@function("int")
def to_int(value: Any) -> int:
    if isinstance(value, float):
        if not INT64_MIN < value < INT64_MAX:
            raise CelRuntimeError("integer overflow")
        return int(value)
    return checked_int(_whole("int", value))


@function("uint")
def to_uint(value: Any) -> Uint:
    if isinstance(value, float):
        if not 0 <= value <= UINT64_MAX:
            raise CelRuntimeError("unsigned integer overflow")
        return checked_uint(int(value))
    return checked_uint(_whole("uint", value))


def _whole(name: str, value: Any) -> int:
    if is_number(value):
        return int(value)
    if isinstance(value, str) and (number := integer(value)) is not None:
        return number
    raise no_overload(name, value)


@function("double")
def to_double(value: Any) -> float:
    if is_number(value) or (isinstance(value, str) and _DOUBLE.fullmatch(value)):
        return float(value)
    raise no_overload("double", value)


@function("string")
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


@function("bool")
def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "false", "FALSE", "False"):
        return False
    raise no_overload("bool", value)


function("bytes", bytes)(lambda value: value)
function("bytes", str)(str.encode)
function("dyn")(lambda value: value)
function("type")(lambda value: Type(type_name(value)))


@function("size")
@method("size")
def size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise no_overload("size", value)


# --- lists and sets -----------------------------------------------------------------------------


@method("isSorted", list)
def is_sorted(items: list[Any]) -> bool:
    return not any(map(OPERATORS["_>_"], items, items[1:]))


@method("sum", list)
def sum_of(items: list[Any]) -> Any:
    return reduce(add, items) if items else 0


def _extreme(name: str, symbol: str) -> None:
    @method(name, list)
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise CelRuntimeError(f"{name} called on empty list")
        return reduce(lambda best, item: item if OPERATORS[symbol](item, best) else best, items)


_extreme("min", "_<_")
_extreme("max", "_>_")


@method("indexOf", list)
def index_of(items: list[Any], wanted: Any, _: Any = 0) -> int:
    return next((i for i, item in enumerate(items) if equals(item, wanted)), -1)


@method("lastIndexOf", list)
def last_index_of(items: list[Any], wanted: Any, _: Any = 0) -> int:
    return next((i for i in reversed(range(len(items))) if equals(items[i], wanted)), -1)


@function("sets.contains", list, list)
def sets_contains(left: list[Any], right: list[Any]) -> bool:
    return all(contains(item, left) for item in right)


@function("sets.equivalent", list, list)
def sets_equivalent(left: list[Any], right: list[Any]) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


@function("sets.intersects", list, list)
def sets_intersects(left: list[Any], right: list[Any]) -> bool:
    return any(contains(item, right) for item in left)


#: Values that the API lets an attribute of a device have.
ATTRIBUTE_VALUES_MAX: Final = 48


@method("includes")
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


# --- quantities and versions --------------------------------------------------------------------


@function("quantity", str)
def to_quantity(text: str) -> Quantity:
    found = parse_quantity(text)
    if found is None:
        raise CelRuntimeError(f"quantity {text!r} cannot be parsed")
    return found


@function("semver", str, bool)
def to_semver(text: str, normalize: bool = False) -> Semver:
    found = parse_semver(text, normalize)
    if found is None:
        raise CelRuntimeError(f"semantic version {text!r} cannot be parsed")
    return found


function("isQuantity", str)(lambda text: parse_quantity(text) is not None)
function("isSemver", str, bool)(lambda *text: parse_semver(*text) is not None)


def compare_to(left: Any, right: Any) -> int:
    """-1, 0 or 1, between two quantities or two versions."""
    first, second = _rank(left), _rank(right)
    return bool(first > second) - bool(first < second)


def _rank(value: Quantity | Semver) -> Any:
    return value.value if isinstance(value, Quantity) else value.order


for _kind in (Quantity, Semver):
    method("compareTo", _kind, _kind)(compare_to)
    method("isGreaterThan", _kind, _kind)(lambda left, right: compare_to(left, right) > 0)
    method("isLessThan", _kind, _kind)(lambda left, right: compare_to(left, right) < 0)


def _quantity_sum(name: str, factor: int) -> None:
    def combine(left: Quantity, right: Quantity | int) -> Quantity:
        amount = right.value if isinstance(right, Quantity) else int(right)
        return Quantity(left.value + factor * amount)

    for kind in (Quantity, int, Uint):
        method(name, Quantity, kind)(combine)


_quantity_sum("add", 1)
_quantity_sum("sub", -1)


@method("sign", Quantity)
def sign(quantity: Quantity) -> int:
    return (quantity.value > 0) - (quantity.value < 0)


@method("isInteger", Quantity)
def is_integer(quantity: Quantity) -> bool:
    return quantity.value.denominator == 1 and INT64_MIN <= quantity.value <= INT64_MAX


@method("asInteger", Quantity)
def as_integer(quantity: Quantity) -> int:
    if not is_integer(quantity):
        raise CelRuntimeError("cannot convert value to integer")
    return int(quantity.value)


@method("asApproximateFloat", Quantity)
def as_float(quantity: Quantity) -> float:
    """Infinite beyond the range of a double."""
    try:
        return float(quantity.value)
    except OverflowError:
        return math.inf if quantity.value > 0 else -math.inf


for _part in ("major", "minor", "patch"):
    method(_part, Semver)(operator.attrgetter(_part))


# --- optional values ----------------------------------------------------------------------------


@function("optional.of")
def optional_of(value: Any) -> Optional:
    return Optional(is_present=True, value=value)


@function("optional.ofNonZeroValue")
def optional_of_non_zero(value: Any) -> Optional:
    empty = value is None or (not isinstance(value, (Quantity, Semver, Optional)) and not value)
    return NOTHING if empty else optional_of(value)


@method("value", Optional)
def optional_value(optional: Optional) -> Any:
    if not optional.is_present:
        raise CelRuntimeError("optional.none() dereference")
    return optional.value


function("optional.none")(lambda: NOTHING)
method("hasValue", Optional)(operator.attrgetter("is_present"))
