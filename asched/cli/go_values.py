"""Flag values in the forms that Go's flag libraries accept.

Source  github.com/spf13/pflag, strconv and time of Go; runs recorded from kube-scheduler 1.36.2
"""

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from asched.core.config import duration
from asched.core.config.gates import parse_bool
from asched.core.config.scalars import single
from asched.core.model.timestamp import NS_PER_SECOND

#: Values of a `version` flag.
VERSION_OFF: Final = "false"
VERSION_ON: Final = "true"
VERSION_RAW: Final = "raw"
#: The version whose behaviour asched follows; `--version=vX` may only repeat it.
UPSTREAM_VERSION: Final = "v1.36.3"

LEVEL_MAX: Final = 2**31 - 1
_INT: Final = re.compile(r"[-+]?[0-9][0-9a-zA-Z_]*", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_HEX_FLOAT: Final = re.compile(
    r"[-+]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+", re.ASCII
)
#: An underscore is allowed between two digits, or after the prefix of a base.
_UNDERSCORES: Final = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
#: One value of a CSV line: bare, or in quotes, where two quotes mean one.
_CSV_VALUE: Final = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|([^",]*)(?=,|$)')
_VERSION: Final = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")
_QUANTITY: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+|[munkMGTPE]|[KMGTPE]i)?")


def _integer(text: str, bits: int) -> int:
    """An integer in Go's base 0: 0x, 0b, 0o or a leading 0 select the base."""
    body = text.lstrip("+-")
    is_octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
    end = 2 ** (bits - 1)
    try:
        value = int(body, 8 if is_octal else 0) if _INT.fullmatch(text) else None
    except ValueError:
        value = None
    if value is not None and text[0] == "-":
        value = -value
    if value is None or not -end <= value < end:
        raise ValueError(f"must be a whole number from {-end} to {end - 1}")
    return value


int32, int64 = partial(_integer, bits=32), partial(_integer, bits=64)


def level(text: str) -> int:
    """A verbosity: decimal, 31 bits."""
    digits = text.lstrip("0") or "0"  # int() refuses numbers of thousands of digits
    is_number = text.isascii() and text.isdigit() and len(digits) <= len(str(LEVEL_MAX))
    if not is_number or int(digits) > LEVEL_MAX:
        raise ValueError(f"must be a whole number from 0 to {LEVEL_MAX}")
    return int(digits)


def float32(text: str) -> float:
    """A finite number; infinity and NaN are refused, since they limit nothing."""
    plain = _UNDERSCORES.sub("", text)
    is_hex = _HEX_FLOAT.fullmatch(plain) is not None
    value = math.inf
    if is_hex or _FLOAT.fullmatch(plain):
        with suppress(OverflowError):
            value = float.fromhex(plain) if is_hex else float(plain)
    if not math.isfinite(single(value)):
        raise ValueError("must be a number of 32 bits; remove the flag for no limit")
    return value


def duration_s(text: str) -> float:
    """Seconds of a Go duration."""
    return duration.parse(text) / NS_PER_SECOND


def ip(text: str) -> str:
    """An address without a zone; an empty text keeps the default."""
    address = text.strip()
    try:
        if address:
            ipaddress.ip_address(address.replace("%", " "))
    except ValueError as error:
        raise ValueError("must be an IP address without a zone") from error
    return address


def strings(text: str) -> tuple[str, ...]:
    """One CSV line, as for pflag's string slices."""
    values: list[str] = []
    position = 0
    while text and position <= len(text):
        found = _CSV_VALUE.match(text, position)
        if found is None:
            raise ValueError('must be values between commas; "" inside quotes means one quote')
        values.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        position = found.end() + 1
    return tuple(values)


def int32s(text: str) -> tuple[int, ...]:
    return tuple(int32(part.strip()) for part in strings(text))


def string_map(text: str) -> dict[str, str]:
    pairs = {}
    for part in _pairs(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError("must be key=value pairs between commas")
        pairs[key] = value
    return pairs


def _pairs(text: str) -> tuple[str, ...]:
    """A single pair is taken whole, including commas; several pairs are a CSV line."""
    return strings(text) if text.count("=") > 1 else (text.strip('"'),)


def cert_key(text: str) -> tuple[str, str, tuple[str, ...]]:
    """`cert,key[:name,name...]`: two files, and the server names they serve."""
    files, colon, names = text.partition(":")
    if colon and not names.strip():
        raise ValueError("must have names after the colon")
    parts = [part.strip() for part in files.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError("must be the files of a certificate and of its key, between them a comma")
    return parts[0], parts[1], tuple(name.strip() for name in names.split(",")) if colon else ()


def quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text):
        raise ValueError("must be a quantity, such as 100m or 1Gi")
    return text


def vmodule(text: str) -> tuple[tuple[str, int], ...]:
    """`pattern=N,...`: verbosity by source file."""
    settings = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        pattern, _, shown = part.partition("=")
        if not pattern or not shown:
            raise ValueError("must be pattern=N pairs between commas")
        settings.append((pattern, level(shown)))
    return tuple(settings)


def version(text: str) -> str:
    if text == VERSION_RAW:
        return text
    if text.startswith("v"):
        if not _VERSION.match(text) or re.split("[-+]", text)[0] != UPSTREAM_VERSION:
            raise ValueError(f"must be {UPSTREAM_VERSION}, true, false or raw")
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
