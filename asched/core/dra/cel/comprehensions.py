"""Macros that bind a name: all, exists, exists_one, map, filter, optMap, optFlatMap, cel.bind.

A list is walked by its elements, a map by its keys; the forms of two names get index and element,
or key and value. A name may hide an outer one of the same name.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from asched.core.dra.cel.errors import CelRuntimeError
from asched.core.dra.cel.frame import Evaluate, Frame
from asched.core.dra.cel.syntax import Call, Expression, Name
from asched.core.dra.cel.values import NOTHING, Optional, no_overload

if TYPE_CHECKING:
    from asched.core.dra.cel.evaluate import Compiler

_UNBOUND: Final = object()


def _names(compiler: "Compiler", node: Call, count: int) -> tuple[str, ...]:
    names = []
    for argument in node.arguments[:count]:
        if not isinstance(argument, Name):
            raise compiler.error(argument, f"{node.function}: expected a name to bind")
        names.append(argument.text)
    return tuple(names)


def _body(compiler: "Compiler", names: tuple[str, ...], *nodes: Expression) -> tuple[Evaluate, ...]:
    outer = compiler.scope
    compiler.scope = outer | set(names)
    compiled = tuple(compiler.compile(node) for node in nodes)
    compiler.scope = outer
    return compiled


def _walk(frame: Frame, names: tuple[str, ...], container: Any) -> Iterator[None]:
    """Bind the names to each element in turn."""
    if isinstance(container, dict):
        pairs = [(_shown(key), value) for key, value in container.items()]
        elements: list[tuple[Any, ...]] = pairs if len(names) == 2 else [(key,) for key, _ in pairs]
    elif isinstance(container, list):
        elements = (
            list(enumerate(container)) if len(names) == 2 else [(item,) for item in container]
        )
    else:
        raise CelRuntimeError("comprehension over a value that is neither list nor map")
    variables = frame.variables
    hidden = [variables.get(name, _UNBOUND) for name in names]
    try:
        for element in elements:
            frame.spend(1)
            variables.update(zip(names, element, strict=True))
            yield
    finally:
        for name, value in zip(names, hidden, strict=True):
            if value is _UNBOUND:
                variables.pop(name, None)
            else:
                variables[name] = value


def _shown(key: Any) -> Any:
    return key[1] if isinstance(key, tuple) else key


def _quantifier(decisive: bool) -> Callable[["Compiler", Call, Expression], Evaluate | None]:
    """`all` ends at the first false, `exists` at the first true; errors count only if neither
    occurs.
    """

    def macro(compiler: "Compiler", node: Call, target: Expression) -> Evaluate | None:
        if len(node.arguments) not in (2, 3):
            return None
        names = _names(compiler, node, len(node.arguments) - 1)
        container = compiler.compile(target)
        (test,) = _body(compiler, names, node.arguments[-1])

        def quantify(frame: Frame) -> bool:
            failure: CelRuntimeError | None = None
            for _ in _walk(frame, names, container(frame)):
                try:
                    value = test(frame)
                    if not isinstance(value, bool):
                        raise no_overload(node.function, value)
                except CelRuntimeError as error:
                    if frame.is_exhausted:
                        raise
                    failure = failure or error
                    continue
                if value is decisive:
                    return decisive
            if failure is not None:
                raise failure
            return not decisive

        return quantify

    return macro


def _truth(node: Call, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise no_overload(node.function, value)


def _exists_one(compiler: "Compiler", node: Call, target: Expression) -> Evaluate | None:
    if len(node.arguments) not in (2, 3):
        return None
    names = _names(compiler, node, len(node.arguments) - 1)
    container = compiler.compile(target)
    (test,) = _body(compiler, names, node.arguments[-1])

    def exists_one(frame: Frame) -> bool:
        return sum(_truth(node, test(frame)) for _ in _walk(frame, names, container(frame))) == 1

    return exists_one


def _filter(compiler: "Compiler", node: Call, target: Expression) -> Evaluate | None:
    if len(node.arguments) != 2:
        return None
    names = _names(compiler, node, 1)
    container = compiler.compile(target)
    (test,) = _body(compiler, names, node.arguments[1])

    def select(frame: Frame) -> list[Any]:
        walk = _walk(frame, names, container(frame))
        return [frame.variables[names[0]] for _ in walk if _truth(node, test(frame))]

    return select


def _map(compiler: "Compiler", node: Call, target: Expression) -> Evaluate | None:
    if len(node.arguments) not in (2, 3):
        return None
    names = _names(compiler, node, 1)
    container = compiler.compile(target)
    *tests, transform = _body(compiler, names, *node.arguments[1:])

    def transformed(frame: Frame) -> list[Any]:
        return [
            transform(frame)
            for _ in _walk(frame, names, container(frame))
            if all(_truth(node, test(frame)) for test in tests)
        ]

    return transformed


def _optional_map(compiler: "Compiler", node: Call, target: Expression) -> Evaluate | None:
    if len(node.arguments) != 2:
        return None
    names = _names(compiler, node, 1)
    value = compiler.compile(target)
    (transform,) = _body(compiler, names, node.arguments[1])
    flat = node.function == "optFlatMap"

    def mapped(frame: Frame) -> Optional:
        found = value(frame)
        if not isinstance(found, Optional):
            raise no_overload(node.function, found)
        if not found.is_present:
            return NOTHING
        for _ in _walk(frame, names, [found.value]):
            result = transform(frame)
        if not flat:
            return Optional(is_present=True, value=result)
        if not isinstance(result, Optional):
            raise no_overload(node.function, result)
        return result

    return mapped


def bind(compiler: "Compiler", node: Call) -> Evaluate:
    """`cel.bind(name, value, expression)`."""
    if len(node.arguments) != 3:
        raise compiler.error(node, "cel.bind needs a name, a value and an expression")
    names = _names(compiler, node, 1)
    value = compiler.compile(node.arguments[1])
    (expression,) = _body(compiler, names, node.arguments[2])

    def bound(frame: Frame) -> Any:
        for _ in _walk(frame, names, [value(frame)]):
            result = expression(frame)
        return result

    return bound


#: A macro returns None if the number of arguments is that of an ordinary method.
MACROS: Final[dict[str, Callable[["Compiler", Call, Expression], Evaluate | None]]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "optMap": _optional_map,
    "optFlatMap": _optional_map,
}
