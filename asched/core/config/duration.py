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
DIGITS_MAX: Final = len(str(INT64_MAX))
_PART: Final = f"0*([0-9]*)(?:\\.([0-9]*))?({'|'.join(UNITS_NS)})"
_PARTS: Final = re.compile(_PART)
_DURATION: Final = re.compile(
    f"[-+]?(0|((?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:{'|'.join(UNITS_NS)}))+)", re.ASCII
)


def parse(text: str) -> int:
    """Nanoseconds of a Go duration; raises ValueError with what is expected."""
    total = 0
    is_duration = _DURATION.fullmatch(text) is not None
    for whole, part, unit in _PARTS.findall(text) if is_duration else ():
        is_duration = is_duration and len(whole) <= DIGITS_MAX
        if is_duration:
            total += int(Fraction(f"{whole or 0}.{part[:DIGITS_MAX] or 0}") * UNITS_NS[unit])
    if not is_duration or total > INT64_MAX:
        raise ValueError("must be a duration of at most 292 years, such as 15s or 1h30m")
    return -total if text[0] == "-" else total


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
