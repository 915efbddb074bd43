"""Errors: an expression does not compile, or has no value for this device."""

from typing import Final

#: Characters of an expression that a message shows.
SHOWN_MAX: Final = 120


class CelError(ValueError):
    """Base of both; `str` is one line for users."""


class CelSyntaxError(CelError):
    """The expression cannot be compiled. The message has the expression and the position."""

    def __init__(self, expression: str, position: int, message: str) -> None:
        line = expression.count("\n", 0, position) + 1
        column = position - (expression.rfind("\n", 0, position) + 1) + 1
        shown = expression if len(expression) <= SHOWN_MAX else expression[:SHOWN_MAX] + "..."
        super().__init__(f"compilation failed: {shown!r}, line {line} column {column}: {message}")
        self.position = position


class CelRuntimeError(CelError):
    """The expression has no value: a missing key, operands of wrong types, the cost limit."""
