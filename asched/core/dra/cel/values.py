"""Values of CEL: Python's own where they fit, and types for the rest; its errors; and the state of
an evaluation: bound names, and the remaining cost.

int is a signed 64-bit integer, Uint an unsigned one, float a double; bool is not a number. Numbers
of different types may be equal; other values of different types are never equal.
"""

import re
from collections.abc import Callable
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


# Regular expressions in linear time: RE2, whose dialect Go's package follows.
#
# Any client that may create a claim can write a pattern, so that no pattern may cost more than its
# length times that of the text; Python's own engine cannot guarantee that. Only whether a pattern
# matches is returned.
#
# `\C`, a single byte, is the only construct that RE2 accepts and Go does not. A few characters may
# stand for a large automaton (`\pL{300}`), so that the cost of a match is its size; a pattern
# beyond PATTERN_BYTES_MAX, where compiling alone would take longer than a selector may, is
# rejected. Go's package is not so strict.

#: Cached patterns. A client that may create claims can write any number of patterns, and each may
#: take twice PATTERN_BYTES_MAX (measured).
PATTERNS_MAX: Final = 128
#: Memory of one compiled pattern and of its automata (bytes): some 30 ms of compiling. RE2's
#: default is eight times as much.
PATTERN_BYTES_MAX: Final = 1 << 20
#: Cost of a rejected pattern, in steps.
REFUSED_STEPS: Final = 20_000
_SINGLE_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)


@lru_cache(maxsize=PATTERNS_MAX)
def _compiled(text: str) -> Any:
    """The pattern of re2, or a CelRuntimeError if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    if _SINGLE_BYTE.match(text):
        why = r"invalid escape sequence: \C"
    else:
        try:
            return re2.compile(text, options)
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            why = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    return CelRuntimeError(f"regular expression {text!r}: {why}")


def compile_pattern(text: str) -> Any:
    """The pattern of re2, compiled once. Raises CelRuntimeError."""
    found = _compiled(text)
    if isinstance(found, CelRuntimeError):
        raise found.with_traceback(None)  # or the traceback would grow each time
    return found


def steps_of(text: str) -> int:
    """The size of the compiled pattern, the same whether it is cached or not."""
    found = _compiled(text)
    return REFUSED_STEPS if isinstance(found, CelRuntimeError) else int(found.programsize)


# Cost of a call: a tenth of the size of its operands, nested values included, and more where its
# work or its result is larger than they are.
#
# Lists may contain one another many times, so that a short expression may compare huge values:
# sizes are counted before the call.
#
# Source  kubernetes/kubernetes v1.36 apiserver/pkg/cel/library (cost.go); cel-go checker/cost.go

#: Cost of a call per so many characters or elements.
SHARE: Final = 10
#: ... and for each of so many characters of a pattern.
PATTERN_SHARE: Final = 4
#: ... and per so many instructions of the compiled pattern: half a microsecond each (measured).
STEPS_SHARE: Final = 2

_SIZED: Final = (str, bytes, list, dict, Optional)


def weight(value: Any, limit: int) -> int:
    """Characters and elements in a value, counted until there are more than `limit`."""
    total, todo = 0, [value]
    while todo and total <= limit:
        part = todo.pop()
        if isinstance(part, Optional):
            todo.append(part.value)
        elif isinstance(part, (str, bytes, list, dict)):
            total += len(part)
        if isinstance(part, (list, dict)):
            items = part.values() if isinstance(part, dict) else part
            todo += [item for item in items if isinstance(item, _SIZED)]
    return total


def _matches(text: str, pattern: str, *_: Any) -> int:
    """Includes compiling the pattern each time, so that the cost is deterministic."""
    work = (len(text) // SHARE + 1) * (len(pattern) // PATTERN_SHARE + 1)
    return work + steps_of(pattern) // STEPS_SHARE


def _replace(text: str, old: str, new: str, *_: Any) -> int:
    """Size of the result if every occurrence were replaced."""
    return str.count(text, old) * len(new) // SHARE


def _pairs(left: list[Any], right: list[Any], *_: Any) -> int:
    """Every element of one operand is compared with every element of the other."""
    return len(left) * len(right) // SHARE


def _sum(values: list[Any], *_: Any) -> int:
    """Texts and lists are concatenated one by one, copied each time."""
    sizes = (len(value) for value in values if isinstance(value, (str, bytes, list)))
    return len(values) * sum(sizes) // SHARE


#: Cost of functions beyond their operands, by name. Operands of wrong types may raise TypeError.
EXTRA: Final[dict[str, Callable[..., int]]] = {
    "matches": _matches,
    "replace": _replace,
    "join": lambda values, separator="", *_: _pairs(values, separator),
    "sum": _sum,
    "sets.contains": _pairs,
    "sets.equivalent": lambda left, right, *_: 2 * _pairs(left, right),
    "sets.intersects": lambda left, right, *_: _pairs(left, right) + _pairs(right, right),
}


#: Cost limit of one evaluation: some 40 ms, since it cannot be interrupted. The API's own limit
#: (CELSelectorExpressionMaxCost) is twenty times as much; selectors cost ten to a hundred.
COST_MAX: Final = 50_000


class Frame:
    __slots__ = ("_left", "_max", "variables")

    def __init__(self, variables: dict[str, Any], cost_max: int = COST_MAX) -> None:
        self.variables = variables
        self._left = self._max = cost_max

    def spend(self, cost: int) -> None:
        """Raises CelRuntimeError once the limit is passed."""
        self._left -= cost
        if self._left < 0:
            raise CelRuntimeError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, values: list[Any], extra: Callable[..., int] | None) -> None:
        """Charge one for the call, plus the size of its operands, plus its extra work
        (`EXTRA`, which raises TypeError for wrong operands).
        """
        limit = SHARE * self._left
        self.spend(1 + sum(weight(value, limit) // SHARE for value in values))
        if extra is not None:
            self.spend(extra(*values))

    @property
    def spent(self) -> int:
        return self._max - self._left

    @property
    def is_exhausted(self) -> bool:
        return self._left < 0


Evaluate = Callable[[Frame], Any]
