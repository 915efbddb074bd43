"""Flag values as Go's flag libraries read them, with their words when they cannot.

Source  github.com/spf13/pflag, strconv and time of Go; runs recorded from kube-scheduler 1.36.2
"""

import csv
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from asched.core.config import duration
from asched.core.config.gates import parse_bool
from asched.core.config.problem import quoted
from asched.core.config.v1 import NS_PER_SECOND

#: What a `version` flag asks for.
VERSION_OFF: Final = "false"
VERSION_ON: Final = "true"
VERSION_RAW: Final = "raw"
#: The behaviour we follow; `--version=vX` may only repeat it.
UPSTREAM_VERSION: Final = "v1.36.2"

_INT: Final = re.compile(r"[-+]?[0-9][0-9a-zA-Z_]*", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_QUANTITY: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+|[munkMGTPE]|[KMGTPE]i)?")


def _integer(text: str, bits: int) -> int:
    """A number in Go's base 0: 0x, 0b, 0o or a leading 0 name the base."""
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


def int64(text: str) -> int:
    return _integer(text, 64)


def int32(text: str) -> int:
    return _integer(text, 32)


def float32(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    return float(text)


def duration_s(text: str) -> float:
    """Seconds of a Go duration."""
    return duration.parse(text) / NS_PER_SECOND


def duration_ns(text: str) -> int:
    return duration.parse(text)


def ip(text: str) -> str:
    try:
        ipaddress.ip_address(text.strip())
    except ValueError as error:
        raise ValueError(f"failed to parse IP: {quoted(text)}") from error
    return text.strip()


def strings(text: str) -> tuple[str, ...]:
    """One CSV line, as pflag's string slices are."""
    if not text:
        return ()
    return tuple(next(csv.reader([text])))


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
    """One pair is taken whole, commas and all; several are a CSV line."""
    return strings(text) if text.count("=") > 1 else (text.strip('"'),)


def cert_key(text: str) -> tuple[str, str, tuple[str, ...]]:
    """`cert,key[:name,name...]`: files, and the server names they are for."""
    files, _, names_text = text.partition(":")
    parts = files.split(",")
    if len(parts) != 2 or not all(parts):
        raise ValueError("expected comma separated certificate and key file paths")
    return parts[0], parts[1], strings(names_text)


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
        pattern, equals, level = part.partition("=")
        if not equals or not pattern:
            raise ValueError(f"{quoted(text)} is not of the form pattern=N")
        settings.append((pattern, int32(level)))
    return tuple(settings)


def version(text: str) -> str:
    if text == VERSION_RAW:
        return text
    if text.startswith("v"):
        if text.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0] != UPSTREAM_VERSION:
            raise ValueError(
                f"version {quoted(text)} must match major/minor/patch of default version "
                f"{quoted(UPSTREAM_VERSION)}"
            )
        return VERSION_OFF
    return VERSION_ON if parse_bool(text) else VERSION_OFF


def text_value(text: str) -> str:
    return text


#: pflag's type names -> reader.
READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": text_value,
    "bool": parse_bool,
    "int": int64,
    "int32": int32,
    "float32": float32,
    "duration": duration_s,
    "durationNs": duration_ns,
    "ip": ip,
    "strings": strings,
    "int32Slice": int32s,
    "stringToString": string_map,
    "namedCertKey": cert_key,
    "quantity": quantity,
    "Level": int32,
    "pattern=N,...": vmodule,
    "version": version,
    # These are read as a whole once all of them are known.
    "gates": text_value,
    "text": text_value,
}
#: Types whose flag may stand alone, and what that means.
ALONE: Final = {"bool": "true", "version": VERSION_ON}
#: Types that add up when the flag is repeated; the first use replaces the default.
ADDITIVE: Final = frozenset({"strings", "int32Slice", "namedCertKey", "gates", "text"})
