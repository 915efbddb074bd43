"""What kube-scheduler would say of a question to an extender that failed.

Whoever debugs an extender finds these texts in the pod's condition and searches for them, so they
are Go's: of net/http for the way there, of encoding/json for the answer.

Rules   a certificate that is not for the host is named without the names it is for, which Python
        does not tell.
Source  net/http, net/url, crypto/tls and encoding/json of Go 1.25
"""

import errno
import os
import re
import ssl
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

import aiohttp
import orjson

from asched.edge.json_text import whole_letters


def _no_number(name: str) -> Any:
    """Python reads NaN and Infinity."""
    raise JSONDecodeError("no number", name, 0)


#: Go's reading stops at the first value, whatever follows.
_first_value: Final = JSONDecoder(parse_constant=_no_number).raw_decode
#: orjson's words for more than 1,024 levels, and Go's, which come at 10,000.
_TOO_DEEP: Final = "depth limit exceeded"
_MAX_DEPTH: Final = "exceeded max depth"
_SPACE: Final = " \t\r\n"
_DIGITS: Final = "0123456789"
_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})(.{0,2})")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
#: As strconv.Quote spells what can be shown in no other way.
_UNSHOWN: Final = {
    letter: f"\\{name}" for letter, name in zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True)
}

TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
TIMED_OUT_IN_BODY: Final = (
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)
#: OpenSSL's verdicts on a chain (X509_V_ERR_…).
_EXPIRED: Final = (9, 10)
_WRONG_HOST: Final = 62


def url_fault(url: str) -> str | None:
    """Why nothing can be sent to a URL, or None."""
    bad = _ESCAPE.search(url)
    if url.startswith(":"):
        return f'parse "{url}": missing protocol scheme'
    found = _SCHEME.match(url)
    if found is None and ":" in url.partition("/")[0]:
        return f'parse "{url}": first path segment in URL cannot contain colon'
    if bad is not None:
        return f'parse "{url}": invalid URL escape "%{bad.group(1)}"'
    scheme = found.group(1).lower() if found is not None else ""
    if scheme not in ("http", "https"):
        return f'Post "{url}": unsupported protocol scheme "{scheme}"'
    rest = url[len(scheme) + 1 :]
    if not rest.startswith("//") or rest[2:].partition("/")[0] == "":
        return f'Post "{url}": http: no Host in request URL'
    return None


def failure(error: BaseException) -> str:
    """What went wrong on the way, without the address."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause)
        if isinstance(cause, ssl.SSLError):
            return f"tls: {cause.reason or cause}"
        return f"dial tcp {error.host}:{error.port}: connect: {_of_system(cause)}"
    if isinstance(error, TimeoutError):
        return TIMED_OUT
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, OSError):
        return f"read tcp: read: {_of_system(error)}"
    return str(error) or type(error).__name__


def _of_system(error: OSError) -> str:
    if error.errno is None or error.errno not in errno.errorcode:
        return str(error)
    return os.strerror(error.errno).lower()


def _certificate(error: Exception) -> str:
    start = "tls: failed to verify certificate: x509: "
    code = getattr(error, "verify_code", 0)
    if code == _WRONG_HOST:
        host = re.search(r"not valid for '([^']*)'", str(error))
        return f"{start}certificate is not valid for {host.group(1) if host else 'this host'}"
    if code in _EXPIRED:
        return f"{start}certificate has expired or is not yet valid"
    return f"{start}certificate signed by unknown authority"


def parse(body: bytes) -> Any:
    """The first JSON value of an answer. Raises ValueError with Go's words."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if str(error).startswith(_TOO_DEEP):
            raise ValueError(_MAX_DEPTH) from None
        text = whole_letters(body.decode("utf-8", "replace").lstrip(_SPACE))
    if not text:
        raise ValueError("EOF")
    try:
        return _first_value(text)[0]
    except RecursionError:
        raise ValueError(_MAX_DEPTH) from None
    except JSONDecodeError:
        raise ValueError(_Scan(body).fault()) from None
    except ValueError:  # in Python's own words
        raise ValueError("a number has too many digits") from None


