"""A compiled expression, and a device as its input.

Programs are compiled once per expression and cached; so is the variable made of a device. An
attribute without a domain belongs to the domain of its driver, and a domain without attributes is
an empty map.
"""

from collections import OrderedDict
from typing import Any, Final

from asched.core.dra.cel.evaluate import Compiler
from asched.core.dra.cel.frame import COST_MAX, Evaluate, Frame
from asched.core.dra.cel.parser import parse
from asched.core.dra.cel.values import (
    CelError,
    CelRuntimeError,
    CelSyntaxError,
    DefaultMap,
    Semver,
    parse_quantity,
    parse_semver,
    type_name,
)
from asched.core.model.claim import Device, DeviceAttribute

#: Limit for compiled expressions: any client that may create claims can add expressions.
PROGRAMS_BYTES_MAX: Final = 32 << 20
#: Bytes of one, and for each of its characters: up to 87 were measured.
PROGRAM_BYTES, CHARACTER_BYTES = 1500, 100


class Program:
    """A compiled selector."""

    __slots__ = ("_evaluate", "expression")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        try:
            self._evaluate: Evaluate = Compiler(expression).compile(parse(expression))
        except RecursionError:
            raise CelSyntaxError(expression, 0, "expression is too deep") from None

    def matches(self, device: dict[str, Any], cost_max: int = COST_MAX) -> bool:
        """Whether a device (as `device_variable` shows it) is selected. Raises CelRuntimeError."""
        return self.run(Frame({"device": device}, cost_max))

    def run(self, frame: Frame) -> bool:
        """The same for a frame that holds the device. Raises CelRuntimeError."""
        try:
            value = self._evaluate(frame)
        except RecursionError:
            raise CelRuntimeError("expression is too deep") from None
        if isinstance(value, bool):
            return value
        raise CelRuntimeError(
            f"CEL result of type {type_name(value)} could not be converted to bool"
        )


class Programs:
    """Compiled expressions, and the errors of invalid ones, bounded in bytes: the least recently
    used are dropped.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._known: OrderedDict[str, Program | CelError] = OrderedDict()

    def of(self, expression: str) -> Program | CelError:
        found = self._known.get(expression)
        if found is not None:
            self._known.move_to_end(expression)
            return found
        try:
            found = Program(expression)
        except CelError as error:
            found = error.with_traceback(None)
        self._known[expression] = found
        self.bytes += _bytes_of(expression)
        while self.bytes > PROGRAMS_BYTES_MAX and len(self._known) > 1:
            self.bytes -= _bytes_of(self._known.popitem(last=False)[0])
        return found


def _bytes_of(expression: str) -> int:
    return PROGRAM_BYTES + CHARACTER_BYTES * len(expression)


_programs: Final = Programs()


def compile_expression(expression: str) -> Program:
    """The program of an expression. Raises CelSyntaxError."""
    found = _programs.of(expression)
    if isinstance(found, CelError):
        raise found.with_traceback(None)  # or the traceback would grow each time
    return found


def device_variable(driver: str, device: Device) -> dict[str, Any]:
    """Value of the variable `device`. Raises CelRuntimeError for an attribute without a value."""
    attributes: dict[str, Any] = {}
    for name, attribute in (device.attributes or {}).items():
        domain, key = _qualified(name, driver)
        attributes.setdefault(domain, {})[key] = _attribute(name, attribute)
    capacity: dict[str, Any] = {}
    for name, amount in (device.capacity or {}).items():
        domain, key = _qualified(name, driver)
        found = parse_quantity(amount.value)
        if found is None:
            raise CelRuntimeError(f"capacity {name}: {amount.value!r} is no quantity")
        capacity.setdefault(domain, {})[key] = found
    return {
        "driver": driver,
        "attributes": DefaultMap(attributes),
        "capacity": DefaultMap(capacity),
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    """The one value of an attribute, or its list: lists first, as in the API's order of types."""
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values is not None:
            return list(values)
    if attribute.version_values is not None:
        return [_version(name, text) for text in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
    return _version(name, attribute.version_value)


def _version(name: str, text: str) -> Semver:
    version = parse_semver(text)
    if version is None:
        raise CelRuntimeError(f"attribute {name}: {text!r} is no semantic version")
    return version
