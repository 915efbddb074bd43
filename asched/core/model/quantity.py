"""Kubernetes quantities, parsed exactly and rounded up like the API machinery.

A quantity is a decimal number with an optional suffix: binary (Ki … Ei), decimal (n, u, m, k, M …
E) or an exponent (e3, E-3). Amounts are kept as integers: milli-units for cpu, whole units for
everything else. Rounding is always up (away from zero), and only after sums have been made in exact
arithmetic.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final

#: Cached strings; clusters use few distinct ones. A generous guess.
CACHE_SIZE: Final = 16_384
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1

Quantity = str | int | float

_FORM: Final = re.compile(
    r"([+-]?)(\d+\.?\d*|\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)|[eE]([+-]?\d+))?",
    re.ASCII,
)
_SCALE: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{
        suffix: Fraction(1000**power)
        for power, suffix in enumerate(["k", "M", "G", "T", "P", "E"], 1)
    },
    **{f"{s}i": Fraction(1024**power) for power, s in enumerate(["K", "M", "G", "T", "P", "E"], 1)},
}


#: The API server writes some thirty characters; Python refuses numbers of thousands of digits.
CHARS_MAX: Final = 1_000


class QuantityError(ValueError):
    """A string that is no quantity; the message names it."""


@lru_cache(maxsize=CACHE_SIZE)
def parse(text: Quantity) -> Fraction:
    """The exact value. Raises QuantityError if the text is no quantity."""
    if len(str(text)) > CHARS_MAX:
        raise QuantityError(f"quantity {str(text)[:40]!r}... has more than {CHARS_MAX} characters")
    matched = _FORM.fullmatch(str(text))
    if matched is None:
        raise QuantityError(
            f"quantity {str(text)!r} is not a number with an optional suffix such as 100m or 2Gi"
        )
    sign, digits, suffix, exponent = matched.groups()
    if exponent is not None and abs(int(exponent)) > 40:
        raise QuantityError(f"quantity {str(text)!r} has an exponent out of range")
    scale = Fraction(10) ** int(exponent) if exponent is not None else _SCALE[suffix or ""]
    value = Fraction(digits if not digits.endswith(".") else digits[:-1]) * scale
    return -value if sign == "-" else value


def check(amounts: Iterable[Quantity | None]) -> None:
    """Raises QuantityError for the first invalid quantity; None is skipped.

    Called while an object is decoded, so that an object with an invalid amount is rejected as
    malformed then.
    """
    for amount in amounts:
        if amount is not None:
            parse(amount)


def ceiling(value: Fraction) -> int:
    """Round away from zero and stay within int64, as Quantity.Value does."""
    magnitude = -(-abs(value.numerator) // value.denominator)
    return min(magnitude, INT64_MAX) if value >= 0 else -min(magnitude, INT64_MAX)


def within_int64(amount: int) -> int:
    """The amount, clipped to the range of the columns."""
    return max(-INT64_MAX, min(amount, INT64_MAX))


@lru_cache(maxsize=CACHE_SIZE)
def whole(text: Quantity) -> int:
    """Quantity.Value: whole units (bytes, devices), rounded up."""
    return ceiling(parse(text))


@lru_cache(maxsize=CACHE_SIZE)
def milli(text: Quantity) -> int:
    """Quantity.MilliValue: thousandths (milli-CPU), rounded up."""
    return ceiling(parse(text) * 1000)


def wrapped(value: int) -> int:
    """The value as a signed integer of 64 bits that overflows silently, as Go's do."""
    return (value - INT64_MIN) % (UINT64_MAX + 1) + INT64_MIN
