"""Flag values as Go's flag libraries parse them, with their error messages.

Source  github.com/spf13/pflag, strconv and time of Go; runs recorded from kube-scheduler 1.36.2
"""

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from asched.core.config import duration
from asched.core.config.gates import parse_bool
from asched.core.config.problem import quoted
from asched.core.config.scalars import single
from asched.core.model.timestamp import NS_PER_SECOND

#: Values of a `version` flag.
VERSION_OFF: Final = "false"
VERSION_ON: Final = "true"
VERSION_RAW: Final = "raw"
#: The version whose behaviour asched follows; `--version=vX` may only repeat it.
UPSTREAM_VERSION: Final = "v1.36.3"

_INT: Final = re.compile(r"[-+]?[0-9][0-9a-zA-Z_]*", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_HEX_FLOAT: Final = re.compile(
    r"[-+]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+", re.ASCII
)
_NO_FLOAT: Final = re.compile(r"[-+]?(inf|infinity)|nan", re.IGNORECASE)
#: An underscore is allowed between two digits, or after the prefix of a base.
_UNDERSCORES: Final = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
#: One value of a CSV line: bare, or in quotes, where two quotes mean one.
_CSV_VALUE: Final = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|([^",]*)(?=,|$)')
_VERSION: Final = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")
_QUANTITY: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+|[munkMGTPE]|[KMGTPE]i)?")


def _integer(text: str, bits: int) -> int:
    """An integer in Go's base 0: 0x, 0b, 0o or a leading 0 select the base."""
    shown = quoted(text)
    if not _INT.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {shown}: invalid syntax")
    body = text.lstrip("+-")
    octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
    try:
        value = int(body, 8) if octal else int(body, 0)
    except ValueError as error:
        raise ValueError(f"strconv.ParseInt: parsing {shown}: invalid syntax") from error
    value = -value if text[0] == "-" else value
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"strconv.ParseInt: parsing {shown}: value out of range")
    return value


int32, int64 = partial(_integer, bits=32), partial(_integer, bits=64)


def level(text: str) -> int:
    """A verbosity: decimal, 31 bits."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("0") or "0"  # int() refuses numbers of thousands of digits
    if len(digits) > len(str(2**31)) or int(digits) >= 2**31:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(digits)


def float32(text: str) -> float:
    """A finite number; infinity and NaN are refused, since they limit nothing."""
    plain = _UNDERSCORES.sub("", text)
    is_hex = _HEX_FLOAT.fullmatch(plain) is not None
    if _NO_FLOAT.fullmatch(text):
        raise ValueError(f"{text} is not a limit: remove the flag for no limit")
    if not is_hex and not _FLOAT.fullmatch(plain):
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    try:
        value = float.fromhex(plain) if is_hex else float(plain)
    except OverflowError:
        value = math.inf
    if not math.isfinite(single(value)):
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    return value


def duration_s(text: str) -> float:
    """Seconds of a Go duration."""
    return duration.parse(text) / NS_PER_SECOND


def ip(text: str) -> str:
    """An address without a zone; an empty text keeps the default."""
    try:
        if "%" in text:
            raise ValueError  # noqa: TRY301 - one message for every invalid address
        if text.strip():
            ipaddress.ip_address(text.strip())
    except ValueError as error:
        raise ValueError(f"failed to parse IP: {quoted(text)}") from error
    return text.strip()


def strings(text: str) -> tuple[str, ...]:
    """One CSV line, as for pflag's string slices."""
    if not text:
        return ()
    values: list[str] = []
    position = 0
    while True:
        found = _CSV_VALUE.match(text, position)
        if found is None:
            raise ValueError(_csv_fault(text, position))
        values.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        position = found.end() + 1
        if position > len(text):
            return tuple(values)


def _csv_fault(text: str, position: int) -> str:
    """The error of Go's CSV reader for the value that begins here; columns count bytes from 1."""
    where = "parse error on line 1, column"
    if text[position] != '"':
        column = len(text[: text.index('"', position)].encode()) + 1
        return f'{where} {column}: bare " in non-quoted-field'
    inside = re.compile(r'(?:[^"]|"")*').match(text, position + 1)
    end = inside.end() if inside else position
    column = len(text[:end].encode()) + 1
    return f'{where} {column}: extraneous or missing " in quoted-field'


def int32s(text: str) -> tuple[int, ...]:
    return tuple(int32(part.strip()) for part in strings(text))


def string_map(text: str) -> dict[str, str]:
    pairs = {}
    for part in _pairs(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part} must be formatted as key=value")
        pairs[key] = value
    return pairs


def _pairs(text: str) -> tuple[str, ...]:
    """A single pair is taken whole, including commas; several pairs are a CSV line."""
    return strings(text) if text.count("=") > 1 else (text.strip('"'),)


def cert_key(text: str) -> tuple[str, str, tuple[str, ...]]:
    """`cert,key[:name,name...]`: two files, and the server names they serve."""
    files, colon, names = text.partition(":")
    if colon and not names.strip():
        raise ValueError("empty names list is not allowed")
    parts = [part.strip() for part in files.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError("expected comma separated certificate and key file paths")
    return parts[0], parts[1], tuple(name.strip() for name in names.split(",")) if colon else ()


def quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text):
        raise ValueError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return text


def vmodule(text: str) -> tuple[tuple[str, int], ...]:
    """`pattern=N,...`: verbosity by source file."""
    settings = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        pattern, _, shown = part.partition("=")
        if not pattern or not shown or "=" in shown:
            raise ValueError(f"{quoted(part)} does not have the pattern=N format")
        try:
            settings.append((pattern, level(shown)))
        except ValueError as error:
            raise ValueError(f"parsing verbosity in {quoted(part)}: {error}") from error
    return tuple(settings)


def version(text: str) -> str:
    if text == VERSION_RAW:
        return text
    if text.startswith("v"):
        if not text[1:2].isdigit():
            raise ValueError(f"could not parse {quoted(text)} as version")
        if not _VERSION.match(text):
            raise ValueError(f"illegal version string {quoted(text)}")
        if text.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0] != UPSTREAM_VERSION:
            raise ValueError(
                f"version {quoted(text)} must match major/minor/patch of default version "
                f"{quoted(UPSTREAM_VERSION)}"
            )
        return VERSION_OFF
    return VERSION_ON if parse_bool(text) else VERSION_OFF


#: pflag's type names -> reader.
READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": str,
    "bool": parse_bool,
    "int": int64,
    "int32": int32,
    "float32": float32,
    "duration": duration_s,
    "durationNs": duration.parse,
    "ip": ip,
    "strings": strings,
    "int32Slice": int32s,
    "stringToString": string_map,
    "namedCertKey": cert_key,
    "quantity": quantity,
    "Level": level,
    "pattern=N,...": vmodule,
    "version": version,
    # Parsed together once all of them are known.
    "gates": str,
    "text": str,
}
#: Types whose flag may have no value, and what that means.
ALONE: Final = {"bool": "true", "version": VERSION_ON}
#: Types whose values accumulate when the flag is repeated; the first use replaces the default.
ADDITIVE: Final = frozenset({"strings", "int32Slice", "namedCertKey", "gates", "text"})
