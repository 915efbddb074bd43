"""Durations in Go's format: `1h2m3.004s`, stored as whole nanoseconds.

Rules   a number without a unit is rejected, except a plain 0; a leading sign is allowed;
        printing is the shortest form Go prints: `10m0s`, `1.5s`, `250ms`, `0s`.
Source  Go standard library, package time (ParseDuration, Duration.String)
"""

import re
from fractions import Fraction
from typing import Final

from asched.core.model.quantity import INT64_MAX

#: Unit -> nanoseconds; both spellings of micro are Go's.
UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
#: A number with more digits is no duration in any unit; digits beyond that after the point are less
#: than 1 ns.
DIGITS_MAX = len(str(INT64_MAX))
_NUMBER = re.compile(r"[0-9]*(?:\.[0-9]*)?", re.ASCII)
_UNIT = re.compile(r"[^.0-9]*", re.ASCII)


def _quoted(text: str) -> str:
    """A text as package time quotes it: bytes other than visible ASCII in hexadecimal."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if " " <= letter < "\x80":
        return f"\\{letter}" if letter in '"\\' else letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode())


def parse(text: str) -> int:
    """Nanoseconds of a Go duration; raises ValueError with Go's message."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    if not body:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    total = 0
    position = 0
    while position < len(body):
        number = _NUMBER.match(body, position)
        digits = number.group() if number else ""
        if not digits.strip("."):
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        position += len(digits)
        unit_match = _UNIT.match(body, position)
        unit = unit_match.group() if unit_match else ""
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in UNITS_NS:
            raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        position += len(unit)
        whole, _, part = digits.partition(".")
        whole = whole.lstrip("0") or "0"
        if len(whole) > DIGITS_MAX:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        total += int(Fraction(f"{whole}.{part[:DIGITS_MAX] or 0}") * UNITS_NS[unit])
    if total > INT64_MAX:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    return -total if text[:1] == "-" else total


def render(value_ns: int) -> str:
    """The text Go prints for a duration."""
    if value_ns == 0:
        return "0s"
    sign, rest = ("-", -value_ns) if value_ns < 0 else ("", value_ns)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if rest < size * 1_000:
            return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, seconds_ns = divmod(rest, UNITS_NS["m"])
    text = f"{_decimal(seconds_ns, UNITS_NS['s'])}s"
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes_left}m{text}"
    return f"{sign}{minutes_left}m{text}" if minutes_left else f"{sign}{text}"


def _decimal(amount: int, size: int) -> str:
    whole, part = divmod(amount, size)
    if not part:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{part:0{digits}d}".rstrip("0")
