"""Characters to tokens.

Strings have four kinds of quotes, raw (`r`) or with escapes, as text or bytes (`b`). Identifiers in
backticks may contain `-`, `.`, `/` and blanks, for map keys written as fields.
"""

import re
from typing import Any, Final, NamedTuple

from asched.core.dra.cel.errors import CelSyntaxError
from asched.core.dra.cel.values import Uint

INT64: Final = 2**63
#: Longer than any 64-bit integer, leading zeros included.
DIGITS_MAX: Final = 40

_SKIP: Final = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)+")
_FLOAT: Final = re.compile(
    r"(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)", re.ASCII
)
_INT: Final = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+)[uU]?", re.ASCII)
_STRING: Final = re.compile(
    r"(?P<prefix>[bB]?[rR]?)"
    r"(?P<quote>\"\"\"|'''|\"|')"
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED_NAME: Final = re.compile(r"`([A-Za-z0-9_./ -]+)`")
_OPERATOR: Final = re.compile(r"\[\?|\{\?|\.\?|&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}]")
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])"
    r"|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEYWORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}

#: Reserved words.
RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


class Token(NamedTuple):
    """`kind`: literal, name, quoted (a name between backticks), op, end. `text` is an operator or
    name.
    """

    kind: str
    text: str
    value: Any
    position: int


def tokenize(expression: str) -> list[Token]:
    """All tokens, followed by one of kind `end`. Raises CelSyntaxError."""
    tokens: list[Token] = []
    at = 0
    while True:
        if skipped := _SKIP.match(expression, at):
            at = skipped.end()
        if at >= len(expression):
            tokens.append(Token("end", "end of expression", None, at))
            return tokens
        token, at = _next(expression, at)
        tokens.append(token)


def _next(expression: str, at: int) -> tuple[Token, int]:
    if found := _STRING.match(expression, at):
        return _string(expression, at, found)
    if found := _FLOAT.match(expression, at):
        return Token("literal", found.group(), float(found.group()), at), found.end()
    if found := _INT.match(expression, at):
        return _integer(expression, found), found.end()
    if found := _NAME.match(expression, at):
        name = found.group()
        if name in _KEYWORDS:
            return Token("literal", name, _KEYWORDS[name], at), found.end()
        kind = "op" if name == "in" else "name"
        return Token(kind, name, None, at), found.end()
    if found := _QUOTED_NAME.match(expression, at):
        return Token("quoted", found.group(1), None, at), found.end()
    if found := _OPERATOR.match(expression, at):
        return Token("op", found.group(), None, at), found.end()
    raise CelSyntaxError(expression, at, f"unexpected character {expression[at]!r}")


def _integer(expression: str, found: re.Match[str]) -> Token:
    text = found.group()
    unsigned = text[-1] in "uU"
    digits = text[:-1] if unsigned else text
    if len(digits) > DIGITS_MAX:
        raise CelSyntaxError(expression, found.start(), "integer is out of range")
    value = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
    # INT64 itself is accepted: the parser folds a minus sign into it.
    if value > (2 * INT64 - 1 if unsigned else INT64):
        raise CelSyntaxError(expression, found.start(), f"integer {text} is out of range")
    return Token("literal", text, Uint(value) if unsigned else value, found.start())


def _string(expression: str, start: int, found: re.Match[str]) -> tuple[Token, int]:
    prefix, quote = found["prefix"].lower(), found["quote"]
    raw, binary = "r" in prefix, "b" in prefix
    at = found.end()
    while True:
        if at >= len(expression) or (len(quote) == 1 and expression[at] in "\r\n"):
            raise CelSyntaxError(expression, start, "string is not closed")
        if expression.startswith(quote, at):
            break
        at += 2 if expression[at] == "\\" and not raw else 1
    body = expression[found.end() : at]
    text = body if raw else _unescape(expression, found.end(), body, binary=binary)
    value: str | bytes = text.encode(errors="surrogateescape") if binary else text
    return Token("literal", expression[start : at + len(quote)], value, start), at + len(quote)


def _unescape(expression: str, offset: int, body: str, *, binary: bool) -> str:
    """In bytes an escape is an octet, not a character: octets beyond ASCII become surrogates, which
    `surrogateescape` turns into octets.
    """
    parts: list[str] = []
    at = 0
    while (slash := body.find("\\", at)) >= 0:
        parts.append(body[at:slash])
        found = _ESCAPE.match(body, slash)
        if found is None:
            raise CelSyntaxError(expression, offset + slash, "unknown escape in string")
        simple, hex2, hex4, hex8, octal = found.groups()
        if simple:
            parts.append(_SIMPLE.get(simple, simple))
        else:
            code = int(octal, 8) if octal else int(hex2 or hex4 or hex8, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise CelSyntaxError(expression, offset + slash, "escape is no character")
            if binary and (hex4 or hex8):
                raise CelSyntaxError(expression, offset + slash, "escape is no octet")
            parts.append(chr(0xDC00 + code) if binary and code > 0x7F else chr(code))
        at = found.end()
    parts.append(body[at:])
    return "".join(parts)
