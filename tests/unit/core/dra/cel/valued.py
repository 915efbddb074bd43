"""What an expression comes to, whatever kind of value that is."""

from typing import Any

from asched.core.dra.cel.evaluate import Compiler
from asched.core.dra.cel.frame import COST_MAX, Frame
from asched.core.dra.cel.parser import parse
from asched.core.dra.cel.values import DefaultMap

DEVICE = {
    "driver": "gpu.example.com",
    "attributes": DefaultMap({"gpu.example.com": {"model": "A100", "index": 3}}),
    "capacity": DefaultMap({}),
    "allowMultipleAllocations": False,
}


def value(expression: str, cost_max: int = COST_MAX) -> Any:
    """Raises CelSyntaxError, CelRuntimeError."""
    return Compiler(expression).compile(parse(expression))(Frame({"device": DEVICE}, cost_max))
