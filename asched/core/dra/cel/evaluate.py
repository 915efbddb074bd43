"""Compile an expression to a function of a frame, which is called for each device.

`false && error` is false and `true || error` is true, from either side, as the specification
demands; the same applies to `all` and `exists`. Everything else propagates errors. Names, functions
and the fields of `device` are checked by the compiler, so that an expression with unsupported
features fails before it runs.

The cost limit counts evaluated nodes, and calls by the size of their operands: coarser than
upstream's count and never far below it. It bounds work; it does not decide validity.

Programs are compiled once per expression and cached; so is the variable made of a device. An
attribute without a domain belongs to the domain of its driver, and a domain without attributes is
an empty map.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from asched.core.dra.cel.cost import EXTRA
from asched.core.dra.cel.frame import COST_MAX, Evaluate, Frame
from asched.core.dra.cel.functions import FUNCTIONS, METHODS
from asched.core.dra.cel.macros import BIND, MACROS, Macro, attempt, first, truth
from asched.core.dra.cel.operators import OPERATORS, find, lookup, map_key
from asched.core.dra.cel.parser import parse
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
from asched.core.dra.cel.values import (
    NOTHING,
    CelError,
    CelRuntimeError,
    CelSyntaxError,
    DefaultMap,
    Optional,
    Semver,
    Type,
    no_overload,
    parse_quantity,
    parse_semver,
    type_name,
)
from asched.core.model.claim import Device, DeviceAttribute
from asched.core.model.lru import Lru


def expand(
    compiler: "Compiler", macro: Macro, node: Call, value: Expression, parts: Sequence[Expression]
) -> Evaluate:
    """Compile a call of a macro with these arguments, whose value is `value`."""
    count = len(parts) - 1 if macro.takes_names else 1
    names = []
    for part in parts[:count]:
        if not isinstance(part, Name):
            raise compiler.error(part, f"{node.function}: expected a name to bind")
        names.append(part.text)
    walked = compiler.compile(value)
    outer = compiler.scope
    compiler.scope = outer | set(names)
    body = [compiler.compile(part) for part in parts[count:]]
    compiler.scope = outer
    return macro.make(node, tuple(names), walked, *body)


#: Fields of the only variable.
DEVICE_FIELDS: Final = frozenset(("driver", "attributes", "capacity", "allowMultipleAllocations"))
#: Names that stand for a namespace of functions.
NAMESPACES: Final = frozenset(("cel", "optional", "sets", "math", "strings"))
TYPES: Final = frozenset(
    ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint", "type")
)


class Compiler:
    """Compiles one expression. `self.scope` holds the names bound around the current node."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.scope: set[str] = {"device"}

    def error(self, node: Expression, message: str) -> CelSyntaxError:
        return CelSyntaxError(self.expression, node.position, message)

    def compile(self, node: Expression) -> Evaluate:
        """Raises CelSyntaxError."""
        match node:
            case Literal():
                return _constant(node.value)
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
        raise self.error(node, "unknown kind of node")

    # --- names and lookups ----------------------------------------------------------------------

    def _name(self, node: Name) -> Evaluate:
        name = node.text
        if name in self.scope:

            def variable(frame: Frame) -> Any:
                frame.spend(1)
                return frame.variables[name]

            return variable
        if name in TYPES:
            return _constant(Type(name))
        raise self.error(node, f"undeclared reference to {name!r}")

    def _is_device(self, node: Expression) -> bool:
        return isinstance(node, Name) and node.text == "device"

    def _select(self, node: Select) -> Evaluate:
        if self._is_device(node.operand) and node.field not in DEVICE_FIELDS:
            raise self.error(node, f"undefined field {node.field!r} of device")
        return self._look_up(node, Literal(node.position, node.field))

    def _index(self, node: Index) -> Evaluate:
        if self._is_device(node.operand):
            raise self.error(node, "device has fields, not keys")
        return self._look_up(node, node.key)

    def _look_up(self, node: Select | Index, key_node: Expression) -> Evaluate:
        operand, key = self.compile(node.operand), self.compile(key_node)
        is_optional, field = node.optional, node.field if isinstance(node, Select) else None

        def look_up(frame: Frame) -> Any:
            frame.spend(1)
            container = operand(frame)
            if isinstance(container, Optional):
                known = key(frame)
                return find(container.value, known) if container.is_present else NOTHING
            if is_optional:
                return find(container, key(frame))
            if field is not None and not isinstance(container, dict):
                raise CelRuntimeError(f"no such overload: cannot select field {field!r}")
            return lookup(container, key(frame))

        return look_up

    # --- calls ----------------------------------------------------------------------------------

    def _call(self, node: Call) -> Evaluate:
        if node.target is None:
            return self._function(node)
        if isinstance(node.target, Name) and node.target.text in NAMESPACES - self.scope:
            return self._namespaced(node, node.target.text)
        macro = MACROS.get(node.function)
        if macro is not None and 2 <= len(node.arguments) <= macro.arguments_max:
            return expand(self, macro, node, node.target, node.arguments)
        if node.function in ("or", "orValue"):
            return self._fallback(node, node.target)
        function = METHODS.get(node.function)
        if function is None:
            raise self.error(node, f"method {node.function!r} is not supported in device selectors")
        return self._apply(node, function, (node.target, *node.arguments), node.function)

    def _namespaced(self, node: Call, namespace: str) -> Evaluate:
        full = f"{namespace}.{node.function}"
        if full == "cel.bind":
            if len(node.arguments) != 3:
                raise self.error(node, "cel.bind needs a name, a value and an expression")
            name, value, expression = node.arguments
            return expand(self, BIND, node, value, (name, expression))
        function = FUNCTIONS.get(full)
        if function is None:
            raise self.error(node, f"function {full!r} is not supported in device selectors")
        return self._apply(node, function, node.arguments, full)

    def _function(self, node: Call) -> Evaluate:
        name = node.function
        if name == "_&&_":
            return self._logic(node, decisive=False)
        if name == "_||_":
            return self._logic(node, decisive=True)
        if name == "_?_:_":
            return self._ternary(node)
        if name in OPERATORS:
            return self._apply(node, OPERATORS[name], node.arguments)
        if name == "has":
            return self._has(node)
        function = FUNCTIONS.get(name)
        if function is None:
            raise self.error(node, f"function {name!r} is not supported in device selectors")
        return self._apply(node, function, node.arguments, name)

    def _apply(
        self,
        node: Call,
        function: Callable[..., Any],
        operands: tuple[Expression, ...],
        name: str = "",
    ) -> Evaluate:
        compiled = tuple(self.compile(operand) for operand in operands)
        extra = EXTRA.get(name)

        def apply(frame: Frame) -> Any:
            values = [operand(frame) for operand in compiled]
            try:
                frame.spend_on(values, extra)
                return function(*values)
            except TypeError:  # a wrong number of operands, or types that `join` or a cost rejects
                raise no_overload(name or node.function, *values) from None

        return apply

    def _has(self, node: Call) -> Evaluate:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Select):
            raise self.error(node, "has() needs a field selection such as has(a.b)")
        selection = node.arguments[0]
        if self._is_device(selection.operand):
            self._select(selection)
            return _constant(True)
        operand, field = self.compile(selection.operand), selection.field

        def has(frame: Frame) -> bool:
            frame.spend(1)
            container = operand(frame)
            if isinstance(container, Optional):
                if not container.is_present:
                    return False
                container = container.value
            if not isinstance(container, dict):
                raise CelRuntimeError(f"no such overload: has() on field {field!r}")
            return field in container

        return has

    def _fallback(self, node: Call, target: Expression) -> Evaluate:
        if len(node.arguments) != 1:
            raise self.error(node, f"{node.function} needs one argument")
        value, other = self.compile(target), self.compile(node.arguments[0])
        unwrap = node.function == "orValue"

        def fallback(frame: Frame) -> Any:
            frame.spend(1)
            found = value(frame)
            if not isinstance(found, Optional):
                raise no_overload(node.function, found)
            if not found.is_present:
                return other(frame)
            return found.value if unwrap else found

        return fallback

    # --- logic ----------------------------------------------------------------------------------

    def _logic(self, node: Call, *, decisive: bool) -> Evaluate:
        terms = tuple(self.compile(argument) for argument in node.arguments)
        function = node.function

        def values(frame: Frame) -> Iterator[bool | CelRuntimeError]:
            for term in terms:
                frame.spend(1)
                yield attempt(term, frame, function)

        return lambda frame: first(values(frame), decisive=decisive)

    def _ternary(self, node: Call) -> Evaluate:
        condition, yes, no = (self.compile(argument) for argument in node.arguments)

        def ternary(frame: Frame) -> Any:
            frame.spend(1)
            return yes(frame) if truth("_?_:_", condition(frame)) else no(frame)

        return ternary

    # --- lists and maps -------------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Evaluate:
        items = tuple(zip(map(self.compile, node.items), node.optional, strict=True))

        def build(frame: Frame) -> list[Any]:
            frame.spend(1 + len(items))
            values: list[Any] = []
            for item, is_optional in items:
                values += _entry(item(frame), is_optional)
            return values

        return build

    def _map(self, node: MapLiteral) -> Evaluate:
        keys, values = map(self.compile, node.keys), map(self.compile, node.values)
        entries = tuple(zip(keys, values, node.optional, strict=True))

        def build(frame: Frame) -> dict[Any, Any]:
            frame.spend(1 + len(entries))
            result: dict[Any, Any] = {}
            for key, value, is_optional in entries:
                known, held = map_key(key(frame)), value(frame)
                if known in result:
                    raise CelRuntimeError(f"duplicate key in map: {known}")
                for element in _entry(held, is_optional):
                    result[known] = element
            return result

        return build


def _entry(value: Any, is_optional: bool) -> tuple[Any, ...]:
    """The element of a list or map; none for an absent optional one."""
    if not is_optional:
        return (value,)
    if not isinstance(value, Optional):
        raise no_overload("?", value)
    return (value.value,) if value.is_present else ()


def _constant(value: Any) -> Evaluate:
    return lambda frame: value  # noqa: ARG005


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


#: Programs, and the errors of invalid expressions, limited in bytes.
_programs: Final[Lru[str, Program | CelError]] = Lru(PROGRAMS_BYTES_MAX)


def compile_expression(expression: str) -> Program:
    """The program of an expression. Raises CelSyntaxError."""
    program = _programs.get(expression)
    if program is None:
        try:
            program = Program(expression)
        except CelError as error:
            program = error.with_traceback(None)
        _programs.put(expression, program, PROGRAM_BYTES + CHARACTER_BYTES * len(expression))
    if isinstance(program, CelError):
        raise program.with_traceback(None)  # or the traceback would grow each time
    return program


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
