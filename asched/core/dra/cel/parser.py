"""Tokens to a tree: recursive descent, one method for each level of precedence.

Bounds: an expression has at most EXPRESSION_LENGTH_MAX characters (the API's limit) and nests at
most DEPTH_MAX levels, so that neither parsing nor evaluation can exhaust the stack.
"""

from typing import Final

from asched.core.dra.cel.errors import CelSyntaxError
from asched.core.dra.cel.lexer import INT64, RESERVED, Token, tokenize
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

#: resource.k8s.io/v1 CELSelectorExpressionMaxLength.
EXPRESSION_LENGTH_MAX: Final = 10 * 1024
#: Our own limit: a level costs about eight Python frames in the parser, and at most two in
#: evaluation.
DEPTH_MAX: Final = 50

_RELATIONS: Final = ("<", "<=", ">", ">=", "==", "!=", "in")


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
        terms = [self._relation()]
        while token := self._take("&&"):
            start = token.position
            terms.append(self._relation())
        return terms[0] if len(terms) == 1 else Call(start, "_&&_", None, tuple(terms))

    def _relation(self) -> Expression:
        node = self._sum()
        while token := self._take(*_RELATIONS):
            node = Call(token.position, f"_{token.text}_", None, (node, self._sum()))
        return node

    def _sum(self) -> Expression:
        node = self._product()
        while token := self._take("+", "-"):
            node = Call(token.position, f"_{token.text}_", None, (node, self._product()))
        return node

    def _product(self) -> Expression:
        node = self._unary()
        while token := self._take("*", "/", "%"):
            node = Call(token.position, f"_{token.text}_", None, (node, self._unary()))
        return node

    def _unary(self) -> Expression:
        signs: list[Token] = []
        while token := self._take(signs[0].text) if signs else self._take("!", "-"):
            signs.append(token)
        if signs and signs[-1].text == "-" and self._number_follows():
            signs.pop()
            number = self._advance()
            node = self._members(Literal(number.position, -number.value))
        else:
            node = self._members(self._primary())
        for sign in reversed(signs):
            node = Call(sign.position, f"{sign.text}_", None, (node,))
        return node

    def _number_follows(self) -> bool:
        value = self._tokens[self._at].value
        return type(value) in (int, float)

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
        if token.kind not in ("name", "quoted") and token.text not in (
            "in",
            "true",
            "false",
            "null",
        ):
            raise self._error(f"expected a field or method after {dot.text!r}", token)
        if token.kind == "name" and dot.text == "." and self._take("("):
            return Call(token.position, token.text, node, self._arguments())
        return Select(token.position, node, token.text, dot.text == ".?")

    def _primary(self) -> Expression:
        token = self._advance()
        if token.kind == "literal":
            if type(token.value) is int and token.value >= INT64:
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
        marked = start.text == "[?"
        while not self._take("]"):
            if items:
                self._expect(",")
                if self._take("]"):
                    break
            optional.append(marked or self._take("?") is not None)
            marked = False
            items.append(self.conditional())
        return ListLiteral(start.position, tuple(items), tuple(optional))

    def _map(self, start: Token) -> Expression:
        keys: list[Expression] = []
        values: list[Expression] = []
        optional: list[bool] = []
        marked = start.text == "{?"
        while not self._take("}"):
            if keys:
                self._expect(",")
                if self._take("}"):
                    break
            optional.append(marked or self._take("?") is not None)
            marked = False
            keys.append(self.conditional())
            self._expect(":")
            values.append(self.conditional())
        return MapLiteral(start.position, tuple(keys), tuple(values), tuple(optional))

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
