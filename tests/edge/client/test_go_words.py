"""Why an extender's answer is none, in Go's words: against its scanner, state by state."""

import errno
import random
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from asched.edge.client import go_words

SPACE, HEX = " \t\r\n", "0123456789abcdefABCDEF"
#: What is not in these has an escape of its own (strconv.Quote).
NAMED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


class FaultError(Exception):
    pass


def wrong(c: str, context: str) -> FaultError:
    """scanner.error with quoteChar: a byte is shown as the letter of its number."""
    shown = {"'": r"\'", '"': '"', "\\": r"\\", **NAMED}.get(c)
    if shown is None and (c < " " or c == "\x7f"):
        shown = f"\\x{ord(c):02x}"
    if shown is None and ("\x7f" < c <= "\xa0" or c == "\xad"):
        shown = f"\\u{ord(c):04x}"
    return FaultError(f"invalid character '{shown or c}' {context}")


class Scanner:
    """encoding/json's scanner.go: `step` is its state, `stack` its parseState."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.step = self.begin_value
        self.word = ""

    def begin_value(self, c: str) -> None:
        if c in SPACE:
            return
        if c in "{[":
            self.stack.append("key" if c == "{" else "array")
            self.step = self.begin_string_or_empty if c == "{" else self.begin_value_or_empty
        elif c == '"':
            self.step = self.in_string
        elif c in "-0123456789":
            self.step = {"-": self.neg, "0": self.zero}.get(c, self.one)
        elif c in "tfn":
            self.word = {"t": "true", "f": "false", "n": "null"}[c]
            self.rest, self.step = list(self.word[1:]), self.literal
        else:
            raise wrong(c, "looking for beginning of value")

    def begin_value_or_empty(self, c: str) -> None:
        self.end_value(c) if c == "]" else self.begin_value(c)
        if c in SPACE:
            self.step = self.begin_value_or_empty

    def begin_string_or_empty(self, c: str) -> None:
        if c == "}":
            self.stack[-1] = "value"
            self.end_value(c)
        elif c not in SPACE:
            self.begin_string(c)

    def begin_string(self, c: str) -> None:
        if c == '"':
            self.step = self.in_string
        elif c not in SPACE:
            raise wrong(c, "looking for beginning of object key string")

    def end_value(self, c: str) -> None:
        self.step = self.end_value
        if c in SPACE or not self.stack:
            return
        top = self.stack[-1]
        if top == "key":
            if c != ":":
                raise wrong(c, "after object key")
            self.stack[-1], self.step = "value", self.begin_value
        elif c == ",":
            self.stack[-1] = "key" if top == "value" else top
            self.step = self.begin_string if top == "value" else self.begin_value
        elif c == ("}" if top == "value" else "]"):
            self.stack.pop()
        else:
            raise wrong(
                c, f"after {'object key:value pair' if top == 'value' else 'array element'}"
            )

    def in_string(self, c: str) -> None:
        if c == "\\":
            self.step = self.in_escape
        elif c == '"':
            self.step = self.end_value
        elif c < " ":
            raise wrong(c, "in string literal")

    def in_escape(self, c: str) -> None:
        if c not in 'bfnrt\\/"u':
            raise wrong(c, "in string escape code")
        self.step, self.digits = (self.in_hex, 4) if c == "u" else (self.in_string, 0)

    def in_hex(self, c: str) -> None:
        if c not in HEX:
            raise wrong(c, "in \\u hexadecimal character escape")
        self.digits -= 1
        self.step = self.in_hex if self.digits else self.in_string

    def neg(self, c: str) -> None:
        if not "0" <= c <= "9":
            raise wrong(c, "in numeric literal")
        self.step = self.zero if c == "0" else self.one

    def one(self, c: str) -> None:
        if not "0" <= c <= "9":
            self.zero(c)

    def zero(self, c: str) -> None:
        if c in ".eE":
            self.step = self.dot if c == "." else self.e
        else:
            self.end_value(c)

    def dot(self, c: str) -> None:
        if not "0" <= c <= "9":
            raise wrong(c, "after decimal point in numeric literal")
        self.step = self.dot_0

    def dot_0(self, c: str) -> None:
        if c in "eE":
            self.step = self.e
        elif not "0" <= c <= "9":
            self.end_value(c)

    def e(self, c: str) -> None:
        if c in "+-":
            self.step = self.e_sign
        else:
            self.e_sign(c)

    def e_sign(self, c: str) -> None:
        if not "0" <= c <= "9":
            raise wrong(c, "in exponent of numeric literal")
        self.step = self.e_0

    def e_0(self, c: str) -> None:
        if not "0" <= c <= "9":
            self.end_value(c)

    def literal(self, c: str) -> None:
        expected = self.rest.pop(0)
        if c != expected:
            raise wrong(c, f"in literal {self.word} (expecting '{expected}')")
        self.step = self.literal if self.rest else self.end_value


def fault(body: bytes) -> str:
    """What Go's Decoder says of an object or an array; "" if it begins with one."""
    scanner = Scanner()
    try:
        for byte in body:
            scanner.step(chr(byte))
            if scanner.step == scanner.end_value and not scanner.stack:
                return ""
    except FaultError as error:
        return str(error)
    return "unexpected EOF" if body.strip(SPACE.encode()) else "EOF"


def said(body: bytes) -> str:
    try:
        go_words.parse(body)
    except ValueError as error:
        return str(error)
    return ""


