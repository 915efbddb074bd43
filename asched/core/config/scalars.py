"""The values of plain words of YAML 1.1, and numbers as Go prints them.

Rules   `yes` and `y` are booleans, 0x10, 010, 0b1 and 1_000 integers, 1e2 a whole float that
        becomes an integer; an integer beyond 64 bits is a float in decimal digits and a text
        otherwise, a float beyond 64 bits a text; dates and 12:30 are texts, unlike in PyYAML.
Source  sigs.k8s.io/yaml (goyaml.v2: resolve.go), recordings of kube-scheduler 1.36.2
"""

import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from asched.core.model.quantity import INT64_MAX, INT64_MIN, UINT64_MAX

#: Go prints floats from here on with an exponent, which no integer field accepts.
WHOLE_FLOAT_MAX: Final = 1e21
#: The same for its shortest form, which is used for keys of maps.
EXPONENT_FROM: Final = 6
#: Digits that distinguish any two 32-bit floats.
FLOAT32_DIGITS_MAX: Final = 9

_BOOLS: Final = {
    form: value
    for words, value in (("y yes true on", True), ("n no false off", False))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER: Final = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_JSON_KINDS: Final = (
    (bool, "bool"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    (Sequence, "array"),
)


def kind_of(value: Any) -> str:
    """The JSON kind of a value, in Go's terms."""
    return next((name for kind, name in _JSON_KINDS if isinstance(value, kind)), "null")


def value_of(text: str) -> Any:
    """Value of a plain word: None, a boolean, a number or the text itself."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _SPECIAL.fullmatch(text):
        return float(text.lower().replace(".", ""))
    if text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "")
    number = _integer(plain) if _INTEGER.fullmatch(plain) else None
    if number is not None and INT64_MIN <= number <= UINT64_MAX:
        return number
    value = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    if math.isinf(value):
        return text
    return int(value) if value.is_integer() and abs(value) < WHOLE_FLOAT_MAX else value


def _integer(plain: str) -> int | None:
    """None for more decimal digits than Python reads."""
    body = plain.lstrip("+-")
    is_octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
    try:
        number = int(body, 8) if is_octal else int(body, 0)
    except ValueError:
        return None
    return -number if plain[0] == "-" else number


def key_of(text: str) -> str:
    """The field that a plain word names as a key. Raises ValueError for a word that names none."""
    value = value_of(text)
    if isinstance(value, str):
        return text
    if isinstance(value, bool):
        return "true" if value else "false"
    is_integer = _INTEGER.fullmatch(text.replace("_", "")) and value <= UINT64_MAX
    if value is None or (is_integer and value > INT64_MAX):
        raise ValueError("the key is not a name: put it in quotes")
    if is_integer:
        return str(value)
    return short_float(shortest_single(float(value))) if math.isfinite(single(value)) else text


def shortest_single(value: float) -> float:
    """The number of the fewest digits that is the same 32-bit float."""
    nearest = single(value)
    shown = (float(f"{nearest:.{digits}g}") for digits in range(1, FLOAT32_DIGITS_MAX + 1))
    return next(number for number in shown if single(number) == nearest)


def short_float(value: float) -> str:
    """A finite float as Go prints it in its shortest form (`%g`)."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "finite"
    power = len(digits) + exponent - 1
    if -4 <= power < EXPONENT_FROM:
        return f"{value:.{max(-exponent, 0)}f}"
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{power:+03d}"


def single(value: float) -> float:
    """The 32-bit float nearest to a number; infinite beyond the range."""
    try:
        nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    except (OverflowError, struct.error):  # the latter for an integer beyond a float64
        return math.inf if value > 0 else -math.inf
    return nearest
