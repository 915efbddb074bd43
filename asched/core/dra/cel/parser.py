"""Characters to tokens, and these to a syntax tree: recursive descent, one method for each level of
precedence.

Strings have four kinds of quotes, raw (`r`) or with escapes, as text or bytes (`b`). Identifiers in
backticks may contain `-`, `.`, `/` and blanks, for map keys written as fields.

Bounds: an expression has at most EXPRESSION_LENGTH_MAX characters (the API's limit) and nests at
most DEPTH_MAX levels, so that neither parsing nor evaluation can exhaust the stack.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from asched.core.dra.cel.syntax import (
    Call,
    Expression,
    Index,
    ListLiteral,
    Literal,
    MapLiteral,
    Name,
    Select,
)
from asched.core.dra.cel.values import CelSyntaxError, Uint
from asched.core.model.quantity import INT64_MAX, UINT64_MAX

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
_WORDS: Final = ("in", *_KEYWORDS)

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
    if matched := _STRING.match(expression, at):
        return _string(expression, at, matched)
    if matched := _FLOAT.match(expression, at):
        return Token("literal", matched.group(), float(matched.group()), at), matched.end()
    if matched := _INT.match(expression, at):
        return _integer(expression, matched), matched.end()
    if matched := _NAME.match(expression, at):
        name = matched.group()
        if name in _KEYWORDS:
            return Token("literal", name, _KEYWORDS[name], at), matched.end()
        kind = "op" if name == "in" else "name"
        return Token(kind, name, None, at), matched.end()
    if matched := _QUOTED_NAME.match(expression, at):
        return Token("quoted", matched.group(1), None, at), matched.end()
    if matched := _OPERATOR.match(expression, at):
        return Token("op", matched.group(), None, at), matched.end()
    raise CelSyntaxError(expression, at, f"unexpected character {expression[at]!r}")


def _integer(expression: str, matched: re.Match[str]) -> Token:
    text = matched.group()
    unsigned = text[-1] in "uU"
    digits = text[:-1] if unsigned else text
    if len(digits) > DIGITS_MAX:
        raise CelSyntaxError(expression, matched.start(), "integer is out of range")
    value = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
    # One more than INT64_MAX is accepted: the parser folds a minus sign into it.
    if value > (UINT64_MAX if unsigned else INT64_MAX + 1):
        raise CelSyntaxError(expression, matched.start(), f"integer {text} is out of range")
    return Token("literal", text, Uint(value) if unsigned else value, matched.start())


def _string(expression: str, start: int, matched: re.Match[str]) -> tuple[Token, int]:
    prefix, quote = matched["prefix"].lower(), matched["quote"]
    raw, binary = "r" in prefix, "b" in prefix
    at = matched.end()
    while True:
        if at >= len(expression) or (len(quote) == 1 and expression[at] in "\r\n"):
            raise CelSyntaxError(expression, start, "string is not closed")
        if expression.startswith(quote, at):
            break
        at += 2 if expression[at] == "\\" and not raw else 1
    body = expression[matched.end() : at]
    text = body if raw else _unescape(expression, matched.end(), body, binary=binary)
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
        matched = _ESCAPE.match(body, slash)
        if matched is None:
            raise CelSyntaxError(expression, offset + slash, "unknown escape in string")
        simple, hex2, hex4, hex8, octal = matched.groups()
        if simple:
            parts.append(_SIMPLE.get(simple, simple))
        else:
            code = int(octal, 8) if octal else int(hex2 or hex4 or hex8, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise CelSyntaxError(expression, offset + slash, "escape is no character")
            if binary and (hex4 or hex8):
                raise CelSyntaxError(expression, offset + slash, "escape is no octet")
            parts.append(chr(0xDC00 + code) if binary and code > 0x7F else chr(code))
        at = matched.end()
    parts.append(body[at:])
    return "".join(parts)


#: resource.k8s.io/v1 CELSelectorExpressionMaxLength.
EXPRESSION_LENGTH_MAX: Final = 10 * 1024
#: Our own limit: a level costs about eight Python frames in the parser, and at most two in
#: evaluation.
DEPTH_MAX: Final = 50

#: Binary operators, the loosest first.
_LEVELS: Final = (("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))


def parse(expression: str) -> Expression:
    """Raises CelSyntaxError."""
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise CelSyntaxError(
            expression[:40], 0, f"expression is longer than {EXPRESSION_LENGTH_MAX} characters"
        )
    parser = _Parser(expression, tokenize(expression))
    node = parser.conditional()
    parser.expect_end()
    return node


class _Parser:
    def __init__(self, expression: str, tokens: list[Token]) -> None:
        self._expression = expression
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    # --- the levels, loosest first --------------------------------------------------------------

    def conditional(self) -> Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error(f"nested deeper than {DEPTH_MAX} levels")
        node = self._or()
        if question := self._take("?"):
            chosen = self._or()
            self._expect(":")
            node = Call(question.position, "_?_:_", None, (node, chosen, self.conditional()))
        self._depth -= 1
        return node

    def _or(self) -> Expression:
        terms = [self._and()]
        while token := self._take("||"):
            start = token.position
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else Call(start, "_||_", None, tuple(terms))

    def _and(self) -> Expression:
        terms = [self._binary()]
        while token := self._take("&&"):
            start = token.position
            terms.append(self._binary())
        return terms[0] if len(terms) == 1 else Call(start, "_&&_", None, tuple(terms))

    def _binary(self, level: int = 0) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while token := self._take(*_LEVELS[level]):
            node = Call(token.position, f"_{token.text}_", None, (node, self._binary(level + 1)))
        return node

    def _unary(self) -> Expression:
        signs: list[Token] = []
        while token := self._take(signs[0].text) if signs else self._take("!", "-"):
            signs.append(token)
        is_number = type(self._tokens[self._at].value) in (int, float)
        if signs and signs[-1].text == "-" and is_number:
            signs.pop()
            number = self._advance()
            node = self._members(Literal(number.position, -number.value))
        else:
            node = self._members(self._primary())
        for sign in reversed(signs):
            node = Call(sign.position, f"{sign.text}_", None, (node,))
        return node

    def _members(self, node: Expression) -> Expression:
        while True:
            if dot := self._take(".", ".?"):
                node = self._member(node, dot)
            elif bracket := self._take("[", "[?"):
                key = self.conditional()
                self._expect("]")
                node = Index(bracket.position, node, key, bracket.text == "[?")
            elif brace := self._take("{", "{?"):
                raise self._error("messages are not supported in device selectors", brace)
            else:
                return node

    def _member(self, node: Expression, dot: Token) -> Expression:
        token = self._advance()
        if token.kind not in ("name", "quoted") and token.text not in _WORDS:
            raise self._error(f"expected a field or method after {dot.text!r}", token)
        if token.kind == "name" and dot.text == "." and self._take("("):
            return Call(token.position, token.text, node, self._arguments())
        return Select(token.position, node, token.text, dot.text == ".?")

    def _primary(self) -> Expression:
        token = self._advance()
        if token.kind == "literal":
            if type(token.value) is int and token.value > INT64_MAX:
                raise self._error(f"integer {token.text} is out of range", token)
            return Literal(token.position, token.value)
        if token.kind == "name":
            if token.text in RESERVED:
                raise self._error(f"{token.text!r} is a reserved word", token)
            if self._take("("):
                return Call(token.position, token.text, None, self._arguments())
            return Name(token.position, token.text)
        if token.text == "." and self._tokens[self._at].kind == "name":
            return self._primary()  # a leading dot means the root scope, which is the only one
        if token.text == "(":
            node = self.conditional()
            self._expect(")")
            return node
        if token.text in ("[", "[?"):
            return self._list(token)
        if token.text in ("{", "{?"):
            return self._map(token)
        raise self._error(f"unexpected {token.text!r}", token)

    # --- lists of things ------------------------------------------------------------------------

    def _arguments(self) -> tuple[Expression, ...]:
        arguments: list[Expression] = []
        while not self._take(")"):
            if arguments:
                self._expect(",")
            arguments.append(self.conditional())
        return tuple(arguments)

    def _list(self, start: Token) -> Expression:
        items: list[Expression] = []
        optional: list[bool] = []
        for is_optional in self._entries(start, "]"):
            optional.append(is_optional)
            items.append(self.conditional())
        return ListLiteral(start.position, tuple(items), tuple(optional))

    def _map(self, start: Token) -> Expression:
        keys: list[Expression] = []
        values: list[Expression] = []
        optional: list[bool] = []
        for is_optional in self._entries(start, "}"):
            optional.append(is_optional)
            keys.append(self.conditional())
            self._expect(":")
            values.append(self.conditional())
        return MapLiteral(start.position, tuple(keys), tuple(values), tuple(optional))

    def _entries(self, start: Token, end: str) -> Iterator[bool]:
        """Yield before each entry whether it is marked as optional; a comma may precede the end."""
        marked, is_first = start.text.endswith("?"), True
        while not self._take(end):
            if not is_first:
                self._expect(",")
                if self._take(end):
                    break
            yield marked or self._take("?") is not None
            marked = is_first = False

    # --- tokens ---------------------------------------------------------------------------------

    def _advance(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _take(self, *texts: str) -> Token | None:
        token = self._tokens[self._at]
        if token.kind == "op" and token.text in texts:
            self._at += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"expected {text!r}, found {self._tokens[self._at].text!r}")

    def expect_end(self) -> None:
        token = self._tokens[self._at]
        if token.kind != "end":
            raise self._error(f"unexpected {token.text!r}")

    def _error(self, message: str, token: Token | None = None) -> CelSyntaxError:
        where = token or self._tokens[self._at]
        return CelSyntaxError(self._expression, where.position, message)
