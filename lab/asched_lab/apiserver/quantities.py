"""Quantities as the server writes them: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`.

A canonical quantity has an integer mantissa, the largest suffix of its family that needs no
fraction, and nothing finer than a nano, to which it is rounded up.
"""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

#: Cached quantity texts; a cluster uses few. A guess with a margin.
REMEMBERED: Final = 4096

PATTERN: Final = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([A-Za-z]{0,2}))$")
BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
SUFFIX_OF_EXPONENT: Final = {exponent: suffix for suffix, exponent in DECIMAL.items()}
#: Above the range of any resource; the scheduler has the same limit.
EXPONENT_MAX: Final = 40
FAULT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def _split(text: str) -> tuple[Decimal, str]:
    match = PATTERN.match(text)
    if match is None:
        raise ValueError(FAULT)
    number, exponent, suffix = match.groups()
    if exponent:
        if abs(int(exponent[1:])) > EXPONENT_MAX:
            raise ValueError(FAULT)
        return Decimal(number + exponent), "e"
    if suffix in BINARY:
        return Decimal(number) * 1024 ** BINARY[suffix], "i"
    if suffix not in DECIMAL:
        raise ValueError(FAULT)
    return Decimal(number).scaleb(DECIMAL[suffix]), ""


@lru_cache(maxsize=REMEMBERED)
def value(text: str) -> Decimal:
    """The exact amount, in the base unit. Raises ValueError for an invalid quantity."""
    return _split(text)[0]


@lru_cache(maxsize=REMEMBERED)
def canonical(text: str) -> str:
    """The canonical text. Raises ValueError for an invalid quantity."""
    amount, family = _split(text)
    if amount == 0:
        return "0"
    if family == "i" and amount == amount.to_integral_value():
        whole, power = int(amount), 0
        if abs(whole) < 1024 and amount == whole:
            return str(whole)
        while whole % 1024 == 0 and power < 6:
            whole, power = whole // 1024, power + 1
        return f"{whole}{['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'][power]}"
    nanos = int(amount.scaleb(9).to_integral_value(rounding=ROUND_CEILING))
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos, exponent = nanos // 1000, exponent + 3
    if family == "e" and exponent:
        return f"{nanos}e{exponent}"
    return f"{nanos}{SUFFIX_OF_EXPONENT[exponent]}"


@lru_cache(maxsize=REMEMBERED)
def to_milli(text: str) -> str:
    """A canonical quantity rounded up to a thousandth, as for amounts of resources."""
    if text[-1] not in "nu":
        return text
    rounded = value(text).scaleb(3).to_integral_value(rounding=ROUND_CEILING)
    return canonical(f"{rounded}m")


def text_of(raw: object) -> str:
    """A quantity from JSON, where a number may replace its text. Raises ValueError."""
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise ValueError(FAULT)  # noqa: TRY004  the caller reports one kind of fault
    return canonical(str(raw).strip() if isinstance(raw, str) else repr(raw))
