"""Functions of strings, as the language's string extension and the regular expression library have
them.

Patterns are RE2's; what RE2 leaves out on purpose (look-around, back references) is refused, the
rest means the same to Python's engine, whose worst case is bounded by PATTERN_LENGTH_MAX and
SUBJECT_MAX.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.values import no_overload

#: Attribute values have at most 64 characters; literals in expressions may have more. Guesses.
PATTERN_LENGTH_MAX: Final = 1024
SUBJECT_MAX: Final = 4096
CACHE_SIZE: Final = 1024

_INTEGER: Final = re.compile(r"[+-]?\d+")
_BEYOND_RE2: Final = re.compile(
    r"(?<!\\)(?:\\\\)*(?:\\[1-9]|\\k|\(\?(?:[=!#>(]|<[=!]|P=)|[*+?}]\+)"
)


def integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


@lru_cache(maxsize=CACHE_SIZE)
def pattern(text: str) -> re.Pattern[str]:
    """Raises CelRuntimeError for what is no RE2 pattern."""
    if len(text) > PATTERN_LENGTH_MAX or _BEYOND_RE2.search(text):
        raise CelRuntimeError(f"regular expression {text!r} is not supported")
    try:
        return re.compile(text.replace(r"\z", r"\Z"), re.ASCII)
    except re.error as error:
        raise CelRuntimeError(f"regular expression {text!r}: {error}") from None


def _text(function: str, *values: Any) -> tuple[str, ...]:
    if all(isinstance(value, str) for value in values):
        return values
    raise no_overload(function, *values)


def _number(function: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise no_overload(function, value)


def matches(subject: Any, expression: Any) -> bool:
    """Anywhere in the subject, unless the pattern is anchored."""
    text, wanted = _text("matches", subject, expression)
    if len(text) > SUBJECT_MAX:
        raise CelRuntimeError(f"matches: string is longer than {SUBJECT_MAX} characters")
    return pattern(wanted).search(text) is not None


def find(subject: Any, expression: Any) -> str:
    text, wanted = _text("find", subject, expression)
    found = pattern(wanted).search(text[:SUBJECT_MAX])
    return found.group() if found else ""


def find_all(subject: Any, expression: Any, limit: Any = -1) -> list[str]:
    text, wanted = _text("findAll", subject, expression)
    found = [match.group() for match in pattern(wanted).finditer(text[:SUBJECT_MAX])]
    count = _number("findAll", limit)
    return found if count < 0 else found[:count]


def index_of(subject: Any, wanted: Any, start: Any = 0) -> int:
    text, part = _text("indexOf", subject, wanted)
    at = _number("indexOf", start)
    if part == "":
        return at
    if not 0 <= at <= len(text):
        raise CelRuntimeError(f"index out of range: {at}")
    return text.find(part, at)


def last_index_of(subject: Any, wanted: Any, start: Any = None) -> int:
    text, part = _text("lastIndexOf", subject, wanted)
    at = len(text) if start is None else _number("lastIndexOf", start)
    if not 0 <= at <= len(text):
        raise CelRuntimeError(f"index out of range: {at}")
    return text.rfind(part, 0, at + len(part))


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
    if not 0 <= first <= last <= len(text):
        raise CelRuntimeError(f"index out of range: {first}, {last}")
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
    return text.strip()


METHODS: Final[dict[str, Callable[..., Any]]] = {
    "matches": matches,
    "find": find,
    "findAll": find_all,
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
