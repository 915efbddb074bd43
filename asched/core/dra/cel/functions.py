"""Functions and methods: conversions, sizes, lists, sets, quantities, versions, optional values.

A function is found by its name and by whether it has a target, which is its first argument. Its
operands are checked by type, and a wrong type is a CelRuntimeError, because an expression over
attributes of unknown type can only be checked when it runs.
"""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from asched.core.config.scalars import short_float
from asched.core.dra.cel import strings
from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.operators import BINARY, add, contains
from asched.core.dra.cel.values import (
    INT_MAX,
    INT_MIN,
    NOTHING,
    UINT_MAX,
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

Function = Callable[..., Any]

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
    if isinstance(value, str) and (number := strings.integer(value)) is not None:
        return checked_int(number)
    raise no_overload("int", value)


def to_uint(value: Any) -> Uint:
    if isinstance(value, float):
        if not 0 <= value <= UINT_MAX:
            raise CelRuntimeError("unsigned integer overflow")
        return checked_uint(int(value))
    if is_number(value):
        return checked_uint(int(value))
    if isinstance(value, str) and (number := strings.integer(value)) is not None:
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
        return strings.index_of(values, wanted, start)
    items = _list("indexOf", values)
    return next((i for i, item in enumerate(items) if equals(item, wanted)), -1)


def last_index_of(values: Any, wanted: Any, start: Any = None) -> int:
    if isinstance(values, str):
        return strings.last_index_of(values, wanted, start)
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
    "matches": strings.matches,
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
    **strings.METHODS,
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
