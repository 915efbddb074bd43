"""Macros that bind a name: all, exists, exists_one, map, filter, optMap, optFlatMap, cel.bind.

A list is walked by its elements, a map by its keys; the forms of two names get index and element,
or key and value. A name may hide an outer one of the same name.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from asched.core.dra.cel.frame import Evaluate, Frame
from asched.core.dra.cel.syntax import Call
from asched.core.dra.cel.values import NOTHING, CelRuntimeError, Optional, no_overload

_UNBOUND: Final = object()


def _walk(frame: Frame, names: tuple[str, ...], container: Any) -> Iterator[None]:
    """Bind the names to each element in turn."""
    if isinstance(container, dict):
        pairs = [(k[1] if isinstance(k, tuple) else k, v) for k, v in container.items()]
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


class Macro(NamedTuple):
    """`make` builds the evaluation from the call, the bound names, the value to walk and the
    expressions over the names. Of at most `arguments_max` arguments the first are names:
    `takes_names` says whether all but the last are, or only the first.
    """

    make: Callable[..., Evaluate]
    arguments_max: int
    takes_names: bool = False


def _quantifier(
    node: Call, names: tuple[str, ...], container: Evaluate, test: Evaluate
) -> Evaluate:
    """`all` ends at the first false, `exists` at the first true."""
    decisive = node.function == "exists"

    def quantify(frame: Frame) -> bool:
        walk = _walk(frame, names, container(frame))
        return first((attempt(test, frame, node.function) for _ in walk), decisive=decisive)

    return quantify


def first(values: Iterable[bool | CelRuntimeError], *, decisive: bool) -> bool:
    """Whether the decisive value occurs: then it is the result. Raises the first error without it;
    errors do not count then.
    """
    failure: CelRuntimeError | None = None
    for value in values:
        if value is decisive:
            return decisive
        if isinstance(value, CelRuntimeError):
            failure = failure or value
    if failure is not None:
        raise failure
    return not decisive


def truth(function: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise no_overload(function, value)


def _exists_one(
    node: Call, names: tuple[str, ...], container: Evaluate, test: Evaluate
) -> Evaluate:
    def exists_one(frame: Frame) -> bool:
        walk = _walk(frame, names, container(frame))
        return sum(truth(node.function, test(frame)) for _ in walk) == 1

    return exists_one


def _filter(node: Call, names: tuple[str, ...], container: Evaluate, test: Evaluate) -> Evaluate:
    def select(frame: Frame) -> list[Any]:
        walk = _walk(frame, names, container(frame))
        return [frame.variables[names[0]] for _ in walk if truth(node.function, test(frame))]

    return select


def _map(node: Call, names: tuple[str, ...], container: Evaluate, *body: Evaluate) -> Evaluate:
    *tests, transform = body

    def transformed(frame: Frame) -> list[Any]:
        return [
            transform(frame)
            for _ in _walk(frame, names, container(frame))
            if all(truth(node.function, test(frame)) for test in tests)
        ]

    return transformed


def _optional_map(
    node: Call, names: tuple[str, ...], value: Evaluate, transform: Evaluate
) -> Evaluate:
    def mapped(frame: Frame) -> Optional:
        found = value(frame)
        if not isinstance(found, Optional):
            raise no_overload(node.function, found)
        if not found.is_present:
            return NOTHING
        for _ in _walk(frame, names, [found.value]):
            result = transform(frame)
        if node.function == "optMap":
            return Optional(is_present=True, value=result)
        if not isinstance(result, Optional):
            raise no_overload(node.function, result)
        return result

    return mapped


def _bind(_: Call, names: tuple[str, ...], value: Evaluate, expression: Evaluate) -> Evaluate:
    def bound(frame: Frame) -> Any:
        for _ in _walk(frame, names, [value(frame)]):
            result = expression(frame)
        return result

    return bound


#: With another number of arguments they are ordinary methods.
MACROS: Final[dict[str, Macro]] = {
    "all": Macro(_quantifier, 3, takes_names=True),
    "exists": Macro(_quantifier, 3, takes_names=True),
    "exists_one": Macro(_exists_one, 3, takes_names=True),
    "existsOne": Macro(_exists_one, 3, takes_names=True),
    "filter": Macro(_filter, 2),
    "map": Macro(_map, 3),
    "optMap": Macro(_optional_map, 2),
    "optFlatMap": Macro(_optional_map, 2),
}
#: `cel.bind(name, value, expression)`.
BIND: Final = Macro(_bind, 2)


def attempt(evaluate: Evaluate, frame: Frame, function: str) -> bool | CelRuntimeError:
    """A truth value, or the error as a value."""
    try:
        value = evaluate(frame)
    except CelRuntimeError as error:
        if frame.is_exhausted:
            raise
        return error
    return value if isinstance(value, bool) else no_overload(function, value)
