"""Object templates of workload files: YAML with Go template actions in it.

Rules   an action is a field, a number, or a function with operands; parentheses nest, a pipe
        passes its value on as the last operand, `{{-` and `-}}` remove the white space beside
        them; integers divide towards zero, as in Go; a float is written as Go's %v writes it;
        everything else that Go has (range, if, variables) is refused by name, because no workload
        file uses it.
Source  kubernetes/kubernetes v1.36 test/integration/scheduler_perf
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import yaml

from asched.core.model.decode import MalformedError, parse

JsonObject = dict[str, Any]
Number = int | float

_ACTION: Final = re.compile(
    r"(?P<left>\s*\{\{-\s|\{\{)(?P<body>.*?)(?P<right>\s-\}\}\s*|\}\})", re.DOTALL
)
_TOKEN: Final = re.compile(
    r"\s*(?P<token>[()|]|-?\d+\.\d*|-?\d+|\.[A-Za-z_]\w*|[A-Za-z_]\w*|\"[^\"]*\")"
)

#: Cached parsed texts: most templates give the same text for every index. A guess.
PARSED_MAX: Final = 256

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TemplateError(ValueError):
    """A template that cannot be evaluated; the message names the action and the reason."""


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _folded(step: Callable[[Any, Any], Any], to: type) -> Callable[..., Any]:
    def function(first: Number, *others: Number) -> Any:
        value = to(first)
        for other in others:
            value = step(value, to(other))
        return value

    return function


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "AddInt": _folded(lambda a, b: a + b, int),
    "SubtractInt": _folded(lambda a, b: a - b, int),
    "MultiplyInt": _folded(lambda a, b: a * b, int),
    "DivideInt": _folded(_truncated, int),
    "Mod": lambda a, b: int(a) - int(b) * _truncated(int(a), int(b)),
    "AddFloat": _folded(lambda a, b: a + b, float),
    "SubtractFloat": _folded(lambda a, b: a - b, float),
    "MultiplyFloat": _folded(lambda a, b: a * b, float),
    "DivideFloat": _folded(lambda a, b: a / b, float),
}


def render(text: str, values: Mapping[str, Number]) -> str:
    """The text with every action evaluated. `values` are the fields. Raises TemplateError."""

    def evaluated(match: re.Match[str]) -> str:
        body = match["body"].strip()
        if body.startswith("/*") and body.endswith("*/"):
            return ""
        try:
            return written(_Action(body, values).value())
        except ZeroDivisionError:
            raise TemplateError(f"{{{{ {body} }}}}: division by zero") from None

    return _ACTION.sub(evaluated, text)


def written(value: Number | str) -> str:
    """A value as Go prints it."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        return re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", repr(value))
    return str(value)


class _Action:
    """One action, read from left to right."""

    def __init__(self, body: str, values: Mapping[str, Number]) -> None:
        self._body = body
        self._values = values
        self._tokens: list[str] = []
        at = 0
        while at < len(body.rstrip()):
            match = _TOKEN.match(body, at)
            if match is None:
                raise self._wrong(f"{body[at:].split(maxsplit=1)[0]!r} is not understood")
            self._tokens.append(match["token"])
            at = match.end()

    def value(self) -> Any:
        value = self._pipeline()
        if self._tokens:
            raise self._wrong(f"{self._tokens[0]!r} comes unexpected")
        return value

    def _wrong(self, why: str) -> TemplateError:
        return TemplateError(f"{{{{ {self._body} }}}}: {why}")

    def _pipeline(self) -> Any:
        value = self._command(())
        while self._tokens[:1] == ["|"]:
            del self._tokens[0]
            value = self._command((value,))
        return value

    def _command(self, piped: tuple[Any, ...]) -> Any:
        name = self._tokens[0] if self._tokens else ""
        if not name[:1].isalpha():
            return self._operand()
        del self._tokens[0]
        function = FUNCTIONS.get(name)
        if function is None:
            raise self._wrong(f"there is no function {name!r}; there are {', '.join(FUNCTIONS)}")
        operands = []
        while self._tokens and self._tokens[0] not in ("|", ")"):
            operands.append(self._operand())
        try:
            return function(*operands, *piped)
        except (TypeError, ValueError):
            raise self._wrong(
                f"{name} does not take {len(operands) + len(piped)} such operands"
            ) from None

    def _operand(self) -> Any:
        if not self._tokens:
            raise self._wrong("an operand is missing")
        token = self._tokens.pop(0)
        if token[0] == "(":
            value = self._pipeline()
            if not self._tokens or self._tokens.pop(0) != ")":
                raise self._wrong("a parenthesis is not closed")
            return value
        if token[0] == ".":
            if token[1:] not in self._values:
                fields = ", ".join(f".{name}" for name in self._values)
                raise self._wrong(f"there is no field {token}; there are {fields}")
            return self._values[token[1:]]
        if token.startswith('"'):
            return token[1:-1]
        try:
            return float(token) if "." in token else int(token)
        except ValueError:
            raise self._wrong(f"{token!r} is no operand") from None


class Template:
    """A template file, or a mapping in its place. `of` makes the object of an index."""

    def __init__(self, text: str, origin: str, fixed: JsonObject | None = None) -> None:
        self.origin = origin
        self._text = text
        self._fixed = fixed

    @classmethod
    def holding(cls, manifest: JsonObject) -> "Template":
        """A template that gives the same object for every index."""
        return cls("", "the default", manifest)

    @classmethod
    def read(cls, path: Path) -> "Template":
        """Raises TemplateError if the file cannot be read."""
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise TemplateError(f"{path}: cannot be read: {error}") from error

    def of(self, index: int, count: int) -> JsonObject:
        """The object of one index, shared with indexes of the same text: not to be changed."""
        if self._fixed is not None:
            return self._fixed
        try:
            return _parsed(render(self._text, {"Index": index, "Count": count}))
        except TemplateError as error:
            raise TemplateError(f"{self.origin}: {error}") from error
        except MalformedError as error:
            raise TemplateError(f"{self.origin}: is no YAML: {error}") from error


@lru_cache(maxsize=PARSED_MAX)
def _parsed(text: str) -> JsonObject:
    # A safe loader, the C one if there is one.
    loaded = parse(partial(yaml.load, Loader=_Loader), text)
    if not isinstance(loaded, dict):
        raise TemplateError("holds no object")
    return loaded
