"""Values of CEL: Python's own where they fit, and types for the rest; and its errors.

int is a signed 64-bit integer, Uint an unsigned one, float a double; bool is not a number. Numbers
of different types may be equal; other values of different types are never equal.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import msgspec

from asched.core.model.quantity import INT64_MAX, INT64_MIN, UINT64_MAX, parse

#: Characters of an expression that a message shows.
SHOWN_MAX: Final = 120


class CelError(ValueError):
    """Base of both; `str` is one line for users."""


class CelSyntaxError(CelError):
    """The expression cannot be compiled. The message has the expression and the position."""

    def __init__(self, expression: str, position: int, message: str) -> None:
        line = expression.count("\n", 0, position) + 1
        column = position - (expression.rfind("\n", 0, position) + 1) + 1
        shown = expression if len(expression) <= SHOWN_MAX else expression[:SHOWN_MAX] + "..."
        super().__init__(f"compilation failed: {shown!r}, line {line} column {column}: {message}")
        self.position = position


class CelRuntimeError(CelError):
    """The expression has no value: a missing key, operands of wrong types, the cost limit."""


#: Cached texts of quantities and versions in selectors and slices; a generous guess.
CACHE_SIZE: Final = 4096
#: Longer versions are invalid: the API allows 64 characters in an attribute.
SEMVER_LENGTH_MAX: Final = 256


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Quantity(msgspec.Struct, frozen=True):
    """A Kubernetes quantity, compared exactly."""

    value: Fraction


class Semver(msgspec.Struct, frozen=True):
    """A semantic version 2.0.0; `build` is ignored in comparisons."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...]

    @property
    def order(self) -> tuple[Any, ...]:
        """Numbers before words, fewer identifiers first, a release after all its prereleases."""
        marks = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, marks


class Optional(msgspec.Struct, frozen=True):
    """`optional.of(x)`, or none where `is_present` is false."""

    is_present: bool
    value: Any = None


NOTHING: Final = Optional(is_present=False)


class Type(msgspec.Struct, frozen=True):
    """Result of `type(x)`."""

    name: str


class DefaultMap(dict[str, Any]):
    """Attributes or capacities by domain; the value of an unknown domain is an empty map."""

    __slots__ = ()


_MARK: Final = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    rf"(?:-({_MARK}(?:\.{_MARK})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_LOOSE: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?", re.ASCII)


@lru_cache(maxsize=CACHE_SIZE)
def parse_semver(text: str, normalize: bool = False) -> Semver | None:
    """None if it is invalid. `normalize` adds missing parts, drops a leading v and leading
    zeros.
    """
    if len(text) > SEMVER_LENGTH_MAX:
        return None
    if normalize and (loose := _LOOSE.fullmatch(text)):
        major, minor, patch, rest = loose.groups()
        if rest and patch is None:
            return None
        text = f"{int(major)}.{int(minor or 0)}.{int(patch or 0)}{rest or ''}"
    found = _SEMVER.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, prerelease = found.groups()
    marks = tuple(prerelease.split(".")) if prerelease else ()
    return Semver(int(major), int(minor), int(patch), marks)


@lru_cache(maxsize=CACHE_SIZE)
def parse_quantity(text: str | float) -> Quantity | None:
    """None if it is invalid."""
    try:
        return Quantity(parse(text))
    except ValueError:  # a QuantityError, or more digits than Python converts
        return None


def type_name(value: Any) -> str:
    """The name of a value's type in CEL."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "null_type" if value is None else type(value).__name__


_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (Quantity, "kubernetes.Quantity"),
    (Semver, "kubernetes.Semver"),
    (Optional, "optional_type"),
    (Type, "type"),
)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equals(left: Any, right: Any) -> bool:
    """`==` of CEL, which never fails."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(
            key in right and equals(value, right[key]) for key, value in left.items()
        )
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equals, left, right))
    if isinstance(left, Optional):
        if not (left.is_present and right.is_present):
            return not left.is_present and not right.is_present
        return equals(left.value, right.value)
    return bool(left == right)


def checked_int(value: int) -> int:
    """The value, if it fits. Raises CelRuntimeError."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise CelRuntimeError("integer overflow")


def checked_uint(value: int) -> Uint:
    """The value, if it fits. Raises CelRuntimeError."""
    if 0 <= value <= UINT64_MAX:
        return Uint(value)
    raise CelRuntimeError("unsigned integer overflow")


def no_overload(function: str, *values: Any) -> CelRuntimeError:
    """The error for operands a function does not know."""
    return CelRuntimeError(f"no such overload: {function}({', '.join(map(type_name, values))})")