class _FaultError(Exception):
    pass


class _Scan:
    """Finds where a text stops being JSON, as Go's scanner does: byte by byte."""

    def __init__(self, body: bytes) -> None:
        self._text = body.decode("latin-1")
        self._at = 0

    def fault(self) -> str:
        try:
            self._value("looking for beginning of value")
        except _FaultError as error:
            return str(error)
        except RecursionError:
            return _MAX_DEPTH
        except IndexError:
            return "unexpected EOF"
        return "unexpected EOF"

    def _space(self) -> str:
        """The next character that is no space; IndexError at the end."""
        while self._text[self._at] in _SPACE:
            self._at += 1
        return self._text[self._at]

    def _wrong(self, context: str) -> _FaultError:
        char = self._text[self._at]
        shown = {"'": "'\\''", '"': "'\"'"}.get(char) or f"'{_quoted(char)}'"
        return _FaultError(f"invalid character {shown} {context}")

    def _value(self, context: str) -> None:
        char = self._space()
        if char == "{":
            self._object()
        elif char == "[":
            self._array()
        elif char == '"':
            self._string()
        elif char == "-" or char in _DIGITS:
            self._number()
        elif char in "tfn":
            self._literal({"t": "true", "f": "false", "n": "null"}[char])
        else:
            raise self._wrong(context)

    def _object(self) -> None:
        self._at += 1
        if self._space() == "}":
            self._at += 1
            return
        while True:
            if self._space() != '"':
                raise self._wrong("looking for beginning of object key string")
            self._string()
            if self._space() != ":":
                raise self._wrong("after object key")
            self._at += 1
            self._value("looking for beginning of value")
            char = self._space()
            if char not in ",}":
                raise self._wrong("after object key:value pair")
            self._at += 1
            if char == "}":
                return

    def _array(self) -> None:
        self._at += 1
        if self._space() == "]":
            self._at += 1
            return
        while True:
            self._value("looking for beginning of value")
            char = self._space()
            if char not in ",]":
                raise self._wrong("after array element")
            self._at += 1
            if char == "]":
                return

    def _string(self) -> None:
        self._at += 1
        while (char := self._text[self._at]) != '"':
            if char < " ":
                raise self._wrong("in string literal")
            if char == "\\":
                self._escape()
            self._at += 1
        self._at += 1

    def _escape(self) -> None:
        self._at += 1
        char = self._text[self._at]
        if char not in 'bfnrt\\/"u':
            raise self._wrong("in string escape code")
        if char == "u":
            for _ in range(4):
                self._at += 1
                if self._text[self._at] not in "0123456789abcdefABCDEF":
                    raise self._wrong("in \\u hexadecimal character escape")

    def _number(self) -> None:
        self._skip("-")
        if not self._skip("0"):
            self._digits("in numeric literal")
        if self._skip("."):
            self._digits("after decimal point in numeric literal")
        if self._skip("eE"):
            self._skip("+-")
            self._digits("in exponent of numeric literal")

    def _skip(self, either: str) -> bool:
        """Go past one of these characters, if it comes next."""
        is_there = self._text[self._at] in either
        self._at += is_there
        return is_there

    def _digits(self, context: str) -> None:
        if not self._skip(_DIGITS):
            raise self._wrong(context)
        while self._skip(_DIGITS):
            pass

    def _literal(self, word: str) -> None:
        for char in word[1:]:
            self._at += 1
            if self._text[self._at] != char:
                raise self._wrong(f"in literal {word} (expecting '{char}')")
        self._at += 1


def _quoted(char: str) -> str:
    """A byte, shown as the letter of its number."""
    if char.isprintable():
        return char.replace("\\", r"\\")
    shown = f"\\x{ord(char):02x}" if char < "\x80" else f"\\u{ord(char):04x}"
    return _UNSHOWN.get(char, shown)
