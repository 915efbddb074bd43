"""YAML 1.1 words as Go reads and writes them: the value of a plain word, and when it needs quotes.

Rules   `yes` and `y` are booleans, 0x10, 010, 0b1 and 1_000 integers, 1e2 a whole float that
        becomes an integer; a word that would not be read as a text is written in double quotes,
        a word that would break the syntax in single quotes.
Source  sigs.k8s.io/yaml (goyaml.v2: resolve.go, emitterc.go), recordings of kube-scheduler 1.36.2
"""

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from asched.core.config.problem import quoted
from asched.core.model.quantity import INT64_MAX, INT64_MIN, UINT64_MAX

#: Go prints floats from here on with an exponent, which no integer field accepts.
WHOLE_FLOAT_MAX: Final = 1e21
#: The same for its shortest form, which is used for keys of maps.
EXPONENT_FROM: Final = 6
#: Digits that distinguish any two 32-bit floats.
FLOAT32_DIGITS_MAX: Final = 9

_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_BOOLS: Final = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER: Final = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", re.ASCII)
_JSON_KINDS: Final = (
    (bool, "bool"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    (Sequence, "array"),
)
#: Characters with a meaning at the start of a word.
_INDICATORS: Final = frozenset("#,[]{}&*!|>'\"%@`")


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
    if _INTEGER.fullmatch(plain):
        body = plain.lstrip("+-")
        octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
        number = int(body, 8) if octal else int(body, 0)
        return -number if plain[0] == "-" else number
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        if math.isinf(value):
            return text  # Go reads numbers beyond float64 as texts
        return int(value) if value.is_integer() and abs(value) < WHOLE_FLOAT_MAX else value
    return text


class UnsupportedKeyError(ValueError):
    """A word that cannot be the key of a map; `kind` and `shown` as Go prints them."""

    def __init__(self, kind: str, shown: str) -> None:
        super().__init__(shown)
        self.kind = kind
        self.shown = shown


def key_of(text: str) -> str:
    """The field that a plain word names as a key. Raises UnsupportedKeyError."""
    value = value_of(text)
    if value is None:
        raise UnsupportedKeyError("%!s(<nil>)", "<nil>")
    if isinstance(value, str):
        return text
    if isinstance(value, bool):
        return "true" if value else "false"
    whole = _INTEGER.fullmatch(text.replace("_", "")) is not None
    if whole and INT64_MAX < value <= UINT64_MAX:
        raise UnsupportedKeyError("uint64", f"{value:#x}")
    if whole and INT64_MIN <= value <= INT64_MAX:
        return str(value)
    return _short(float(value))


def _short(value: float) -> str:
    """A float as a key: the shortest digits that identify a 32-bit float."""
    if math.isnan(value):
        return ".nan"
    nearest = single(value)
    if not math.isfinite(nearest):
        return ".inf" if value > 0 else "-.inf"
    return short_float(shortest_single(nearest))


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


def go_syntax(value: Any) -> str:
    """A value from YAML in Go's own syntax (`%#v`)."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case list():
            return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
        case dict():
            items = (f"{quoted(key)}:{go_syntax(item)}" for key, item in value.items())
            return f"map[interface {{}}]interface {{}}{{{', '.join(items)}}}"
    return str(value)


def written(text: str, column: int = 0) -> str:
    """A text as one YAML scalar; `column` is the column of the lines of a block."""
    if "\n" in text and text.replace("\n", "").isprintable():
        return _literal(text, column)
    ambiguous = _BASE_60.fullmatch(text) or _DATE.fullmatch(text)
    if not isinstance(value_of(text), str) or ambiguous or not text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    if _breaks_syntax(text):
        return "'" + text.replace("'", "''") + "'"
    return text


def _breaks_syntax(text: str) -> bool:
    if text[0] in _INDICATORS or text[0] == " " or text[-1] == " ":
        return True
    if text.startswith(("---", "...")):
        return True
    if text[0] in "-?:" and (len(text) == 1 or text[1] == " "):
        return True
    return ": " in text or text.endswith(":") or " #" in text


def _literal(text: str, column: int) -> str:
    stripped = text.rstrip("\n")
    chomping = "-" if stripped == text else "" if text == f"{stripped}\n" else "+"
    indicator = "2" if text[0] in " \n" else ""
    pad = " " * column
    lines = [f"{pad}{line}" if line else "" for line in stripped.split("\n")]
    rest = len(text) - len(stripped) - 1
    return "\n".join([f"|{indicator}{chomping}", *lines, *[""] * max(rest, 0)])
