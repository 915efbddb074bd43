"""Functions on strings, as defined by CEL's string extension."""

import re
from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.regex import compile_pattern
from asched.core.dra.cel.values import Uint, no_overload

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


def index_of(subject: Any, wanted: Any, start: Any = 0) -> int:
    """-1 if it does not occur, and for a start beyond the end."""
    text, part = _text("indexOf", subject, wanted)
    at = _number("indexOf", start)
    if part == "":
        return at
    if at < 0:
        raise CelRuntimeError(f"index out of range: {at}")
    return text.find(part, at)


def last_index_of(subject: Any, wanted: Any, start: Any = None) -> int:
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


def contains(subject: Any, part: Any) -> bool:
    text, wanted = _text("contains", subject, part)
    return wanted in text


def starts_with(subject: Any, part: Any) -> bool:
    text, wanted = _text("startsWith", subject, part)
    return text.startswith(wanted)


def ends_with(subject: Any, part: Any) -> bool:
    text, wanted = _text("endsWith", subject, part)
    return text.endswith(wanted)


def trim(subject: Any) -> str:
    (text,) = _text("trim", subject)
    return text.strip(SPACE)


METHODS: Final[dict[str, Callable[..., Any]]] = {
    "matches": matches,
    "contains": contains,
    "startsWith": starts_with,
    "endsWith": ends_with,
    "charAt": char_at,
    "substring": substring,
    "replace": replace,
    "split": split,
    "join": join,
    "trim": trim,
    "lowerAscii": lambda subject: _ascii(subject, upper=False),
    "upperAscii": lambda subject: _ascii(subject, upper=True),
}