#: Every state of the scanner is passed.
SOUND = (
    b'{"a": [0, -0, 10, -12.50, 1e5, 1.0E-07, 2e+9, true, false, null], "b\\n\\u00eF\\"/": {}}',
    b' [ [ ] , [ [ 1 ] , { } , { "" : "x" , "y" : [ "\\\\" ] } ] , "\xc3\xa9\xff" ] ',
    b'{"NodeNames":["n-1","n-2"],"FailedNodes":{"n-3":"no"},"Error":""}',
)
SPOILING = (
    b"{}[]\",:\\/u-+.eE0123tfnr Na'\t\n\x00\x07\x0b\x0c\r\x1f\x7f\x80\xa0\xad\xb2\xc3\xa9\xef"
)


@pytest.mark.parametrize("sound", SOUND)
def test_what_ends_too_early_is_the_end_and_what_is_whole_is_none(sound: bytes) -> None:
    assert said(sound) == fault(sound) == ""
    for at in range(len(sound.strip())):
        assert said(sound[:at]) == fault(sound[:at]) != ""


@pytest.mark.parametrize("sound", SOUND)
def test_the_first_byte_that_is_wrong_is_named_with_what_it_is_in(sound: bytes) -> None:
    rng, told = random.Random(1), set()
    for at in range(sound.index(b"[" if sound[0] == 32 else b"{") + 1, len(sound)):
        for spoilt in rng.sample(SPOILING, 16):
            for rest in (sound[at:], sound[at + 1 :]):
                body = sound[:at] + bytes([spoilt]) + rest
                assert said(body) == fault(body), body
                told.add(said(body).partition("' ")[2])
    assert len(told) > 5


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'\xef\xbb\xbf{"NodeNames":[]}', "invalid character 'ï' looking for beginning of value"),
        (b'[{"Host":"a","Score":NaN}]', "invalid character 'N' looking for beginning of value"),
        (b'[{"Host":"a","Score":-Infinity}]', "invalid character 'I' in numeric literal"),
        (b"[1.", "unexpected EOF"),
        (b'{"a":1.x}', "invalid character 'x' after decimal point in numeric literal"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        ("[\u00b2]".encode(), "invalid character '\u00c2' looking for beginning of value"),
        (b"[\xa0]", "invalid character '\\u00a0' looking for beginning of value"),
        (b"[\x07]", "invalid character '\\a' looking for beginning of value"),
        (b"", "EOF"),
        (b" \n", "EOF"),
    ],
)
def test_what_python_would_read_or_tell_otherwise(body: bytes, why: str) -> None:
    assert said(body) == why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://x/y", None),
        ("HTTPS://x", None),
        ("http://x/%2f%41", None),
        ("http://x/%4", 'parse "http://x/%4": invalid URL escape "%4"'),
        ("http://x/%41%g1z", 'parse "http://x/%41%g1z": invalid URL escape "%g1"'),
        ("http:x", 'Post "http:x": http: no Host in request URL'),
        ("http:abc/d", 'Post "http:abc/d": http: no Host in request URL'),
        ("http:/x/y", 'Post "http:/x/y": http: no Host in request URL'),
        ("http:", 'Post "http:": http: no Host in request URL'),
        ("x/y:1", 'Post "x/y:1": unsupported protocol scheme ""'),
        ("a+b.c-d://x", 'Post "a+b.c-d://x": unsupported protocol scheme "a+b.c-d"'),
    ],
)
def test_a_url_that_leads_nowhere_is_named(url: str, why: str | None) -> None:
    assert go_words.url_fault(url) == why


def unverified(code: int, text: str = "no") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, text)
    error.verify_code = code
    return error


def unsafe(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "as a whole")
    error.reason = reason  # type: ignore[assignment]
    return error


KEY: Any = SimpleNamespace(host="h", port=1, ssl=True, is_ssl=True)
X509 = "tls: failed to verify certificate: x509: "
WRONG_HOST = "Hostname mismatch, certificate is not valid for 'h.example'."


def connecting(cause: OSError) -> Exception:
    return aiohttp.ClientConnectorError(KEY, cause)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            aiohttp.ClientConnectorCertificateError(KEY, unverified(20)),
            f"{X509}certificate signed by unknown authority",
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, Exception("anything")),
            f"{X509}certificate signed by unknown authority",
        ),
        (connecting(unverified(18)), f"{X509}certificate signed by unknown authority"),
        (connecting(unverified(9)), f"{X509}certificate has expired or is not yet valid"),
        (connecting(unverified(10)), f"{X509}certificate has expired or is not yet valid"),
        (
            connecting(unverified(62, WRONG_HOST)),
            f"{X509}certificate is not valid for h.example",
        ),
        (connecting(unverified(62)), f"{X509}certificate is not valid for this host"),
        (connecting(unsafe("WRONG_VERSION_NUMBER")), "tls: WRONG_VERSION_NUMBER"),
        (connecting(unsafe(None)), "tls: as a whole"),
        (connecting(OSError(errno.ECONNREFUSED, "x")), "dial tcp h:1: connect: connection refused"),
        (connecting(OSError(99999, "odd")), "dial tcp h:1: connect: [Errno 99999] odd"),
        (connecting(OSError("bare")), "dial tcp h:1: connect: bare"),
        (
            aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
            "dial tcp: lookup h: no such host",
        ),
        (TimeoutError(), go_words.TIMED_OUT),
        (aiohttp.ServerTimeoutError(), go_words.TIMED_OUT),
        (aiohttp.ServerDisconnectedError(), "EOF"),
        (OSError(errno.ECONNRESET, "x"), "read tcp: read: connection reset by peer"),
        (aiohttp.ClientPayloadError("torn"), "torn"),
        (aiohttp.ClientPayloadError(), "ClientPayloadError"),
    ],
    ids=repr,
)
def test_what_went_wrong_on_the_way_is_told_as_go_tells_it(error: Exception, why: str) -> None:
    assert go_words.failure(error) == why
